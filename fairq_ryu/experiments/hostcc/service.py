"""``fairq host``: a network namespace whose new connections are coupled, until a signal ends it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairq_ryu.agent.libbpf import BpfError, in_short
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc.controls import refusal
from fairq_ryu.experiments.hostcc.coupling import MOST_PRIORITY, Membership, cookie
from fairq_ryu.experiments.hostcc.names import OWN
from fairq_ryu.experiments.hostcc.registered import SharedControl
from fairq_ryu.experiments.traffic import congestion
from fairq_ryu.experiments.traffic.namespaces import entered

COUPLED = tuple(name for name, each in OWN.items() if each.coupled)
_NAMED = Path("/run/netns")
_DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_S = 10.0
_TENANT = re.compile(r"[\x21-\x7e]{1,64}")
_MOST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What `serve` does: which control for which namespace (None: the present one)."""

    control: str
    member: Membership
    netns: Path | None = None


def options(
    control: str, tenant: str, netns: str = "", priority: int = 100, ports: list[str] | None = None,
    shared: bool = False,
) -> HostOptions:  # fmt: skip
    """The options of the command line. ``netns`` is a name of ``ip netns``, a pid or a path; each of
    ``ports`` is ``PORT=PRIORITY``. Raises `UserError`.
    """
    if control not in COUPLED:
        raise UserError(
            f"--cc {control}: no congestion control that couples connections",
            f"use {' or '.join(COUPLED)}",
        )
    if not _TENANT.fullmatch(tenant):
        raise UserError(
            f"--tenant {tenant!r}: no name of a tenant",
            "use 1 to 64 letters, digits or other signs of ASCII without spaces",
        )
    _check_priority(f"--priority {priority}", priority)
    member = Membership(tenant, priority, shared, dict(_port(text) for text in ports or []))
    return HostOptions(control, member, _namespace(netns) if netns else None)


def _port(text: str) -> tuple[int, int]:
    number, sign, priority = text.partition("=")
    if not (sign and number.isdecimal() and priority.isdecimal() and 0 < int(number) <= _MOST_PORT):
        raise UserError(f"--port {text}: no port with a priority", "write PORT=PRIORITY, as in 443=300")
    _check_priority(f"--port {text}", int(priority))
    return int(number), int(priority)


def _check_priority(what: str, priority: int) -> None:
    if not 1 <= priority <= MOST_PRIORITY:
        raise UserError(f"{what}: a priority is from 1 to {MOST_PRIORITY}", "give a number in this range")


def _namespace(text: str) -> Path:
    path = Path(text) if "/" in text else _NAMED / text
    if text.isdecimal():
        path = Path(f"/proc/{text}/ns/net")
    if not os.path.lexists(path):
        raise UserError(
            f"--netns {text}: there is no {path}", "give a name that `ip netns` lists, a pid, or a path"
        )
    return path


def serve(chosen: HostOptions) -> int:
    """Couple the new connections of the namespace until SIGINT, SIGTERM or SIGHUP; returns 0. Raises
    `UserError`.
    """
    if os.geteuid() != 0:
        raise UserError("a congestion control is loaded by root only", "run it with sudo")
    why = refusal()
    if why is not None:
        raise why
    ended = threading.Event()
    with contextlib.ExitStack() as stack:
        for number in _SIGNALS:
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: ended.set()))
        try:
            where = _opened(stack, chosen.netns)
            stack.enter_context(_alone(where))
            netns = cookie(where)
            control = SharedControl(chosen.control)
            stack.callback(control.close)
            control.coupling.enter(netns, chosen.member)
            stack.callback(control.coupling.withdraw, netns)
            stack.enter_context(_default(where, chosen.control))
            _say(f"{chosen.control}: new connections{_of(chosen)} are of tenant {chosen.member.tenant}")
            while not ended.wait(_LOOK_S):
                control.coupling.sweep()
        except BpfError as error:
            raise UserError(
                f"the kernel refuses {chosen.control}: {in_short(error)}", "`fairq doctor` says what it lacks"
            ) from error
        except OSError as error:
            raise UserError(
                f"the network namespace cannot be set: {error.strerror or error}",
                "run it as root of the machine, not of a container",
            ) from error
    _say(f"{chosen.control}: ended; connections that are open keep it until they close")
    return 0


def _of(chosen: HostOptions) -> str:
    return f" of {chosen.netns}" if chosen.netns else ""


def _say(text: str) -> None:
    print(f"fairq host: {text}", flush=True)


def _opened(stack: contextlib.ExitStack, netns: Path | None) -> Path | None:
    """The namespace by a path that stays its own when its name or its process has gone."""
    if netns is None:
        return None
    fd = os.open(netns, os.O_RDONLY)
    stack.callback(os.close, fd)
    return Path(f"/proc/self/fd/{fd}")


@contextlib.contextmanager
def _alone(netns: Path | None) -> Iterator[None]:
    """No other process does this for the namespace: its end, however it ends, frees the name."""
    with entered(netns):
        name = socket.socket(socket.AF_UNIX)
    with name:
        try:
            with entered(netns):
                name.bind("\0fairq host")
        except OSError:
            raise UserError(
                "another `fairq host` serves this network namespace", "end it first, by Ctrl-C or SIGTERM"
            ) from None
        yield


def _usual() -> str:
    """CUBIC as the default of this namespace, or Reno: the kernel lets a namespace have no other control than
    the machine allows, and always Reno. Returns which.
    """
    try:
        _DEFAULT.write_text("cubic")
    except OSError:
        return "reno"
    return "cubic"


@contextlib.contextmanager
def _default(netns: Path | None, control: str) -> Iterator[None]:
    """The control is the namespace's default, and afterwards the one of before is again."""
    with entered(netns):
        before = _DEFAULT.read_text().strip()
        if before in COUPLED:
            # What a `fairq host` has left that was killed.
            before = _usual()
        _DEFAULT.write_text(control)
    try:
        with entered(netns), socket.socket() as sock:
            found = congestion.of(sock)
        if found != control:
            raise OSError(f"its sockets use {found} and not {control}")
        yield
    finally:
        with entered(netns):
            if _DEFAULT.read_text().strip() == control:
                _DEFAULT.write_text(before)

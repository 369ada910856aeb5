"""The scale shim of a host: it tells bridges the window scales of the host's connections.

    bpf/shim.bpf.c at tc egress and ingress of the uplink <--- map of settings <--- this process

The programs end with the process, however it ends: at tcx with its links; where the kernel has no tcx, by a
lease that the process renews.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from ctypes import c_uint32
from pathlib import Path
from typing import Any

from fairq_ryu.agent import layout, privileges, tcx
from fairq_ryu.agent.libbpf import BpfError, BpfObject, load_library
from fairq_ryu.agent.programs.program import SHIM_PRIORITY, UNIFY_GRACE_S
from fairq_ryu.agent.tc import EGRESS, INGRESS, OwnFilter
from fairq_ryu.agent.tcx import TcxLink
from fairq_ryu.agent.told_scale import MODES
from fairq_ryu.errors import UserError, plain

TCP_ECN = Path("/proc/sys/net/ipv4/tcp_ecn")
_PROGRAMS = {EGRESS: "fq_shim_leaves", INGRESS: "fq_shim_arrives"}
_ACCECN = 3
_FLOWS = 65536
_ZERO = c_uint32(0)
_ALWAYS = 2**63
_RENEWED_S, _LEASE_S = 1.0, 3.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COUNTS = ("told", "untold", "unknown", "unified", "converted")
"""What the programs count (``fq_shim_counts``)."""


def check(mode: str, unify: int | None) -> None:
    """Refuse what this host cannot have. Raises :class:`UserError`."""
    lacking = [name for name in privileges.missing() if name in ("CAP_NET_ADMIN", "CAP_BPF")]
    if lacking:
        raise UserError(
            f"the shim needs root, or {', '.join(lacking)}, to load eBPF and attach it to an interface",
            "run it with sudo",
        )
    if mode == "reserved3" and (unify is None or unify > 7):
        raise UserError(
            "mode reserved3 has room for scales up to 7, and hosts choose larger ones",
            "give --unify 7 or less",
        )
    accecn = int(TCP_ECN.read_text(encoding="ascii"))
    if mode == "reserved" and accecn >= _ACCECN:
        raise UserError(
            f"net.ipv4.tcp_ecn = {accecn}: connections may use AccECN, which has one of the four bits",
            "take --mode reserved3 with --unify 7, or set net.ipv4.tcp_ecn to 2",
        )


class Shim:
    """The programs at one interface. :meth:`close` takes them away."""

    def __init__(
        self,
        interface: str,
        mode: str,
        unify: int | None,
        grace: float = UNIFY_GRACE_S,
        use_tcx: bool = True,
    ) -> None:
        """``mode``: one of :data:`MODES`, or ``off``: nothing is told. ``unify``: the largest scale that
        leaves; None: any. ``grace``: handshakes that begin so soon (s) keep their scales. ``use_tcx``: where
        the kernel has it. Raises :class:`UserError` or :class:`BpfError`; then nothing is left.
        """
        check(mode, unify)
        self.ifindex = _index(interface)
        self._mode = MODES.get(mode, 0)
        self._unify = layout.CONSTANTS["FQ_NO_UNIFYING"] if unify is None else unify
        self._grace = grace
        self._lib = load_library()
        self._links: list[TcxLink] = []
        self._filters: list[OwnFilter] = []
        self._object = BpfObject(self._lib, layout.BPF_DIR / "shim.bpf.o", {"shim_flows": _FLOWS})
        self._config = self._object.map("shim_config", c_uint32, layout.fq_shim_config)
        self._counts = self._object.map("shim_counts", c_uint32, layout.fq_shim_counts)
        self.flows = self._object.map("shim_flows", layout.fq_flow_key, layout.fq_shim_flow)
        self._until_ns = self._unify_ns = 0
        self._tcx = use_tcx and tcx.is_available(self._lib)
        try:
            self.renew()
            for point, name in _PROGRAMS.items():
                self._attach(point, self._object.program_fd(name), name)
        except BaseException:
            self.close()
            raise

    def _attach(self, point: int, program: int, name: str) -> None:
        if self._tcx:
            place = tcx.EGRESS if point == EGRESS else tcx.INGRESS
            self._links.append(TcxLink(self._lib, self.ifindex, program, place))
            return
        own = OwnFilter(self._lib, SHIM_PRIORITY, name)
        own.attach(self.ifindex, program, point)
        self._filters.append(own)

    def renew(self) -> None:
        """Renew the lease, if there is one. After a gap, handshakes may have passed unseen: what is known of
        connections may be of earlier ones with the same ports, and is forgotten. Raises :class:`BpfError`.
        """
        before = self._until_ns
        if time.monotonic_ns() < before:
            if self._tcx:
                return
            self._write(time.monotonic_ns() + int(_LEASE_S * 1e9))
            if time.monotonic_ns() < before:
                return
            # This process was stopped in between, and the lease may have ended meanwhile.
            self._write(0)
        # The programs do nothing now, so nothing is added.
        for keys, _ in self.flows.parts():
            self.flows.delete_all(keys)
        now = time.monotonic_ns()
        self._unify_ns = now + int(self._grace * 1e9)
        self._write(_ALWAYS if self._tcx else now + int(_LEASE_S * 1e9))

    def _write(self, until_ns: int) -> None:
        self._until_ns = until_ns
        self._config.set(
            _ZERO,
            layout.fq_shim_config(
                until_ns=until_ns, unify_ns=self._unify_ns, mode=self._mode, unify=self._unify
            ),
        )

    def counts(self) -> dict[str, int]:
        """What the programs have counted, by the names of :data:`COUNTS`."""
        found: Any = self._counts.get(_ZERO) or layout.fq_shim_counts()
        return {name: int(getattr(found, name)) for name in COUNTS}

    def close(self) -> None:
        """Take the programs away. A second call does nothing."""
        for link in self._links:
            link.close()
        for own in self._filters:
            own.detach(self.ifindex)
        self._links, self._filters = [], []
        self._object.close()


def _index(interface: str) -> int:
    try:
        return socket.if_nametoindex(interface)
    except OSError:
        raise UserError(
            f"there is no interface {interface!r} here",
            "name the uplink of this host or guest; ip link lists the interfaces",
        ) from None


def run(interface: str, mode: str, unify: int | None, grace: float) -> int:
    """Run a shim (see :class:`Shim`) until SIGINT, SIGTERM or SIGHUP, or until its interface has gone. Raises
    :class:`UserError`.
    """
    # Before anything is attached: a signal then waits until it can be answered.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        shim = Shim(interface, mode, unify, grace)
    except BpfError as error:
        raise UserError(str(error), "fairq doctor says what this machine lacks") from error
    try:
        where = plain(interface)
        print(f"fairq shim: {where} ready ({_described(mode, unify)})", file=sys.stderr, flush=True)
        while signal.sigtimedwait(_SIGNALS, _RENEWED_S) is None:
            shim.renew()
            if _index(interface) != shim.ifindex:
                raise UserError(f"interface {where} is another one by now", "start the shim again")
        counts = ", ".join(f"{name} {count}" for name, count in shim.counts().items())
        print(f"fairq shim: {where}: {counts}", file=sys.stderr)
    except BpfError as error:
        raise UserError(f"the shim of {where} ends: {error}", "start it again") from error
    finally:
        shim.close()
    return 0


def _described(mode: str, unify: int | None) -> str:
    told = "scales are not told" if mode == "off" else f"scales are told, {mode}"
    return told if unify is None else f"{told}; unified to {unify}"

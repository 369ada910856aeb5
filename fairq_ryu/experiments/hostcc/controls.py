"""Which congestion control the hosts get for a name of a scenario, and the loader of those of the project.

A control is loaded for one run. It is registered by a link, so that the kernel unregisters it when the run
ends, also after SIGKILL. Connections that still use it keep it until they close.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Collection
from ctypes import c_int, c_uint32, c_uint64
from pathlib import Path
from typing import Any

from fairq_ryu.agent.libbpf import BpfError, BpfObject, load_library
from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments.hostcc import layout
from fairq_ryu.experiments.hostcc.coupling import Coupling, Membership, cookie
from fairq_ryu.experiments.hostcc.names import AVAILABLE, OWN, PREFIX, coupled, kernels, needs_ecn, own
from fairq_ryu.experiments.traffic import congestion
from mininet_topos.controls import LINUX, remedy

TABLE = "control"
"""The table of operations in every object."""
_BTF = Path("/sys/kernel/btf/vmlinux")
_LINK = "bpf_struct_ops_link"


def offered() -> list[str]:
    """The names of the controls that the kernel offers now."""
    return AVAILABLE.read_text().split()


def refusal() -> UserError | None:
    """Why this kernel cannot register a congestion control in eBPF; None: it can."""
    if _BTF.exists() and b"\0%s\0" % _LINK.encode() in _BTF.read_bytes():
        return None
    return UserError(
        f"this kernel registers no TCP congestion controls in eBPF (no {_LINK}, which Linux has since 6.4)",
        f"boot a kernel of 6.4 or newer, or use one of its own: {', '.join(offered())}",
    )


def ask_for(names: Collection[str]) -> list[str]:
    """The controls that the kernel offers when those of Linux among ``names`` were asked for: it loads their
    modules by itself.
    """
    for name in set(map(kernels, names)).intersection(LINUX).difference(offered()):
        with socket.socket() as sock, contextlib.suppress(RuntimeError):
            congestion.choose(sock, name)
    return offered()


def check(names: Collection[str], of_kernel: Collection[str] = ()) -> None:
    """``UserError`` when hosts cannot have some of these controls, with all of them; ``of_kernel``: of these
    the kernel's.
    """
    found = ask_for([*names, *of_kernel])
    there = list(dict.fromkeys((*found, *OWN)))
    faults = [
        UserError(
            f"this kernel does not offer the congestion control {name!r}",
            remedy(name, found if name in of_kernel else there),
        )
        for name in sorted({*names, *of_kernel})
        if name not in (found if name in of_kernel else there) and (own(name) is None or name in of_kernel)
    ]
    if faults:
        raise all_of(faults)


def loaded(name: str) -> BpfObject:
    """One of the project's controls, loaded and not registered. Raises :class:`BpfError`."""
    return BpfObject(load_library(), layout.BPF_DIR / f"{name}.bpf.o", {}, operations=TABLE)


class HostControls:
    """The controls of one run: `provide`, use, `close`."""

    def __init__(self) -> None:
        """Load nothing yet."""
        self._objects: dict[str, BpfObject] = {}
        self._names: dict[str, str] = {}
        self._deadlines: Any = None

    def provide(self, names: Collection[str]) -> None:
        """Make these controls available, those of the kernel where it has them.

        Raises :class:`BpfError` when the kernel refuses one, :class:`UserError` when hosts cannot have it.
        Then those that are loaded already stay until `close`.
        """
        check(names)
        known = offered()
        for name in dict.fromkeys(names):
            ours = own(name)
            if kernels(name) in known or ours is None:
                self._names[name] = kernels(name)
            else:
                self._load(name, ours.registered, known)

    def _load(self, name: str, registered: str, known: Collection[str]) -> None:
        if registered in known:
            raise UserError(
                f"the congestion control {registered} is registered already",
                "wait for the end of the other `fairq run` or `fairq host`",
            )
        why = refusal()
        if why is not None:
            raise why
        source = name.removeprefix(PREFIX)
        control = self._objects[name] = loaded(source)
        control.register(TABLE)
        if registered not in offered():
            raise BpfError(f"the kernel has not registered the congestion control {registered}")
        self._names[name] = registered
        if source == "d2tcp":
            self._deadlines = control.map("deadlines", layout.fq_cc_flow, layout.fq_cc_deadline)

    def name_of(self, name: str) -> str:
        """The name in the kernel of a control that was provided."""
        return self._names[name]

    def described(self) -> dict[str, str]:
        """For each control that was provided, what it is: for the result of a run."""
        return {
            name: f"{registered}, loaded for this run"
            if name in self._objects
            else f"{registered}, of the kernel"
            for name, registered in self._names.items()
        }

    def announce(self, src: str, dst: str, sport: int, dport: int, size: int, deadline_ns: int) -> bool:
        """Tell D2TCP of a flow: IPv4 addresses, ``size`` in bytes, ``deadline_ns`` of the monotonic clock.
        False where D2TCP is not loaded. Raises :class:`BpfError`.
        """
        if self._deadlines is None:
            return False
        flow = layout.fq_cc_flow(_address(src), _address(dst), sport, dport)
        self._deadlines.set(flow, layout.fq_cc_deadline(size, deadline_ns))
        return True

    def coupling(self, name: str) -> Coupling | None:
        """What a control of this name that couples connections is told and says; None for all others. Raises
        :class:`BpfError`.
        """
        return Coupling.of(self._objects[name]) if coupled(name) else None

    def join(self, pid: int, member: Membership) -> None:
        """Tell every control that couples connections whose those of the namespace of process ``pid`` are.
        Raises :class:`BpfError`; ``OSError`` if the namespace cannot be entered.
        """
        for name in self._objects:
            coupling = self.coupling(name)
            if coupling is not None:
                coupling.enter(cookie(pid), member)

    def alpha(self, name: str, descriptor: int) -> Any | None:
        """What the control of this name has computed for a socket of this process, an ``fq_cc_alpha``; None
        before the connection is established, for a control without alpha, and for one of the kernel.
        """
        if name not in self._objects or not needs_ecn(name):
            return None
        table = self._objects[name].map("alphas", c_int, layout.fq_cc_alpha)
        return table.get(c_int(descriptor))

    def left_out(self) -> dict[str, int]:
        """For each control that was loaded, how many reductions of a window the kernel has made without
        asking it (``bpf/left_out.h``): 0 unless the kernel leaves out programs. Raises :class:`BpfError`.
        """
        found = {}
        for name, loaded in self._objects.items():
            count = loaded.map("left_out", c_uint32, c_uint64).get(c_uint32(0))
            found[name] = 0 if count is None else int(count.value)
        return found

    def close(self) -> None:
        """Unregister what was loaded. A second call does nothing."""
        for loaded in self._objects.values():
            loaded.close()
        self._objects.clear()
        self._names.clear()
        self._deadlines = None


def _address(text: str) -> int:
    """An IPv4 address as the program reads it from a packet's header."""
    return int.from_bytes(socket.inet_aton(text), sys.byteorder)

"""eBPF filters at tc egress (or ingress) of ports, and the clsact qdiscs that carry them."""

from __future__ import annotations

import ctypes
import errno
from ctypes import POINTER, c_int, c_size_t, c_uint32
from typing import Any

from fairq_ryu.agent.libbpf import clear_log, error_code, failure
from fairq_ryu.agent.qdisc import has_filters

INGRESS = 1
"""Where a device hands packets to the stack of this machine."""
EGRESS = 2
"""Where packets leave by a device."""
_REPLACE = 1


class _TcHook(ctypes.Structure):
    """``struct bpf_tc_hook``."""

    _fields_ = [
        ("sz", c_size_t),
        ("ifindex", c_int),
        ("attach_point", c_int),
        ("parent", c_uint32),
        ("tail", c_uint32),
    ]


class _TcOpts(ctypes.Structure):
    """``struct bpf_tc_opts``."""

    _fields_ = [
        ("sz", c_size_t),
        ("prog_fd", c_int),
        ("flags", c_uint32),
        ("prog_id", c_uint32),
        ("handle", c_uint32),
        ("priority", c_uint32),
        ("tail", c_uint32),
    ]


def _declare(lib: Any) -> None:
    hook, opts = POINTER(_TcHook), POINTER(_TcOpts)
    for name, arguments in {
        "bpf_tc_hook_create": [hook],
        "bpf_tc_hook_destroy": [hook],
        "bpf_tc_attach": [hook, opts],
        "bpf_tc_detach": [hook, opts],
        "bpf_tc_query": [hook, opts],
    }.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = c_int, arguments


class TcFilter:
    """One eBPF filter at tc egress of interfaces, or at ingress, at a fixed priority and handle. ``point`` is
    :data:`EGRESS` or :data:`INGRESS`.
    """

    def __init__(self, lib: Any, priority: int, handle: int = 1) -> None:
        _declare(lib)
        self._lib, self._priority, self._handle = lib, priority, handle

    def _hook(self, ifindex: int, point: int) -> _TcHook:
        return _TcHook(sz=ctypes.sizeof(_TcHook), ifindex=ifindex, attach_point=point)

    def _opts(self, **extra: int) -> _TcOpts:
        return _TcOpts(sz=ctypes.sizeof(_TcOpts), handle=self._handle, priority=self._priority, **extra)

    def attach(self, ifindex: int, program_fd: int, point: int = EGRESS) -> bool:
        """Attach, in place of what a dead agent may have left. Returns whether the clsact qdisc is new.

        Raises :class:`BpfError`.
        """
        hook = self._hook(ifindex, point)
        result = self._lib.bpf_tc_hook_create(ctypes.byref(hook))
        created: bool = result == 0
        clear_log()  # libbpf logs "Exclusivity flag on" when there is a clsact qdisc already
        if not created and error_code(result) != errno.EEXIST:
            raise failure(f"cannot create a clsact qdisc on interface {ifindex}", error_code(result))
        opts = self._opts(prog_fd=program_fd, flags=_REPLACE)
        result = self._lib.bpf_tc_attach(ctypes.byref(hook), ctypes.byref(opts))
        if result != 0:
            error = failure(f"cannot attach to tc of interface {ifindex}", error_code(result))
            if created:
                self.remove_clsact(ifindex)
            raise error
        return created

    def attached_program(self, ifindex: int, point: int = EGRESS) -> int:
        """The id of the program attached at this priority, 0 if none."""
        hook, opts = self._hook(ifindex, point), self._opts()
        found = self._lib.bpf_tc_query(ctypes.byref(hook), ctypes.byref(opts)) == 0
        clear_log()
        return int(opts.prog_id) if found else 0

    def detach(self, ifindex: int, point: int = EGRESS) -> None:
        """Detach. An interface that was deleted has lost its filter already, which is no error."""
        hook, opts = self._hook(ifindex, point), self._opts()
        self._lib.bpf_tc_detach(ctypes.byref(hook), ctypes.byref(opts))
        clear_log()

    def remove_clsact(self, ifindex: int) -> None:
        """Remove the clsact qdisc with all that is on it."""
        hook = self._hook(ifindex, INGRESS | EGRESS)
        self._lib.bpf_tc_hook_destroy(ctypes.byref(hook))
        clear_log()


class OwnFilter:
    """A filter at tc egress or ingress together with the clsact qdiscs that were created for it.

    The clsact qdisc of a port is removed with the filter if it was created for that filter, or if a dead
    agent had left one there; but not while others have filters on it.
    """

    def __init__(self, lib: Any, priority: int) -> None:
        self.filter = TcFilter(lib, priority)
        self._own_clsact: set[int] = set()
        self._points: dict[int, int] = {}

    def attach(self, ifindex: int, program_fd: int, point: int = EGRESS) -> None:
        """Attach. Raises :class:`BpfError`; then nothing is left on the interface."""
        stale = self.filter.attached_program(ifindex, point) != 0
        created = self.filter.attach(ifindex, program_fd, point)
        self._points[ifindex] = point
        if created or stale:
            self._own_clsact.add(ifindex)

    def exchange(self, ifindex: int, program_fd: int) -> None:
        """Attach another program in place of the one that is attached. Raises :class:`BpfError`."""
        self.filter.attach(ifindex, program_fd, self._points[ifindex])

    def detach(self, ifindex: int) -> None:
        """Detach, and remove the clsact qdisc if it is ours and no filter is left on it."""
        self.filter.detach(ifindex, self._points.pop(ifindex, EGRESS))
        if ifindex in self._own_clsact:
            self._own_clsact.discard(ifindex)
            if not has_filters(ifindex):
                self.filter.remove_clsact(ifindex)

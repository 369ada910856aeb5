"""eBPF programs at tc egress or ingress without a qdisc that carries them (tcx, since Linux 6.6).

A program there cannot take a packet away without an error to its sender: TC_ACT_STOLEN lets the packet
pass. So it serves programs that only look at packets and change them. It runs before all filters of clsact.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_int, c_uint32, c_void_p
from typing import Any

from fairq_ryu.agent.libbpf import clear_log, error_code, failure

# linux/bpf.h: BPF_TCX_INGRESS, BPF_TCX_EGRESS
INGRESS, EGRESS = 46, 47
_MOST = 64  # linux/bpf_mprog.h: programs at one place


def _declare(lib: Any) -> None:
    lib.bpf_link_update.restype = lib.bpf_prog_query.restype = c_int
    lib.bpf_link_update.argtypes = [c_int, c_int, c_void_p]
    lib.bpf_prog_query.argtypes = [
        c_int, c_uint32, c_uint32, POINTER(c_uint32), POINTER(c_uint32), POINTER(c_uint32),
    ]  # fmt: skip


def is_available(lib: Any) -> bool:
    """Whether this kernel has tcx."""
    return _query(lib, 1) is not None  # the loopback device


def programs(lib: Any, ifindex: int) -> list[int]:
    """The ids of the programs at egress of an interface, in the order in which they run."""
    return _query(lib, ifindex) or []


def _query(lib: Any, ifindex: int) -> list[int] | None:
    _declare(lib)
    ids, count, flags = (c_uint32 * _MOST)(), c_uint32(_MOST), c_uint32()
    result = lib.bpf_prog_query(ifindex, EGRESS, 0, ctypes.byref(flags), ids, ctypes.byref(count))
    clear_log()
    return None if result != 0 else list(ids[: count.value])


class TcxLink:
    """A program at egress (or ingress) of an interface, behind those that are there, until :meth:`close` or
    the end of this process, however it ends.
    """

    def __init__(self, lib: Any, ifindex: int, program_fd: int, place: int = EGRESS) -> None:
        """``place``: :data:`EGRESS` or :data:`INGRESS`. Raises :class:`BpfError`, as on a kernel without
        tcx.
        """
        _declare(lib)
        self._lib, self._ifindex = lib, ifindex
        self._fd = lib.bpf_link_create(program_fd, ifindex, place, None)
        if self._fd < 0:
            raise failure(f"cannot attach to tcx of interface {ifindex}", error_code(self._fd))

    def exchange(self, program_fd: int) -> None:
        """Let another program run in place of this one. Raises :class:`BpfError`."""
        result = self._lib.bpf_link_update(self._fd, program_fd, None)
        if result != 0:
            what = f"cannot exchange the program at tcx of interface {self._ifindex}"
            raise failure(what, error_code(result))

    def close(self) -> None:
        """Detach."""
        os.close(self._fd)

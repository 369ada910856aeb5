"""Runs a loaded eBPF program on a packet without a network: packet in, packet out, time taken.

``BPF_PROG_TEST_RUN`` of bpf(2), for the tests of the programs and for ``make bench``. The kernel
gives the program the packet as if it left by an interface of the caller's network namespace; the
program itself, its maps and its helpers are the real ones.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import socket
from ctypes import c_uint32, c_uint64
from types import TracebackType
from typing import NamedTuple

from fairq_ryu.agent.libbpf import BpfError, load_library
from fairq_ryu.agent.programs.program import WINDOW_PRIORITY
from fairq_ryu.agent.tc import EGRESS, TcFilter

# TC_ACT_UNSPEC, what all our programs return: let the next filter decide.
UNSPEC = -1

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_BPF_PROG_LOAD = 5
_BPF_PROG_TEST_RUN = 10
_BPF_PROG_TYPE_SCHED_CLS = 3
# The card has made a sum of the packet, which has to fit it afterwards (since Linux 6.10).
_CHECKSUM_COMPLETE = 1 << 2
# Room behind the packet: a program that made a packet longer, which none should, would be seen.
_ROOM = 256
# The kernel refuses less room than its own struct __sk_buff has.
_CONTEXT_ROOM = 1024
_libc = ctypes.CDLL(None, use_errno=True)


class _SkBuff(ctypes.Structure):
    """The first fields of ``struct __sk_buff``. The kernel refuses values in those that are unused here."""

    _fields_ = [
        ("len", c_uint32),
        ("pkt_type", c_uint32),
        ("mark", c_uint32),
        ("queue_mapping", c_uint32),
        ("protocol", c_uint32),
        ("vlan_present", c_uint32),
        ("vlan_tci", c_uint32),
        ("vlan_proto", c_uint32),
        ("priority", c_uint32),
        ("ingress_ifindex", c_uint32),
        ("ifindex", c_uint32),
        ("tc_index", c_uint32),
        ("cb", c_uint32 * 5),
        ("unused", c_uint32 * 23),
        ("wire_len", c_uint32),
        ("gso_segs", c_uint32),
        ("sk", c_uint64),
        ("gso_size", c_uint32),
        ("pad", c_uint32),
    ]


class _TestRun(ctypes.Structure):
    """The ``test`` member of ``union bpf_attr``, as of Linux 5.15."""

    _fields_ = [
        ("prog_fd", c_uint32),
        ("retval", c_uint32),
        ("data_size_in", c_uint32),
        ("data_size_out", c_uint32),
        ("data_in", c_uint64),
        ("data_out", c_uint64),
        ("repeat", c_uint32),
        ("duration", c_uint32),
        ("ctx_size_in", c_uint32),
        ("ctx_size_out", c_uint32),
        ("ctx_in", c_uint64),
        ("ctx_out", c_uint64),
        ("flags", c_uint32),
        ("cpu", c_uint32),
    ]


class _ProgLoad(ctypes.Structure):
    """The first fields of ``union bpf_attr`` for loading a program."""

    _fields_ = [
        ("prog_type", c_uint32),
        ("insn_cnt", c_uint32),
        ("insns", c_uint64),
        ("license", c_uint64),
    ]


class Segments(NamedTuple):
    """What a packet of several segments is on the wire: their ``number`` (0: a guest has left it out), their
    ``size`` without headers, and ``wire_len``, the bytes of all with their headers.
    """

    number: int
    size: int
    wire_len: int


class Run(NamedTuple):
    """The result of a run: the program's ``verdict`` (signed), the packet after it, the mean time of one run
    (ns), and the control block and mark that the next program would find.
    """

    verdict: int
    packet: bytes
    duration_ns: int
    control: tuple[int, ...]
    mark: int


class LoadedProgram:
    """A loaded tc program with its own file descriptor; close it, or use ``with``."""

    def __init__(self, fd: int) -> None:
        """Take over the file descriptor ``fd``."""
        self._fd = fd

    @classmethod
    def attached(cls, ifindex: int, priority: int = WINDOW_PRIORITY, point: int = EGRESS) -> LoadedProgram:
        """The agent's program of a priority at tc egress of an interface, or at ingress. :class:`BpfError` if
        none is.
        """
        lib = load_library()
        program_id = TcFilter(lib, priority).attached_program(ifindex, point)
        fd = lib.bpf_prog_get_fd_by_id(program_id) if program_id else -1
        if fd < 0:
            raise BpfError(f"tc of interface {ifindex} has no program of fairq_ryu")
        return cls(int(fd))

    @classmethod
    def empty(cls) -> LoadedProgram:
        """Load a program that only returns :data:`UNSPEC`: the baseline of the benchmark."""
        # r0 = -1; exit
        insns = ctypes.create_string_buffer(bytes.fromhex("b7000000ffffffff 9500000000000000"), 16)
        licence = ctypes.create_string_buffer(b"GPL")
        attr = _ProgLoad(
            prog_type=_BPF_PROG_TYPE_SCHED_CLS,
            insn_cnt=2,
            insns=ctypes.addressof(insns),
            license=ctypes.addressof(licence),
        )
        return cls(_bpf(_BPF_PROG_LOAD, attr, "cannot load an empty program"))

    def run(
        self,
        packet: bytes,
        ifindex: int,
        repeat: int = 1,
        control: tuple[int, ...] = (),
        segments: Segments | None = None,
        arrived_by: int = 0,
        summed: bool = False,
    ) -> Run:
        """Run the program on ``packet`` (an Ethernet frame) as if it left through an interface. Raises
        :class:`BpfError` if the kernel refuses the packet, or if its sum is wrong afterwards.

        ``repeat``: number of runs on the same buffer. A later run finds the changes of the first one, so a
        window is lowered only once. ``control``: the control block that another program has left.
        ``segments``: it is a packet of several segments, as with segmentation offload. ``arrived_by``: the
        interface that the kernel has noted for it; 0: none, as for what Open vSwitch sends from userspace.
        ``summed``: a network card has made a sum over the packet (``CHECKSUM_COMPLETE``), by which a receiver
        judges it. Kernels before 6.10 refuse that.
        """
        data = ctypes.create_string_buffer(packet, max(1, len(packet)))
        out = ctypes.create_string_buffer(len(packet) + _ROOM)
        context = _SkBuff(ifindex=ifindex, ingress_ifindex=arrived_by, cb=control)
        if segments is not None:
            context.gso_segs, context.gso_size, context.wire_len = segments
        left = ctypes.create_string_buffer(_CONTEXT_ROOM)
        attr = _TestRun(
            prog_fd=self._fd,
            data_size_in=len(packet),
            data_size_out=len(out),
            data_in=ctypes.addressof(data),
            data_out=ctypes.addressof(out),
            repeat=repeat,
            ctx_size_in=ctypes.sizeof(context),
            ctx_in=ctypes.addressof(context),
            ctx_size_out=len(left),
            ctx_out=ctypes.addressof(left),
            flags=_CHECKSUM_COMPLETE if summed else 0,
        )
        _bpf(_BPF_PROG_TEST_RUN, attr, f"cannot run the program on {len(packet)} bytes")
        verdict = ctypes.c_int32(attr.retval).value
        found = out.raw[: attr.data_size_out]
        after = _SkBuff.from_buffer(left)
        return Run(verdict, found, int(attr.duration), tuple(after.cb), int(after.mark))

    def close(self) -> None:
        """Close the file descriptor. A second call has no effect."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> LoadedProgram:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@functools.cache
def can_sum() -> bool:
    """Whether this kernel runs programs on packets that are ``summed``."""
    with LoadedProgram.empty() as program:
        try:
            program.run(bytes(64), socket.if_nametoindex("lo"), summed=True)
        except BpfError:
            return False
    return True


def _bpf(command: int, attr: ctypes.Structure, what: str) -> int:
    """Call bpf(2), again if a signal interrupted it. Raises :class:`BpfError`."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise BpfError(f"{what}: the number of bpf(2) on {platform.machine()} is not known")
    while True:
        result = int(_libc.syscall(number, command, ctypes.byref(attr), ctypes.sizeof(attr)))
        if result >= 0:
            return result
        code = ctypes.get_errno()
        if code not in (errno.EINTR, errno.EAGAIN):
            raise BpfError(f"{what}: {os.strerror(code)}")

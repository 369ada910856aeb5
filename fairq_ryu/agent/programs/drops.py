"""Packets that queues refused, for controllers that asked: read from the kernel, sifted, held to a rate."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from ctypes import c_uint32
from dataclasses import dataclass
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, BpfObject, Map
from fairq_ryu.agent.ringbuf import RingBuffer

log = logging.getLogger(__name__)
_NS = 1_000_000_000
# A burst of this much of a second's rate may pass at once.
_BURST = 0.1
_IP, _IPV6, _TCP = 0x0800, 0x86DD, 6
_VLAN_TYPES = (0x8100, 0x88A8)
_IPV6_EXTENSIONS = (0, 43, 60)
_FIN_SYN = 0x03

Frame = tuple[int, bytes, int, bool]  # ifindex, the packet's beginning, its whole length, taken?


def can_be_lost(frame: bytes) -> bool:
    """Is this a TCP segment that its sender will miss: one with payload, SYN or FIN? Anything else, and what
    cannot be read, is not.
    """
    try:
        return _can_be_lost(frame)
    except IndexError:
        return False


def _can_be_lost(frame: bytes) -> bool:
    at = 12
    kind = frame[at] << 8 | frame[at + 1]
    for _ in range(2):
        if kind not in _VLAN_TYPES:
            break
        at += 4
        kind = frame[at] << 8 | frame[at + 1]
    ip = at + 2
    if kind == _IP:
        if frame[ip] >> 4 != 4 or frame[ip + 9] != _TCP or (frame[ip + 6] << 8 | frame[ip + 7]) & 0x3FFF:
            return False
        tcp = ip + (frame[ip] & 15) * 4
        end = ip + (frame[ip + 2] << 8 | frame[ip + 3])
    elif kind == _IPV6:
        following, tcp = frame[ip + 6], ip + 40
        end = tcp + (frame[ip + 4] << 8 | frame[ip + 5])
        for _ in range(6):
            if following not in _IPV6_EXTENSIONS:
                break
            following, tcp = frame[tcp], tcp + (frame[tcp + 1] + 1) * 8
        if following != _TCP:
            return False
    else:
        return False
    header = (frame[tcp + 12] >> 4) * 4
    return header >= 20 and (bool(frame[tcp + 13] & _FIN_SYN) or end > tcp + header)


class Allowance:
    """A token bucket: at most ``rate`` a second, and a tenth of that at once. Times in ns of one clock."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate * _BURST)
        self._tokens, self._then = self._most, 0

    def take(self, now_ns: int) -> bool:
        """May one more pass?"""
        if now_ns > self._then:
            self._tokens = min(self._most, self._tokens + (now_ns - self._then) * self._rate / _NS)
            self._then = now_ns
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


@dataclass(slots=True)
class DropCounts:
    """Dropped packets: ``told`` to controllers; of no interest to them (``passed_over``); held back by the
    rate or by controllers that do not read (``held_back``).
    """

    told: int = 0
    passed_over: int = 0
    held_back: int = 0


class DropReader:
    """The eBPF program that tells of drops, attached only while :meth:`watch` says so.

    Where the kernel cannot tell (:attr:`available` False, :attr:`reason` says why) it does nothing.
    """

    def __init__(self, lib: Any, shared: dict[str, Map], take: Callable[[Frame], None]) -> None:
        """``shared`` are the maps of the queue programs that the program reads."""
        self._object: BpfObject | None = None
        self._ring: RingBuffer | None = None
        self._take = take
        self._watching = False
        self.reason = ""
        try:
            self._object = BpfObject(
                lib,
                layout.BPF_DIR / "drops.bpf.o",
                {},
                {name: table.fd for name, table in shared.items()},
            )
            self._count = self._object.map("drop_count", c_uint32, layout.fq_ring_count)
            ring = self._object.map("drops", c_uint32, layout.fq_drop)
            self._ring = RingBuffer(lib, ring, self._on_drop)
        except BpfError as error:
            self.close()
            self.reason = f"this kernel does not tell of dropped packets (Linux 5.17 or later does): {error}"
            log.warning("%s", self.reason.partition(" (libbpf")[0])

    @property
    def available(self) -> bool:
        """Can it be asked for?"""
        return self._object is not None

    @property
    def taker(self) -> int:
        """The program for tc egress that takes what the queue would refuse: its file descriptor."""
        assert self._object is not None
        return self._object.program_fd("fq_take")

    @property
    def fd(self) -> int | None:
        """Readable when packets wait; None where there can be none."""
        return self._ring.fd if self._ring else None

    def _on_drop(self, address: int, size: int) -> None:
        if size < ctypes.sizeof(layout.fq_drop):
            return
        head = ctypes.string_at(address, layout.fq_drop.data.offset)
        drop = layout.fq_drop.from_buffer_copy(head.ljust(ctypes.sizeof(layout.fq_drop), b"\0"))
        frame = ctypes.string_at(address + layout.fq_drop.data.offset, drop.captured)
        length = drop.len
        if drop.vlan_proto and len(frame) >= 12:
            # The kernel holds the tag beside the packet; on the wire it stands in it.
            proto = ctypes.c_uint16(drop.vlan_proto)
            frame = frame[:12] + bytes(proto) + drop.vlan_tci.to_bytes(2, "big") + frame[12:]
            length += 4
        self._take((drop.ifindex, frame, length, bool(drop.taken)))

    def watch(self, wanted: bool) -> None:
        """Attach or detach the program. Raises :class:`BpfError`."""
        if self._object is None or wanted == self._watching:
            return
        if wanted:
            self._object.attach("fq_dropped")
        else:
            self._object.detach_all()
        self._watching = wanted

    def read(self, most: int) -> None:
        """Hand on what has come, at most ``most`` packets."""
        if self._ring is not None:
            self._ring.read(most)

    @property
    def lost(self) -> int:
        """Packets for which the ring buffer had no room."""
        if self._object is None:
            return 0
        count = self._count.get(c_uint32(0))
        return int(count.lost) if count else 0

    def close(self) -> None:
        """Detach and free. A second call does nothing."""
        if self._ring is not None:
            self._ring.close()
        if self._object is not None:
            self._object.close()
        self._ring = self._object = None
        self._watching = False

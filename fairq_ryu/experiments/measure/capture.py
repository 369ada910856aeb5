"""Captures ACKs at the hosts: as receivers sent them, and as they reached the senders.

Each host's interface has a ring of the kernel (packet(7), TPACKET_V3) with a filter for TCP over IPv4. The
process wakes for a whole block and writes it to a file without parsing it, so that it uses little processor
time during the measurement. `caught` reads the files afterwards, and `acks.check` checks them.
"""

from __future__ import annotations

import ctypes
import mmap
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairq_ryu.experiments.measure import acks
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer
from fairq_ryu.experiments.traffic.namespaces import entered

BLOCK = 1 << 18  # bytes; the kernel hands over a block when it is full, or after RETIRE_MS
BLOCKS = 16
RETIRE_MS = 100
FRAME = 2048
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 5, 6, 10
_SO_ATTACH_FILTER = 26
OUTGOING = 4  # packet type: from this host
_TPACKET_V3 = 2
_ETH_IP = 0x0800
_HOST = 0  # packet type: to this host
_BLOCK_HEAD = struct.Struct("=IIIIIIQ")  # version, offset to private, status, packets, first, length, number
_PACKET_HEAD = struct.Struct("=IIIIIIHH")  # next, s, ns, caught, length, status, mac, net
_USER = 1
_CHECKSUM_NOT_READY = 8


def _filter(kind: int) -> bytes:
    """Classic BPF: whole TCP packets over IPv4 of this packet type, nothing else."""
    load_byte, load_half, equal, give = 0x30, 0x28, 0x15, 0x06
    packet_type = 0xFFFFF000 + 4  # SKF_AD_OFF + SKF_AD_PKTTYPE
    steps = [
        (load_byte, 0, 0, packet_type), (equal, 0, 5, kind),
        (load_half, 0, 0, 12), (equal, 0, 3, _ETH_IP),
        (load_byte, 0, 0, 23), (equal, 0, 1, socket.IPPROTO_TCP),
        (give, 0, 0, 0x40000), (give, 0, 0, 0),
    ]  # fmt: skip
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def receive_tcp_only(sock: socket.socket, kind: int) -> None:
    """Let a packet socket receive whole TCP packets over IPv4 of this packet type, nothing else."""
    code = ctypes.create_string_buffer(_filter(kind))
    program = struct.pack("HL", len(code.raw) // 8, ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


class _Ring:
    """One socket with its ring; captured blocks are written to a file."""

    def __init__(self, interface: str, arriving: bool, path: Path) -> None:
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        receive_tcp_only(self.sock, _HOST if arriving else OUTGOING)
        self.sock.setsockopt(_SOL_PACKET, _PACKET_VERSION, struct.pack("i", _TPACKET_V3))
        request = struct.pack("IIIIIII", BLOCK, BLOCKS, FRAME, BLOCK // FRAME * BLOCKS, RETIRE_MS, 0, 0)
        self.sock.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._ring = mmap.mmap(self.sock.fileno(), BLOCK * BLOCKS)
        self._next = 0
        self._file = path.open("wb")
        self.sock.bind((interface, 3))  # ETH_P_ALL is required to see frames that the host sends

    def take(self) -> None:
        """Write every block that the kernel has filled to the file."""
        while True:
            start = self._next * BLOCK
            _, _, status, _, _, length, _ = _BLOCK_HEAD.unpack_from(self._ring, start)
            if not status & _USER:
                return
            self._file.write(self._ring[start : start + length])
            struct.pack_into("=I", self._ring, start + 8, 0)
            self._next = (self._next + 1) % BLOCKS

    def missed(self) -> int:
        """The number of packets that were lost since the last call because the ring was full."""
        _, drops, _ = struct.unpack("III", self.sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12))
        return int(drops)

    def close(self) -> None:
        self.take()
        self._file.close()
        self._ring.close()


@dataclass(frozen=True)
class _Place:
    """An interface to capture at, in the namespace of process ``pid``."""

    pid: int
    interface: str
    arriving: bool
    path: Path


class Capture:
    """Commands: ``start`` names the places, ``end`` reads the rings, closes them and checks the captures."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._rings: list[_Ring] = []
        self._places: list[_Place] = []
        answer("ready")

    def command(self, order: Json) -> None:
        if order["cmd"] == "start":
            for number, each in enumerate(order["places"]):
                path = Path(order["directory"]) / f"capture-{number}"
                self._places.append(_Place(each["pid"], each["interface"], each["arriving"], path))
            self._start()
            answer("start")
        else:
            answer("end", **self._end())

    def _start(self) -> None:
        for place in self._places:
            with entered(place.pid):
                ring = _Ring(place.interface, place.arriving, place.path)
            self._rings.append(ring)
            self._loop.add(ring.sock, selectors.EVENT_READ, _taker(ring))

    def _end(self) -> Json:
        time.sleep(3 * RETIRE_MS / 1000)  # by then the kernel has handed over all blocks
        missed = 0
        for ring in self._rings:
            ring.take()
            missed += ring.missed()
            self._loop.selector.unregister(ring.sock)
            ring.close()
            ring.sock.close()
        self._rings.clear()
        sent = [_segments(each.path) for each in self._places if not each.arriving]
        came = [_segments(each.path) for each in self._places if each.arriving]
        found = acks.check(sent, came)
        for place in self._places:
            place.path.unlink()
        self._places.clear()
        return {**found._asdict(), "missed": missed}


def _taker(ring: _Ring) -> Callable[[int], None]:
    return lambda _events: ring.take()


def _segments(path: Path) -> Iterator[acks.Segment]:
    if not path.stat().st_size:  # an empty file cannot be mapped
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for at, frame, unfinished in caught(data):
            yield acks.segment(at, frame, unfinished)


def caught(data: bytes | mmap.mmap) -> Iterator[tuple[int, bytes, bool]]:
    """The frames of a file of blocks, in order: the time of each in ns, its bytes, and whether its checksum
    is left to the network card.
    """
    start = 0
    while start + _BLOCK_HEAD.size <= len(data):
        _, _, _, packets, first, length, _ = _BLOCK_HEAD.unpack_from(data, start)
        at = start + first
        for _ in range(packets):
            step, seconds, ns, size, _, status, mac, _ = _PACKET_HEAD.unpack_from(data, at)
            frame = data[at + mac : at + mac + size]
            yield seconds * 1_000_000_000 + ns, frame, bool(status & _CHECKSUM_NOT_READY)
            at += step
        start += length

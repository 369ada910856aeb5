"""The frames of floods: TCP segments and others, many thousand, made by numpy in a moment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairq_ryu.packet import headers
from fairq_ryu.packet.addresses import packed

SIZE = 60
"""Bytes of each frame: the least that Ethernet has."""
_IP_AT, _TCP_AT = headers.ETHERNET_SIZE, headers.ETHERNET_SIZE + headers.IPV4.size
_WORD, _NUMBER = np.dtype(">u2"), np.dtype(">u4")
_TTL = 64
_UDP = 17

Numbers = NDArray[Any]


class End(NamedTuple):
    """A host: its MAC address and its IPv4 address, as text."""

    mac: str
    ip: str

    @property
    def number(self) -> int:
        """Its IPv4 address."""
        return int.from_bytes(packed(self.ip))


def strangers(number: int) -> Numbers:
    """So many IPv4 addresses to which no host has a route: 198.18.0.0/15, which is for measurements."""
    return (198 << 24 | 18 << 16) + np.arange(number, dtype=np.uint32) % (1 << 17)


def ports(number: int) -> Numbers:
    """So many TCP ports; together with :func:`strangers`, no pair is there twice."""
    return (1024 + np.arange(number, dtype=np.uint32) * 7919 % 64_000).astype(np.uint32)


def segments(
    macs: tuple[str, str],
    addresses: tuple[Numbers | int, Numbers | int],
    tcp_ports: tuple[Numbers | int, Numbers | int],
    numbers: tuple[Numbers | int, Numbers | int],
    flags: int,
    number: int,
    data: int = 0,
) -> list[bytes]:
    """``number`` TCP segments, of a source and a target each, with so many bytes of data, 6 at most;
    ``numbers``: sequence and acknowledgement.
    """
    size = headers.TCP.size + data
    rows = _frames(macs, addresses, headers.IPPROTO_TCP, size, number)
    tcp = rows[:, _TCP_AT : _TCP_AT + headers.TCP.size]
    for at, value in zip((0, 2), tcp_ports, strict=True):
        tcp[:, at : at + 2].view(_WORD)[:, 0] = value
    for at, value in zip((4, 8), numbers, strict=True):
        tcp[:, at : at + 4].view(_NUMBER)[:, 0] = value
    tcp[:, 12] = headers.TCP.size << 2
    tcp[:, 13] = flags
    tcp[:, 14:16].view(_WORD)[:, 0] = 512
    pseudo = _sum(rows[:, _IP_AT + 12 : _TCP_AT]) + headers.IPPROTO_TCP + size
    _finish(tcp, headers.TCP_CHECKSUM_AT, pseudo + _sum(rows[:, _TCP_AT:]))
    return [row.tobytes() for row in rows]


def from_anybody(target: End, number: int) -> list[bytes]:
    """UDP packets to a host, each from another MAC address and another IP address."""
    rows = _frames((target.mac, target.mac), (strangers(number), target.number), _UDP, 8, number)
    rows[:, 6:12] = _macs(number)
    rows[:, _TCP_AT : _TCP_AT + 6] = np.frombuffer(bytes((4, 0, 0, 9, 0, 8)), np.uint8)
    return [row.tobytes() for row in rows]


def questions(number: int) -> list[bytes]:
    """ARP requests for as many addresses that nobody has, each from another host that does not exist."""
    rows = np.zeros((number, SIZE), np.uint8)
    rows[:, :6] = 255
    rows[:, 6:12] = rows[:, 22:28] = _macs(number)
    nobody = bytes(6), bytes(4), bytes(6), bytes(4)
    fixed = headers.ARP.pack(1, headers.ETH_IP, 6, 4, headers.ARP_REQUEST, *nobody)
    rows[:, 12:22] = np.frombuffer(headers.ETH_ARP.to_bytes(2) + fixed[:8], np.uint8)
    rows[:, 28:32].view(_NUMBER)[:, 0] = strangers(number)
    rows[:, 38:42].view(_NUMBER)[:, 0] = strangers(number)[::-1]
    return [row.tobytes() for row in rows]


def in_turn(*lists: list[bytes]) -> list[bytes]:
    """The first of each, then the second of each, and so on."""
    return [frame for group in zip(*lists, strict=True) for frame in group]


def late(frames: list[bytes], places: int) -> list[bytes]:
    """The same, so many places later: the last ones come first."""
    return frames[-places:] + frames[:-places]


def _macs(number: int) -> Numbers:
    """MAC addresses that are administered locally."""
    rows = np.zeros((number, 6), np.uint8)
    rows[:, 0] = 2
    rows[:, 2:].view(_NUMBER)[:, 0] = (0xAB << 24) + np.arange(number, dtype=np.uint32)
    return rows


def _frames(
    macs: tuple[str, str],
    addresses: tuple[Numbers | int, Numbers | int],
    protocol: int,
    size: int,
    number: int,
) -> Numbers:
    """With an IP packet of ``size`` bytes behind its header."""
    rows = np.zeros((number, SIZE), np.uint8)
    ethernet = headers.mac_bytes(macs[1]) + headers.mac_bytes(macs[0]) + headers.ETH_IP.to_bytes(2)
    rows[:, :_IP_AT] = np.frombuffer(ethernet, np.uint8)
    ip = rows[:, _IP_AT:_TCP_AT]
    fixed = headers.IPV4.pack(0x45, 0, headers.IPV4.size + size, 0, 0, _TTL, protocol, 0, bytes(4), bytes(4))
    ip[:] = np.frombuffer(fixed, np.uint8)
    for at, value in zip((12, 16), addresses, strict=True):
        ip[:, at : at + 4].view(_NUMBER)[:, 0] = value
    _finish(ip, 10, _sum(ip))
    return rows


def _sum(part: Numbers) -> Numbers:
    """Of the words of each row."""
    return part.view(_WORD).sum(axis=1, dtype=np.uint32)


def _finish(part: Numbers, at: int, total: Numbers) -> None:
    """Write the checksum of each row."""
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    part[:, at : at + 2].view(_WORD)[:, 0] = ~total & 0xFFFF

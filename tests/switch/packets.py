"""Builds and reads Ethernet frames with TCP, written from the RFCs.

Nothing here is imported from the package under test: its packets are checked with this module.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, replace
from typing import NamedTuple

VLAN = 0x8100
QINQ = 0x88A8
IPV4 = 0x0800
IPV6 = 0x86DD
HOP_BY_HOP, ROUTING, DESTINATION = 0, 43, 60
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32, "E": 64, "C": 128}
MACS = bytes.fromhex("020000000002 020000000001")
NOP = b"\x01"


def ones_sum(data: bytes) -> int:
    """The one's complement sum of 16-bit words (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data: bytes) -> int:
    return ~ones_sum(data) & 0xFFFF


# TCP options


def mss(value: int) -> bytes:
    return struct.pack(">BBH", 2, 4, value)


def wscale(shift: int) -> bytes:
    return struct.pack(">BBB", 3, 3, shift)


def timestamps(value: int = 0x01020304, echo: int = 0x05060708) -> bytes:
    return struct.pack(">BBII", 8, 10, value, echo)


def sack_permitted() -> bytes:
    return b"\x04\x02"


def sack(*edges: int) -> bytes:
    return struct.pack(f">BB{len(edges)}I", 5, 2 + 4 * len(edges), *edges)


def padded(options: bytes) -> bytes:
    """Options to a whole number of words, with end-of-options and zeros."""
    return options + b"\0" * (-len(options) % 4)


def syn_options(mss_value: int | None, shift: int | None, rest: bytes = b"") -> bytes:
    """The options of a SYN; None leaves one out."""
    options = b"" if mss_value is None else mss(mss_value)
    options += b"" if shift is None else NOP + wscale(shift)
    return padded(options + rest)


@dataclass(frozen=True)
class Segment:
    """A TCP segment with all its outer headers; :meth:`frame` returns its bytes.

    ``vlans`` are (TPID, TCI) from the outside in; ``extensions`` are (type, body) of IPv6 extension headers,
    body being the bytes after next header and length. ``checksum_error`` is added to the right TCP checksum;
    ``trailer`` is Ethernet padding behind the IP packet.
    """

    src: str = "10.0.0.1"
    dst: str = "10.0.0.2"
    sport: int = 40000
    dport: int = 80
    seq: int = 1000
    ack: int = 0
    flags: str = "A"
    window: int = 65535
    options: bytes = b""
    payload: bytes = b""
    urgent: int = 0
    reserved: int = 0
    vlans: tuple[tuple[int, int], ...] = ()
    ip_options: bytes = b""
    extensions: tuple[tuple[int, bytes], ...] = ()
    checksum_error: int = 0
    trailer: bytes = b""
    ttl: int = 63
    tos: int = 0

    def _pseudo(self, length: int) -> bytes:
        ends = ipaddress.ip_address(self.src).packed + ipaddress.ip_address(self.dst).packed
        return ends + (struct.pack(">BBH", 0, 6, length) if len(ends) == 8 else struct.pack(">II", length, 6))

    def tcp(self) -> bytes:
        assert len(self.options) % 4 == 0
        bits = sum(FLAGS[f] for f in self.flags)
        offset = (20 + len(self.options)) // 4
        head = struct.pack(
            ">HHIIBBHHH",
            self.sport,
            self.dport,
            self.seq,
            self.ack,
            offset << 4 | self.reserved,
            bits,
            self.window,
            0,
            self.urgent,
        )
        whole = head + self.options + self.payload
        right = checksum(self._pseudo(len(whole)) + whole)
        stored = right
        if self.checksum_error:
            stored = (right + self.checksum_error) & 0xFFFF
        return whole[:16] + struct.pack(">H", stored) + whole[18:]

    def frame(self) -> bytes:
        tcp = self.tcp()
        if ":" in self.src:
            ethertype, ip = IPV6, self._ipv6(tcp)
        else:
            ethertype, ip = IPV4, self._ipv4(tcp)
        ethernet = MACS
        for tpid, tci in self.vlans:
            ethernet += struct.pack(">HH", tpid, tci)
        return ethernet + struct.pack(">H", ethertype) + ip + tcp + self.trailer

    def _ipv4(self, tcp: bytes) -> bytes:
        assert len(self.ip_options) % 4 == 0
        length = 20 + len(self.ip_options)
        ends = ipaddress.ip_address(self.src).packed + ipaddress.ip_address(self.dst).packed
        head = (
            struct.pack(
                ">BBHHHBBH", 0x40 | length // 4, self.tos, length + len(tcp), 0x1234, 0x4000, self.ttl, 6, 0
            )
            + ends
            + self.ip_options
        )
        return head[:10] + struct.pack(">H", checksum(head)) + head[12:]

    def _ipv6(self, tcp: bytes) -> bytes:
        extensions = b""
        following = 6
        for kind, body in reversed(self.extensions):
            assert len(body) % 8 == 6
            extensions = struct.pack(">BB", following, len(body) // 8) + body + extensions
            following = kind
        return (
            struct.pack(">IHBB", 6 << 28 | self.tos << 20, len(extensions) + len(tcp), following, self.ttl)
            + ipaddress.ip_address(self.src).packed
            + ipaddress.ip_address(self.dst).packed
            + extensions
        )

    def but(self, **changes: object) -> Segment:
        """The same segment with other fields."""
        return replace(self, **changes)  # type: ignore[arg-type]


class View(NamedTuple):
    """The offsets in a frame that is complete and well-formed."""

    version: int
    ip: int  # offset of the IP header
    tcp: int  # offset of the TCP header
    end: int  # offset of the first byte behind the IP packet
    pseudo: bytes


def view(frame: bytes) -> View | None:
    """Find TCP in a frame; None if there is none, or if it is incomplete or has wrong lengths."""
    try:
        return _view(frame)
    except (IndexError, struct.error):
        return None


def _view(frame: bytes) -> View | None:
    at = 12
    tags = 0
    kind = struct.unpack_from(">H", frame, at)[0]
    while kind in (VLAN, QINQ) and tags < 2:
        at += 4
        tags += 1
        kind = struct.unpack_from(">H", frame, at)[0]
    ip = at + 2
    if kind == IPV4:
        version_ihl, _, total, _, fragment, _, protocol, _ = struct.unpack_from(">BBHHHBBH", frame, ip)
        if len(frame) < ip + 20 or version_ihl >> 4 != 4 or protocol != 6 or fragment & 0x3FFF:
            return None
        if version_ihl & 15 < 5:
            return None
        tcp, end = ip + 4 * (version_ihl & 15), ip + total
        pseudo = frame[ip + 12 : ip + 20] + struct.pack(">BBH", 0, 6, max(0, end - tcp) & 0xFFFF)
        version = 4
    elif kind == IPV6:
        first, length, following, _ = struct.unpack_from(">IHBB", frame, ip)
        if len(frame) < ip + 40 or first >> 28 != 6:
            return None
        tcp, end = ip + 40, ip + 40 + length
        while following in (HOP_BY_HOP, ROUTING, DESTINATION):
            following, units = frame[tcp], frame[tcp + 1]
            tcp += 8 * (units + 1)
        if following != 6:
            return None
        pseudo = frame[ip + 8 : ip + 40] + struct.pack(">II", max(0, end - tcp), 6)
        version = 6
    else:
        return None
    if end > len(frame) or tcp + 20 > end or frame[tcp + 12] >> 4 < 5:
        return None
    if tcp + 4 * (frame[tcp + 12] >> 4) > end:
        return None
    return View(version, ip, tcp, end, pseudo)


def window(frame: bytes) -> int:
    """The window field as on the wire."""
    found = view(frame)
    assert found is not None
    return int(struct.unpack_from(">H", frame, found.tcp + 14)[0])


def residue(frame: bytes) -> int:
    """The error of the TCP checksum: 0 if it is right."""
    found = view(frame)
    assert found is not None
    return ones_sum(found.pseudo + frame[found.tcp : found.end]) % 0xFFFF


def outside_window(frame: bytes) -> bytes:
    """The frame without its window and TCP checksum fields."""
    found = view(frame)
    assert found is not None
    return frame[: found.tcp + 14] + frame[found.tcp + 18 :]


def check_sound(before: bytes, after: bytes) -> None:
    """A frame may leave unchanged; or with a smaller window, the same checksum error as before, and nothing
    else changed.
    """
    if before == after:
        return
    assert view(before) is not None, "a frame that is not sound TCP was changed"
    assert outside_window(before) == outside_window(after)
    assert window(after) < window(before)
    assert residue(after) == residue(before)

"""The Internet checksum (RFC 1071) over any data and over a TCP segment, and its update (RFC 1624)."""

from __future__ import annotations

import struct

from fairq_ryu.packet.headers import IPPROTO_TCP, TCP_CHECKSUM_AT
from fairq_ryu.packet.parse import tcp_packet

_ALL_ONES = 0xFFFF
_PSEUDO_HEADER = struct.Struct("!HH")


def ones_complement_sum(data: bytes) -> int:
    """The one's complement sum of the 16-bit words of ``data``; 0 only if all of them are 0. It is 0xFFFF if
    the data contains its own checksum and that is right.
    """
    if len(data) % 2:
        data += b"\0"
    # 2**16 is 1 modulo 0xFFFF, so the sum of the words is the number itself modulo that.
    total = int.from_bytes(data, "big")
    return total % _ALL_ONES or (_ALL_ONES if total else 0)


def internet_checksum(data: bytes) -> int:
    """The checksum of ``data``; 0 if ``data`` contains its own checksum and that is right."""
    return _ALL_ONES - ones_complement_sum(data)


def tcp_checksum(addresses: bytes, segment: bytes) -> int:
    """The checksum of a TCP segment; ``addresses`` are those of its source and destination. 0 if the segment
    contains its own checksum and that is right.

    The pseudo-headers of both IP versions have the same sum (RFC 9293 section 3.1, RFC 8200 section 8.1).
    """
    return internet_checksum(addresses + _PSEUDO_HEADER.pack(IPPROTO_TCP, len(segment)) + segment)


def updated(checksum: int, old: bytes, new: bytes) -> int:
    """The checksum after the words ``old`` of the data have become ``new``; right if it was right before."""
    # RFC 1624: HC' = ~(~HC + ~m + m').
    terms = (_ALL_ONES - checksum, _ALL_ONES - ones_complement_sum(old), ones_complement_sum(new))
    return internet_checksum(struct.pack("!3H", *terms))


def completed(frame: bytes) -> bytes:
    """The same frame, with its TCP checksum completed if its sender has left that to the network card. Then
    the field holds the sum of the pseudo-header only. Any other frame is returned as it is.
    """
    packet = tcp_packet(frame)
    if packet is None or packet.end > len(frame):
        return frame
    at = packet.at + TCP_CHECKSUM_AT
    segment = frame[packet.at : packet.end]
    pseudo = packet.src + packet.dst + _PSEUDO_HEADER.pack(IPPROTO_TCP, len(segment))
    if int.from_bytes(frame[at : at + 2], "big") != ones_complement_sum(pseudo):
        return frame
    blank = segment[:TCP_CHECKSUM_AT] + b"\0\0" + segment[TCP_CHECKSUM_AT + 2 :]
    value = tcp_checksum(packet.src + packet.dst, blank)
    return frame[:at] + value.to_bytes(2, "big") + frame[at + 2 :]

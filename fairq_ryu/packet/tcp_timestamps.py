"""The timestamp of a segment that is put back.

A receiver discards a segment whose timestamp is older than the last that it has taken in order (PAWS, RFC
7323 section 5.3). When an earlier hole was filled meanwhile by a segment that was sent later, that is so.
It gets the timestamp that the receiver has echoed: one that its sender has sent, on a later segment, and no
newer.
"""

from __future__ import annotations

from fairq_ryu.packet.parse import Frame, parse
from fairq_ryu.packet.tcp_build import internet_checksum

_KIND, _LENGTH = 8, 10
_HEADER = 20
_CHECKSUM_AT = 16
_SIZE = 4


def tsval_at(frame: bytes, read: Frame) -> int | None:
    """Where the TSval of a frame is that was parsed as ``read``; None: it has none, or was cut before it."""
    if read.tcp_at is None or read.tcp is None:
        return None
    at, end = read.tcp_at + _HEADER, read.tcp_at + (frame[read.tcp_at + 12] >> 4) * 4
    while at + 1 < min(end, len(frame)) and frame[at] != 0:
        if frame[at] == 1:
            at += 1
            continue
        size = frame[at + 1]
        if frame[at] == _KIND and size == _LENGTH and at + size <= min(end, len(frame)):
            return at + 2
        if size < 2:
            break
        at += size
    return None


def renewed(frame: bytes, tsval: int) -> bytes:
    """The frame with this TSval, if its own is older; the checksum is right afterwards if it was before
    (RFC 1624).
    """
    read = parse(frame)
    at = None if read is None else tsval_at(frame, read)
    if read is None or at is None or read.tcp_at is None:
        return frame
    own = int.from_bytes(frame[at : at + _SIZE], "big")
    if not 0 < (tsval - own) & 0xFFFFFFFF < 1 << 31:
        return frame
    changed = bytearray(frame)
    changed[at : at + _SIZE] = tsval.to_bytes(_SIZE, "big")
    # Whole words of the segment, wherever in them the option begins.
    start = at - (at - read.tcp_at) % 2
    end = start + _SIZE + 2 * ((at - read.tcp_at) % 2)
    checksum_at = read.tcp_at + _CHECKSUM_AT
    before = 0xFFFF ^ int.from_bytes(frame[checksum_at : checksum_at + 2], "big")
    # ~HC + ~m + m'; internet_checksum is the complement of a sum.
    after = internet_checksum(
        before.to_bytes(2, "big")
        + internet_checksum(frame[start:end]).to_bytes(2, "big")
        + bytes(changed[start:end])
    )
    changed[checksum_at : checksum_at + 2] = after.to_bytes(2, "big")
    return bytes(changed)

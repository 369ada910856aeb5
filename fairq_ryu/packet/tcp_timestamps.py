"""The timestamp of a segment that is reinjected.

A receiver discards a segment whose timestamp is older than the last that it has accepted in order (PAWS, RFC
7323 section 5.3). That happens when an earlier hole was filled meanwhile by a segment that was sent later. So
a reinjected segment gets the timestamp that the receiver has echoed: one that its sender has sent, on a later
segment, and no newer one.
"""

from __future__ import annotations

from fairq_ryu.packet import checksum, tcp_options
from fairq_ryu.packet.headers import TCP_CHECKSUM_AT
from fairq_ryu.packet.parse import Frame, parse, tcp_options_at

_SIZE = 4


def tsval_at(frame: bytes, read: Frame) -> int | None:
    """The offset of the TSval in a frame that was parsed as ``read``; None: it has none, or it is cut."""
    options = tcp_options_at(frame, read)
    return None if options is None else tcp_options.tsval_at(frame, *options)


def renewed(frame: bytes, tsval: int) -> bytes:
    """The frame with this TSval, if its own is older. The checksum is right afterwards if it was before."""
    read = parse(frame)
    at = None if read is None else tsval_at(frame, read)
    if read is None or at is None or read.tcp_at is None:
        return frame
    own = int.from_bytes(frame[at : at + _SIZE], "big")
    if not 0 < (tsval - own) & 0xFFFFFFFF < 1 << 31:
        return frame
    changed = bytearray(frame)
    changed[at : at + _SIZE] = tsval.to_bytes(_SIZE, "big")
    # Whole words of the segment, whether the option begins at an even or an odd offset.
    odd = (at - read.tcp_at) % 2
    start, end = at - odd, at + _SIZE + odd
    checksum_at = read.tcp_at + TCP_CHECKSUM_AT
    before = int.from_bytes(frame[checksum_at : checksum_at + 2], "big")
    after = checksum.updated(before, frame[start:end], bytes(changed[start:end]))
    changed[checksum_at : checksum_at + 2] = after.to_bytes(2, "big")
    return bytes(changed)

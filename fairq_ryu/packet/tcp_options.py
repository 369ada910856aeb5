"""The options of a TCP header (RFC 9293 section 3.1): the one walk over them, and the options that are
needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAX_WSCALE = 14  # RFC 7323 section 2.3
_END, _NOP, _MSS, _WSCALE, _TIMESTAMPS = 0, 1, 2, 3, 8
_SIGNATURES = 19, 29  # TCP-MD5 (RFC 2385), TCP-AO (RFC 5925)
_MSS_SIZE, _WSCALE_SIZE, _TIMESTAMPS_SIZE = 4, 3, 10
_TIMESTAMPS_FIELD = struct.Struct("!BBBBII")
_SYN_FIELD = struct.Struct("!BBHBBBB")


def walk(frame: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The options between two offsets: kind, offset and size of each, its header included. Ends at the first
    one that is cut off or malformed.
    """
    end = min(end, len(frame))
    while start + 1 < end and frame[start] != _END:
        if frame[start] == _NOP:
            start += 1
            continue
        size = frame[start + 1]
        if size < 2 or start + size > end:
            return
        yield frame[start], start, size
        start += size


def mss_and_wscale(frame: bytes, start: int, end: int) -> tuple[int, int | None]:
    """The MSS (0: none) and the window scale (None: none; at most :data:`MAX_WSCALE`) of a SYN's options."""
    mss, wscale = 0, None
    for kind, at, size in walk(frame, start, end):
        if kind == _MSS and size == _MSS_SIZE:
            mss = int.from_bytes(frame[at + 2 : at + 4], "big")
        elif kind == _WSCALE and size == _WSCALE_SIZE:
            wscale = min(frame[at + 2], MAX_WSCALE)
    return mss, wscale


def tsval_at(frame: bytes, start: int, end: int) -> int | None:
    """The offset of the TSval among the options; None: there is none, or it is cut off."""
    for kind, at, size in walk(frame, start, end):
        if kind == _TIMESTAMPS and size == _TIMESTAMPS_SIZE:
            return at + 2
    return None


def has_signature(frame: bytes, start: int, end: int) -> bool:
    """Whether a segment is signed: its receiver discards it if its header was altered."""
    return any(kind in _SIGNATURES for kind, _, _ in walk(frame, start, end))


def timestamps(tsval: int, tsecr: int) -> bytes:
    """The timestamps option behind two NOPs, as RFC 7323 appendix A recommends and all stacks have it."""
    return _TIMESTAMPS_FIELD.pack(_NOP, _NOP, _TIMESTAMPS, _TIMESTAMPS_SIZE, tsval, tsecr)


def syn(mss: int, wscale: int) -> bytes:
    """The options of a SYN: MSS and window scale."""
    return _SYN_FIELD.pack(_MSS, _MSS_SIZE, mss, _NOP, _WSCALE, _WSCALE_SIZE, wscale)

"""The payload of flows: bytes generated from a seed, so that both ends can compare them.

The bytes of a flow are a section of one mebibyte of random data that repeats. The data is made once, so
sending it costs no more than sending zeros, and the section differs for every seed. Both ends compute a
CRC-32 (some gigabytes per second, far less processor time than the network needs) and compare it together
with the length. This detects lost, duplicated, reordered and altered bytes, though not deliberate changes,
which do not occur.
"""

from __future__ import annotations

import random
import zlib

PERIOD = 1 << 20  # number of bytes after which a flow's payload repeats
_NOISE = random.Random(20261120).randbytes(PERIOD)
_TWICE = memoryview(_NOISE * 2)
_STRIDE = 2654435761  # odd: consecutive seeds land far apart (Knuth's multiplicative hash)
PIECE = 1 << 18  # maximum size of a piece, bytes


def pattern(seed: int, size: int) -> memoryview:
    """The first ``size`` bytes of the flow with this seed."""
    offset = seed * _STRIDE % PERIOD
    end = offset + size
    if end <= len(_TWICE):
        return _TWICE[offset:end]
    return memoryview(_NOISE * -(-end // PERIOD))[offset:end]


def piece(seed: int, position: int, limit: int = PIECE) -> memoryview:
    """The bytes of the flow from ``position`` on: ``limit`` of them, at most `PIECE`."""
    offset = (seed * _STRIDE + position) % PERIOD
    return _TWICE[offset : offset + min(limit, PIECE)]


def checksum(seed: int, size: int) -> int:
    """The CRC-32 of the first ``size`` bytes of the flow."""
    total = position = 0
    while position < size:
        part = piece(seed, position, size - position)
        total = zlib.crc32(part, total)
        position += len(part)
    return total

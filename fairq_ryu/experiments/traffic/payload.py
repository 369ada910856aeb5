"""The payload of flows: bytes that follow from a seed, so that both ends can check that they are the same.

The bytes of a flow are a window into one mebibyte of noise that repeats: made once, so that sending costs
no more than zeros would, and different for every seed. Both ends compute a CRC-32, which takes far less of a
processor than the network does (some gigabytes a second), and compare it together with the length. It finds
lost, doubled, swapped and altered bytes; it does not protect against intent, and need not.
"""

from __future__ import annotations

import random
import zlib

PERIOD = 1 << 20  # after so many bytes a flow's payload repeats
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

"""A second computation of the Internet checksum, to compare the project's with."""

import struct


def word_sum(data: bytes) -> int:
    """With end-around carry, as RFC 1071 section 1 describes it."""
    total = 0
    for (word,) in struct.iter_unpack("!H", data + b"\0" * (len(data) % 2)):
        total += word
        total = (total & 0xFFFF) + (total >> 16)
    return total

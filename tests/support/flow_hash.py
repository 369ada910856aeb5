"""The hash of a flow, independent of ``laws/flow_hash.h``: Jenkins' lookup3, as Linux' ``jhash_3words()``."""

from __future__ import annotations

import ipaddress
import struct

U32 = 0xFFFFFFFF
START, LENGTH = 0xDEADBEEF, 12


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & U32


def hash_words(a: int, b: int, c: int, seed: int) -> int:
    """The hash of three words."""
    a, b, c = ((word + START + LENGTH + seed) & U32 for word in (a, b, c))
    c = ((c ^ b) - _rotated(b, 14)) & U32
    a = ((a ^ c) - _rotated(c, 11)) & U32
    b = ((b ^ a) - _rotated(a, 25)) & U32
    c = ((c ^ b) - _rotated(b, 16)) & U32
    a = ((a ^ c) - _rotated(c, 4)) & U32
    b = ((b ^ a) - _rotated(a, 14)) & U32
    return ((c ^ b) - _rotated(b, 24)) & U32


def flow_hash(source: str, destination: str, sport: int, dport: int, protocol: int, seed: int) -> int:
    """The hash of a flow between two addresses of the same family, never 0; of a protocol without ports both
    are 0. Words are in the byte order of this machine, as the eBPF program reads them from the packet.
    """
    packed = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    (ports,) = struct.unpack("=I", struct.pack("!HH", sport, dport))
    found = seed + protocol
    given = (*words, ports)
    for first in range(0, len(given), 3):
        a, b, c = given[first : first + 3]
        found = hash_words(a, b, c, found)
    return found or 1

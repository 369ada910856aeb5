"""The hash of flows, against one that was written down independently."""

from __future__ import annotations

import ctypes
import ipaddress

import pytest

from tests.support.flow_hash import flow_hash, hash_words
from tests.support.host_queue_laws import library

FLOWS = [
    ("10.0.0.1", "10.0.0.2", 40000, 80, 6, 0),
    ("10.0.0.2", "10.0.0.1", 80, 40000, 6, 0xFFFFFFFF),
    ("255.255.255.255", "0.0.0.0", 0, 0, 1, 12345),
    ("fd00::1", "fd00::2", 40000, 80, 17, 7),
    ("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 1, 65535, 58, 0xDEADBEEF),
]


@pytest.mark.parametrize("flow", FLOWS)
def test_both_are_the_same(flow: tuple[str, str, int, int, int, int]) -> None:
    source, destination, sport, dport, protocol, seed = flow
    packed = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    words = (ctypes.c_uint32 * (len(packed) // 4)).from_buffer_copy(packed)
    ports = ctypes.c_uint32.from_buffer_copy(sport.to_bytes(2, "big") + dport.to_bytes(2, "big")).value
    found = library().fq_host_flow_hash(words, len(words), ports, protocol, ctypes.c_uint32(seed))
    assert found == flow_hash(*flow)


def test_it_is_jenkins_final_step() -> None:
    """jhash_3words() of include/linux/jhash.h, worked out with its macro __jhash_final by hand for zeros."""
    word = (0xDEADBEEF + 12) & 0xFFFFFFFF
    a = b = c = word
    rol = lambda x, k: (x << k | x >> (32 - k)) & 0xFFFFFFFF  # noqa: E731
    for step in range(7):
        shift = (14, 11, 25, 16, 4, 14, 24)[step]
        if step % 3 == 0:
            c = ((c ^ b) - rol(b, shift)) & 0xFFFFFFFF
        elif step % 3 == 1:
            a = ((a ^ c) - rol(c, shift)) & 0xFFFFFFFF
        else:
            b = ((b ^ a) - rol(a, shift)) & 0xFFFFFFFF
    assert hash_words(0, 0, 0, 0) == c


def test_flows_spread_over_the_slots_of_the_table() -> None:
    slots = {flow_hash("10.0.0.1", "10.0.0.2", 40000 + n, 80, 6, 99) % 2048 for n in range(200)}
    assert len(slots) > 180

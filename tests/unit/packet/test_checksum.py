"""Checksums compared with a sum of 16-bit words (RFC 1071), with values of the RFCs."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.packet import build, checksum
from tests.support.checksum import word_sum


def test_the_example_of_rfc_1071():
    assert checksum.ones_complement_sum(bytes.fromhex("0001f203f4f5f6f7")) == 0xDDF2


@given(st.binary(max_size=200))
def test_the_sum_of_any_data_is_that_of_its_16_bit_words(data):
    assert checksum.ones_complement_sum(data) == word_sum(data)
    assert checksum.internet_checksum(data) == 0xFFFF - word_sum(data)


@given(st.binary(min_size=8, max_size=32).filter(lambda data: len(data) % 4 == 0), st.binary(max_size=60))
def test_a_segment_that_contains_its_checksum_has_checksum_0(addresses, data):
    segment = bytes(16) + struct.pack("!H", 0) + bytes(2) + data
    right = checksum.tcp_checksum(addresses, segment)
    pseudo = addresses + b"\0\6" + struct.pack("!H", len(segment))
    assert right == 0xFFFF - word_sum(pseudo + segment)
    assert checksum.tcp_checksum(addresses, segment[:16] + struct.pack("!H", right) + segment[18:]) == 0


def test_the_update_of_rfc_1624():
    """Section 4: a header with checksum 0xDD2F whose word 0x5555 becomes 0x3285 gets 0x0000."""
    assert checksum.updated(0xDD2F, b"\x55\x55", b"\x32\x85") == 0x0000


@given(
    st.binary(min_size=4, max_size=40).filter(lambda data: len(data) % 2 == 0),
    st.binary(min_size=4, max_size=4),
)
def test_an_updated_checksum_is_that_of_the_new_data(data, new):
    head = b"\x45\x00"  # no checksum covers only zeros
    before = checksum.internet_checksum(head + data)
    after = checksum.updated(before, data[:4], new)
    assert checksum.ones_complement_sum(head + new + data[4:] + struct.pack("!H", after)) == 0xFFFF


def frame(tags=(), v6=False):
    size = 16 if v6 else 4
    ends = bytes([10] * size), bytes([11] * size)
    segment = build.tcp(b"".join(ends), (80, 40000), 5, 1001, 0x12, 65535, bytes.fromhex("020405b4"))
    return build.tcp_frame((bytes(6), bytes([2] * 6)), ends, segment, tags), ends, segment


@pytest.mark.parametrize(("tags", "v6"), [((), False), ((7,), False), ((7, 8), True), ((), True)])
def test_a_checksum_that_was_left_to_the_card_is_completed(tags, v6):
    whole, ends, segment = frame(tags, v6)
    at = whole.index(segment) + 16
    pseudo = b"".join(ends) + struct.pack("!HH", 6, len(segment))
    left = whole[:at] + struct.pack("!H", word_sum(pseudo)) + whole[at + 2 :]
    assert checksum.completed(left) == whole
    # A right one stays, and so does a wrong one: the segment was damaged on its way.
    assert checksum.completed(whole) == whole
    damaged = whole[:at] + b"\x12\x34" + whole[at + 2 :]
    assert checksum.completed(damaged) == damaged


@given(st.binary(max_size=120))
def test_frames_of_any_bytes_stay_as_they_are(data):
    found = checksum.completed(data)
    assert found == data or len(found) == len(data)
    whole, _, _ = frame()
    for length in range(len(whole)):
        assert checksum.completed(whole[:length]) == whole[:length]

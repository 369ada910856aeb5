"""Options of TCP headers: which are found, and which are not because something is malformed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.packet import tcp_options

MSS, WSCALE = bytes.fromhex("020405b4"), bytes.fromhex("030307")
SACK_OK, NOP, END = b"\4\2", b"\1", b"\0"
TIMESTAMPS = bytes.fromhex("080a0000000700000009")


@pytest.mark.parametrize(
    ("options", "mss", "wscale"),
    [
        (b"", 0, None),
        (MSS + NOP + WSCALE, 1460, 7),
        (SACK_OK + TIMESTAMPS + NOP + WSCALE + MSS, 1460, 7),
        (b"\3\3\x0f", 0, 14),  # the largest scale of RFC 7323
        (MSS + END + WSCALE, 1460, None),
        (MSS + b"\3\1\7", 1460, None),  # a size less than the option's own header
        (b"\3\1" + WSCALE, 0, None),  # likewise: the following options cannot be decoded
        (MSS + b"\3\4\7", 1460, None),  # not the size of a window scale, and truncated
        (b"\2\3\5" + WSCALE, 0, 7),  # an MSS of another size does not count
        (b"\2", 0, None),
    ],
)
def test_mss_and_window_scale(options, mss, wscale):
    frame = b"\xff" * 5 + options + MSS
    assert tcp_options.mss_and_wscale(frame, 5, 5 + len(options)) == (mss, wscale)


def test_the_offset_of_the_tsval():
    frame = b"\xff" * 3 + NOP + NOP + TIMESTAMPS
    assert tcp_options.tsval_at(frame, 3, len(frame)) == 7
    assert tcp_options.tsval_at(frame, 3, 100) == 7  # the copy ends before the header does
    assert tcp_options.tsval_at(frame[:-1], 3, len(frame)) is None
    assert tcp_options.tsval_at(frame, 3, len(frame) - 1) is None
    assert tcp_options.tsval_at(b"\xff" * 3 + MSS, 3, 7) is None


def test_encoded_options_are_decoded():
    written = tcp_options.timestamps(7, 9)
    assert written == NOP + NOP + TIMESTAMPS
    assert tcp_options.syn(1460, 7) == MSS + NOP + WSCALE
    assert tcp_options.mss_and_wscale(tcp_options.syn(8960, 3), 0, 8) == (8960, 3)


@given(st.binary(max_size=60), st.integers(0, 70), st.integers(0, 70))
def test_options_of_any_bytes_are_within_them(frame, start, end):
    behind = start
    for _, at, size in tcp_options.walk(frame, start, end):
        assert behind <= at and size >= 2 and at + size <= min(end, len(frame))
        behind = at + size

"""SET_DEADLINES on the wire."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import deadlines
from fairq_ryu.channel.deadlines import LATEST_US, HandshakeDeadline
from tests.unit.channel.test_segment_state import KEY, KEY_BYTES, KEYS

KNOWN = HandshakeDeadline(KEY, 250_000)
DEADLINES = st.builds(HandshakeDeadline, KEYS, st.none() | st.integers(0, LATEST_US))


def test_a_deadline_on_the_wire():
    assert deadlines.encode([KNOWN]) == KEY_BYTES + struct.pack("!I4x", 250_000)
    assert deadlines.encode([KNOWN._replace(us=None)]) == KEY_BYTES + b"\xff" * 4 + bytes(4)
    assert deadlines.RECORD_SIZE == 48


@given(st.lists(DEADLINES, min_size=1, max_size=4))
def test_deadlines_round_trip(wanted):
    assert deadlines.decode(deadlines.encode(wanted)) == wanted


@pytest.mark.parametrize(
    ("seconds", "us"), [(0.25, 250_000), (0, 0), (-3, 0), (1e-7, 0), (5000, LATEST_US), (1e300, LATEST_US)]
)
def test_the_time_until_a_deadline(seconds, us):
    assert deadlines.microseconds(seconds) == us


@pytest.mark.parametrize("count", [0, deadlines.MAX_CONNECTIONS + 1])
def test_a_message_has_at_least_one_connection_and_not_too_many(count):
    with pytest.raises(ValueError, match=f"not {count}"):
        deadlines.encode([KNOWN] * count)
    with pytest.raises(ValueError, match=f"not {count * 48}"):
        deadlines.decode(deadlines.encode([KNOWN]) * count)


@pytest.mark.parametrize("us", [-1, LATEST_US + 1])
def test_a_time_out_of_bounds_is_refused(us):
    with pytest.raises(ValueError, match=f"not {us}"):
        deadlines.encode([KNOWN._replace(us=us)])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (deadlines.encode([KNOWN])[:-1], "not 47"),
        (deadlines.encode([KNOWN]) + b"\0", "not 49"),
        (bytes(48), "IP version 0"),
    ],
)
def test_malformed_messages(body, why):
    with pytest.raises(ValueError, match=why):
        deadlines.decode(body)


def test_the_largest_message_fits_in_an_openflow_message():
    assert len(deadlines.encode([KNOWN] * deadlines.MAX_CONNECTIONS)) < 65535 - 16

"""SET_PRIORITIES on the wire."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import flow_priorities
from fairq_ryu.channel.flow_priorities import FlowPriority
from tests.unit.channel.test_segment_state import KEY, KEY_BYTES, KEYS

KNOWN = FlowPriority(KEY, 400)
PRIORITIES = st.builds(FlowPriority, KEYS, st.none() | st.integers(1, 1000))


def test_a_priority_on_the_wire():
    assert flow_priorities.encode([KNOWN]) == KEY_BYTES + struct.pack("!H6x", 400)
    assert flow_priorities.encode([KNOWN._replace(priority=None)]) == KEY_BYTES + bytes(8)
    assert flow_priorities.RECORD_SIZE == 48


@given(st.lists(PRIORITIES, min_size=1, max_size=4))
def test_priorities_round_trip(wanted):
    assert flow_priorities.decode(flow_priorities.encode(wanted)) == wanted


def test_a_message_without_flows_takes_all_priorities_away():
    assert flow_priorities.decode(flow_priorities.encode([])) == []


@pytest.mark.parametrize("count", [flow_priorities.MAX_FLOWS + 1])
def test_a_message_has_not_too_many_flows(count):
    with pytest.raises(ValueError, match=f"not {count}"):
        flow_priorities.encode([KNOWN] * count)
    with pytest.raises(ValueError, match=f"not {count * 48}"):
        flow_priorities.decode(flow_priorities.encode([KNOWN]) * count)


@pytest.mark.parametrize("priority", [0, 1001])
def test_a_priority_out_of_bounds_is_refused(priority):
    with pytest.raises(ValueError, match=f"not {priority}"):
        flow_priorities.encode([KNOWN._replace(priority=priority)])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (flow_priorities.encode([KNOWN])[:-1], "not 47"),
        (bytes(48), "IP version 0"),
        (KEY_BYTES + struct.pack("!H6x", 1001), "not 1001"),
    ],
)
def test_malformed_messages(body, why):
    with pytest.raises(ValueError, match=why):
        flow_priorities.decode(body)


def test_the_largest_message_fits_in_an_openflow_message():
    assert len(flow_priorities.encode([KNOWN] * flow_priorities.MAX_FLOWS)) < 65535 - 16

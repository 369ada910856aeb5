"""WAKE on the wire."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import waking
from fairq_ryu.model import FlowKey
from fairq_ryu.packet.tcp_build import Addressing
from tests.unit.channel.test_segment_state import KEY, KEY_BYTES, KEYS

MACS = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
FLOWS = st.builds(Addressing, KEYS, MACS, MACS, st.lists(st.integers(0, 65535), max_size=2).map(tuple))
KNOWN = Addressing(KEY, "02:00:00:00:00:0b", "02:00:00:00:00:0a", (0x2007,))


def test_a_flow_on_the_wire():
    data = waking.encode([KNOWN])
    assert len(data) == waking.RECORD_SIZE == 64
    macs = bytes.fromhex("02000000000b02000000000a")
    assert data == KEY_BYTES + macs + struct.pack("!HHB7x", 0x2007, 0, 1)


@given(st.lists(FLOWS, min_size=1, max_size=4))
def test_flows_round_trip(flows):
    assert waking.decode(waking.encode(flows)) == flows


@pytest.mark.parametrize("count", [0, waking.MAX_FLOWS + 1])
def test_a_message_has_at_least_one_flow_and_not_too_many(count):
    with pytest.raises(ValueError, match=f"not {count}"):
        waking.encode([KNOWN] * count)
    with pytest.raises(ValueError, match=f"not {count * 64}"):
        waking.decode(waking.encode([KNOWN]) * count)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (waking.encode([KNOWN])[:-1], "not 63"),
        (waking.encode([KNOWN]) + b"\0", "not 65"),
        (b"\0" * 64, "IP version 0"),
        (KEY_BYTES + b"\0" * 16 + b"\3" + b"\0" * 7, "3 VLAN tags"),
    ],
)
def test_malformed_messages(body, why):
    with pytest.raises(ValueError, match=why):
        waking.decode(body)


def test_more_tags_than_a_frame_has_are_refused():
    with pytest.raises(ValueError, match="3 VLAN tags"):
        waking.encode([KNOWN._replace(tags=(1, 2, 3))])


def test_the_largest_message_fits_in_an_openflow_message():
    flows = [KNOWN._replace(key=FlowKey("10.0.0.1", "10.0.0.2", number, 80)) for number in range(512)]
    assert len(waking.encode(flows)) < 65535 - 16

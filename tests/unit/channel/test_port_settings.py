"""PORT_SETTINGS: what the agent sends is what the controller reads, and nothing malformed is believed."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import port_settings as message
from fairq_ryu.port_settings import PortSettings, VlanMode, ranges_of

VLANS = st.integers(0, 4095)
SETTINGS = st.builds(
    PortSettings,
    mode=st.sampled_from(VlanMode),
    tag=VLANS,
    trunks=st.sets(VLANS, max_size=20).map(ranges_of),
    bond=st.text(max_size=12),
    standby=st.booleans(),
    mirror=st.booleans(),
)


def whole(bodies):
    assembly = message.Assembly()
    found = [assembly.add(message.decode(body)) for body in bodies]
    assert found[:-1] == [None] * (len(found) - 1)
    return found[-1]


@given(st.dictionaries(st.integers(1, 0xFFFFFFFE), SETTINGS, max_size=9))
def test_what_is_sent_is_read(ports):
    assert whole(message.encode(ports)) == ports


def test_a_long_list_is_sent_in_several_messages():
    every_second = ranges_of(range(0, 4096, 2))
    ports = {number: PortSettings(trunks=every_second, bond="b" * 255) for number in range(1, 30)}
    bodies = message.encode(ports)
    assert len(bodies) > 1 and max(map(len, bodies)) < 0xFFFF - 16
    assert whole(bodies) == ports
    assert all(
        len(each) == len(body) + 16 for each, body in zip(message.messages(ports), bodies, strict=True)
    )


def test_a_list_begins_anew_with_its_first_message():
    assembly = message.Assembly()
    assert assembly.add(message.PortSettingsPart(True, True, {1: PortSettings()})) is None
    assert assembly.add(message.PortSettingsPart(True, False, {2: PortSettings()})) == {2: PortSettings()}


def record(port=1, length=16, mode=0, flags=0, tag=0, name=0, ranges=0, more=b""):
    head = struct.pack("!I4xIHBBHBxH2x", 1, port, length, mode, flags, tag, name, ranges)
    return head + more


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(7),
        record()[:-1],
        record(length=8),
        record(length=24),
        record(length=0),
        record(mode=4),
        record(tag=4096),
        record(length=24, ranges=1),
        record(length=24, ranges=1, more=struct.pack("!HH4x", 5, 4)),
        record(length=24, ranges=1, more=struct.pack("!HH4x", 5, 4096)),
        record(length=16, name=1),
    ],
)
def test_malformed_lists_are_refused(body):
    with pytest.raises(ValueError, match=r"port|bytes"):
        message.decode(body)


def test_a_request_has_no_body():
    message.decode_request(b"")
    with pytest.raises(ValueError, match="no body"):
        message.decode_request(b"\0")

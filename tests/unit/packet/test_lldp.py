"""Discovery frames: one layout, and nothing else is read."""

from hypothesis import given
from hypothesis import strategies as st
from ryu.lib.packet import lldp as ryu_lldp
from ryu.lib.packet import packet

from fairq_ryu.packet import lldp
from fairq_ryu.packet.lldp import DiscoveryFrame

FRAME = DiscoveryFrame(0xFA17_0000_0000_0001, 7, 12345, bytes(range(16)))
DATA = lldp.build(FRAME)


@given(
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, (1 << 64) - 1),
    st.binary(min_size=16, max_size=16),
)
def test_a_frame_is_read_as_it_was_built(dpid, port, slot, tag):
    frame = DiscoveryFrame(dpid, port, slot, tag)
    assert lldp.parse(lldp.build(frame)) == frame


def test_others_read_it_as_lldp_of_a_controller():
    tlvs = packet.Packet(DATA).get_protocol(ryu_lldp.lldp).tlvs
    assert tlvs[0].chassis_id == b"dpid:fa17000000000001"
    assert tlvs[1].port_id == bytes([0, 0, 0, 7])
    assert tlvs[3].oui == bytes.fromhex("fa1700") and tlvs[3].info[-16:] == FRAME.tag


def test_a_frame_of_another_length_is_not_read():
    for size in range(len(DATA)):
        assert lldp.parse(DATA[:size]) is None
    assert lldp.parse(DATA + b"\0") is None


def test_every_constant_byte_is_checked():
    """The others are the port and the slot, which the tag protects, and the tag."""
    changed = []
    for at in range(len(DATA)):
        found = lldp.parse(DATA[:at] + bytes([DATA[at] ^ 0x01]) + DATA[at + 1 :])
        if found is not None:
            assert found != FRAME
            changed.append(at)
    dpid, port, slot_and_tag = range(22, 38), range(41, 45), range(55, 79)
    assert {*slot_and_tag} <= set(changed) <= {*dpid, *port, *slot_and_tag}

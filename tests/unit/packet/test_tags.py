"""How a frame of a VLAN looks at a port."""

import pytest

from fairq_ryu.packet import parse, tags
from fairq_ryu.packet.headers import mac_bytes


@pytest.mark.parametrize(
    ("known", "vlan", "untagged", "wanted"),
    [
        ((), 0, 0, ()),
        ((7,), 0, 0, (7,)),  # it is in no VLAN that we know of: as it was
        ((), 10, 0, (10,)),
        ((), 10, 10, ()),
        ((10,), 10, 0, (10,)),
        ((10,), 10, 10, ()),
        ((0x6000 | 10,), 10, 20, (0x6000 | 10,)),  # the priority stays
        ((0x6000,), 10, 20, (0x6000 | 10,)),
        ((10, 30), 10, 10, (30,)),
        ((10, 30), 10, 0, (10, 30)),
        ((30,), 10, 10, (30,)),
        ((30,), 10, 0, (10, 30)),
    ],
)
def test_the_tags_at_a_port(known, vlan, untagged, wanted):
    assert tags.at_port(known, vlan, untagged) == wanted


def test_an_untagged_frame_gets_the_tag_of_its_vlan():
    frame = mac_bytes("02:00:00:00:00:02") + mac_bytes("02:00:00:00:00:01") + b"\x88\xb6" + bytes(46)
    read = parse.parse(tags.with_tag(frame, 10))
    assert read is not None and (read.tags, read.vlan, read.src) == ((10,), 10, "02:00:00:00:00:01")
    bare = parse.parse(frame, 20)
    assert bare is not None and (bare.tags, bare.vlan) == ((), 20)
    zero = parse.parse(tags.with_tag(frame, 0), 20)
    assert zero is not None and zero.vlan == 20

"""Rules that send frames through a meter are decoded when a bridge lists them."""

import struct

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.openflow import copy_classes
from fairq_ryu.ryu_compat import controller_actions

BODY = bytes(6)
MAX_LEN = struct.pack("!HHH2x", 0, 8, 192)


@pytest.fixture(autouse=True)
def registered():
    controller_actions.register()


def test_the_action_of_a_share_is_decoded():
    buf = bytearray()
    action = copy_classes.metered(192, 0x1234)
    action.serialize(buf, 0)
    found = parser.OFPAction.parser(bytes(buf), 0)
    assert type(found).__name__ == "NXActionController2" and found.max_len == 192
    assert found.len == len(buf)


def test_a_rule_with_it_is_listed():
    buf = bytearray()
    copy_classes.metered(128, 7).serialize(buf, 0)
    instruction = struct.pack("!HH4x", ofp.OFPIT_APPLY_ACTIONS, 8 + len(buf)) + bytes(buf)
    found = parser.OFPInstruction.parser(instruction, 0)
    assert [each.max_len for each in found.actions] == [128]


@pytest.mark.parametrize(
    "properties", [struct.pack("!HH4x", 99, 8) + MAX_LEN, MAX_LEN + struct.pack("!HH4x", 5, 8)]
)
def test_properties_that_are_not_known_are_passed_over(properties):
    assert controller_actions.parse(parser.NXActionController2, BODY + properties).max_len == 192


@pytest.mark.parametrize("properties", [b"\0\0", struct.pack("!HH", 0, 0), struct.pack("!HH", 0, 8)])
def test_a_property_that_does_not_fit_is_refused(properties):
    with pytest.raises(ValueError):
        controller_actions.parse(parser.NXActionController2, BODY + properties)

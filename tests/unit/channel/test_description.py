"""What an agent says of itself: its bridge, the version of the channel, and what its kernel can do."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent import messages
from fairq_ryu.channel import description
from fairq_ryu.channel.description import ALL, VERSION, Capability, Description
from tests.support.fakes import ryu_decode


@pytest.mark.parametrize("name", ["s1", "br-ex", "x" * 15, ""])
@pytest.mark.parametrize("capabilities", [ALL, *Capability, Capability(0)])
def test_what_an_agent_says_is_what_a_controller_reads(name, capabilities):
    body = messages.description(name, 0x1234, capabilities)
    (answer,) = (ryu_decode(each) for each in messages.multipart(7, ofp.OFPMP_DESC, [body]))
    assert description.decode(answer.body) == Description(name, capabilities)


def test_the_bytes_of_version_and_capabilities():
    """As the page of the window channel has them."""
    body = messages.description("s1", 1, Capability.DROP_REPORTS)
    assert body[256:512].rstrip(b"\0") == b"window channel 0002 capabilities 00000001"
    assert body[800:].rstrip(b"\0") == b"window table of bridge s1"


def test_each_capability_is_a_bit_of_its_own_and_its_lack_has_words():
    assert all(not a & b for a, b in itertools.combinations(Capability, 2))
    assert Description("s1", ALL).lacks == []
    assert len(set(Description("s1", Capability(0)).lacks)) == len(ALL) == len(Capability) - 1
    assert Capability.UNIFIES_SCALES not in ALL  # the kernel lacks nothing without it


@pytest.mark.parametrize("other", [VERSION - 1, VERSION + 1])
def test_another_version_is_refused_with_both_numbers(other):
    text = f"window channel {other:04x} capabilities ffffffff"
    said = f"speaks version {other} of the window channel, the controller version {VERSION}: install"
    with pytest.raises(ValueError, match=said):
        description.decode(SimpleNamespace(hw_desc=text, dp_desc="anything"))


@pytest.mark.parametrize("text", ["", "Open vSwitch", b"\xff\xfe", "window channel 1", "window channel 0001"])
def test_who_names_no_version_is_no_agent(text):
    with pytest.raises(ValueError, match="does not say which version"):
        description.decode(SimpleNamespace(hw_desc=text, dp_desc="window table of bridge s1"))

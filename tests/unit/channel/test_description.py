"""The name of the bridge in the agent's description."""

from __future__ import annotations

import pytest

from fairq_ryu.channel import description


@pytest.mark.parametrize("name", ["s1", "br-ex", "x" * 15])
def test_the_name_of_a_bridge(name):
    assert description.bridge_of(description.encode(name) + bytes(3)) == name


@pytest.mark.parametrize("text", ["", "Open vSwitch", b"\xff\xfe", "window table"])
def test_a_description_without_one(text):
    assert description.bridge_of(text) == ""

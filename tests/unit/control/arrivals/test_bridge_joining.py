"""A bridge has joined when it has listed all its rules, in however many messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.control.arrivals import bridge_joining
from fairq_ryu.control.arrivals.bridge_joining import BridgeJoining
from tests.support.fakes import FakeSwitch


def part(datapath: Any, *rules: str, more: bool = False) -> Any:
    """A message of a reply; the rules are stored unchanged."""
    return SimpleNamespace(datapath=datapath, body=list(rules), flags=ofp.OFPMPF_REPLY_MORE if more else 0)


def test_the_rules_of_a_bridge_are_requested():
    joining, bridge = BridgeJoining(), FakeSwitch(1)
    ((datapath, message),) = joining.start(bridge)
    assert datapath is bridge and type(message).__name__ == "OFPFlowStatsRequest"


def test_rules_in_several_messages_are_one_reply():
    joining, bridge = BridgeJoining(), FakeSwitch(1)
    joining.start(bridge)
    assert joining.add_rules(part(bridge, "a", "b", more=True)) is None
    assert joining.add_rules(part(bridge, more=True)) is None
    assert joining.add_rules(part(bridge, "c")) == ["a", "b", "c"]
    assert len(joining) == 0


def test_a_reply_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(bridge_joining, "MOST_RULES", 3)
    joining, bridge = BridgeJoining(), FakeSwitch(1)
    joining.start(bridge)
    joining.add_rules(part(bridge, "a", "b", more=True))
    with pytest.raises(TooMuch, match="more than 3 rules"):
        joining.add_rules(part(bridge, "c", "d", more=True))


def test_replies_of_other_connections_are_ignored():
    """A bridge that has already joined, and a connection that was replaced by another."""
    joining, old, new = BridgeJoining(), FakeSwitch(1), FakeSwitch(1)
    assert joining.add_rules(part(old, "a")) is None
    joining.start(old)
    joining.add_rules(part(old, "a", more=True))
    joining.start(new)
    assert joining.add_rules(part(old, "b")) is None
    assert joining.add_rules(part(new, "c")) == ["c"]


def test_a_bridge_that_disconnects_is_forgotten_and_its_next_connection_is_not():
    joining, old, new = BridgeJoining(), FakeSwitch(1), FakeSwitch(1)
    joining.start(old)
    joining.start(new)
    joining.disconnected(old)
    assert len(joining) == 1
    joining.disconnected(new)
    assert len(joining) == 0
    assert joining.add_rules(part(new, "a")) is None

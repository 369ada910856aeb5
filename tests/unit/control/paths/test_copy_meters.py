"""Shares of copies: tried, used when the bridge has accepted them, and given up when it has not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.paths.copy_meters import CopyMeters
from fairq_ryu.openflow import copy_classes, meters, pipeline
from fairq_ryu.openflow.copy_classes import CopyClass
from tests.support.fakes import FakeSwitch, ryu_decode, wire

CLASSES = [kind for kind in CopyClass if kind is not CopyClass.HELD]


class Made:
    """A bridge that has connected with ports 1 and 2."""

    def __init__(self, rate: int = 1000, groups: int = 0, holds: bool = False) -> None:
        self.bridge = FakeSwitch(1)
        self.meters = CopyMeters({1: self.bridge}, rate, groups, holds)
        self.installed = self.messages(self.meters.install(self.bridge, [1, 2]))

    @staticmethod
    def messages(outgoing):
        return [message for _, message in outgoing]

    def rates(self, messages):
        return {
            message.meter_id: message.bands[0].rate
            for message in messages
            if type(message).__name__ == "OFPMeterMod" and message.command == ofp.OFPMC_ADD
        }

    def confirmed(self):
        return self.messages(self.meters.confirmed(self.bridge))


@pytest.fixture
def made():
    return Made()


def test_each_port_has_a_meter_for_each_class(made):
    rates = made.rates(made.installed)
    assert rates.pop(meters.OF_CONTROLLER) == 1000
    assert rates.keys() == {copy_classes.meter_id(kind, port) for kind in CLASSES for port in (1, 2)}
    assert rates[copy_classes.meter_id(CopyClass.SYN, 2)] == 200
    assert rates[copy_classes.meter_id(CopyClass.DISCOVERY, 1)] == 10
    held = Made(holds=True)
    assert held.rates(held.installed)[copy_classes.meter_id(CopyClass.HELD, 1)] == 250


def test_a_meter_is_there_before_the_rule_that_uses_it(made):
    there = set()
    for message in made.installed:
        if type(message).__name__ == "OFPMeterMod":
            (there.add if message.command == ofp.OFPMC_ADD else there.discard)(message.meter_id)
        elif message.priority:
            match = dict(message.match.items())
            assert copy_classes.meter_id(CopyClass(match["reg0"]), match["in_port"]) in there


def test_copies_take_the_shares_when_the_bridge_has_confirmed_them(made):
    assert not any(
        message.table_id != pipeline.COPIES for message in made.installed if hasattr(message, "table_id")
    )
    assert made.meters.actions(1) is copy_classes.plain
    rules = made.confirmed()
    assert {rule.table_id for rule in rules} == {pipeline.TRACK, pipeline.SOURCE}
    assert made.meters.actions(1) is copy_classes.shared
    assert made.confirmed() == []


@pytest.mark.parametrize("meter", [True, False])
def test_a_bridge_that_refuses_any_of_it_has_no_shares(made, meter):
    assert made.meters.refused(1, meter)
    assert not made.meters.refused(1, meter)  # it is said once
    assert made.confirmed() == [] and made.meters.actions(1) is copy_classes.plain
    assert bool(list(made.meters.requests())) is not meter
    assert list(made.meters.port_added(made.bridge, 3)) == []


def test_a_later_refusal_of_a_rule_changes_nothing(made):
    made.confirmed()
    assert not made.meters.refused(1, False)
    assert made.meters.actions(1) is copy_classes.shared


def test_without_a_limit_there_are_no_meters():
    made = Made(rate=0)
    assert made.rates(made.installed) == {} and made.confirmed() == []
    assert list(made.meters.requests()) == []


def test_ports_come_and_go(made):
    made.confirmed()
    added = Made.messages(made.meters.port_added(made.bridge, 3))
    assert made.rates(added).keys() == {copy_classes.meter_id(kind, 3) for kind in CLASSES}
    removed = Made.messages(made.meters.port_removed(made.bridge, 3))
    gone = {each.meter_id for each in removed if type(each).__name__ == "OFPMeterMod"}
    assert gone == {*made.rates(added), copy_classes.group_meter_id(3)}


def test_frames_to_groups_have_a_meter_of_each_port():
    made = Made(rate=0, groups=500)
    ids = [copy_classes.group_meter_id(port) for port in (1, 2)]
    assert made.rates(made.installed) == dict.fromkeys(ids, 500)
    rules = [message for message in made.installed if type(message).__name__ == "OFPFlowMod"]
    for rule, meter, port in zip(rules, ids, (1, 2), strict=True):
        limit, goto = ryu_decode(wire(rule)).instructions
        assert (limit.meter_id, goto.table_id, rule.match["in_port"]) == (meter, pipeline.SOURCE, port)
    # Copies have no shares, and no limit.
    assert made.confirmed() == [] and made.meters.actions(1) is copy_classes.plain


def counted(meter: int, packets: int) -> SimpleNamespace:
    return SimpleNamespace(meter_id=meter, band_stats=[SimpleNamespace(packet_band_count=packets)])


def test_the_drops_of_our_meters_are_added_up(made):
    share = copy_classes.meter_id(CopyClass.ARP, 1)
    made.meters.counted(made.bridge, [counted(meters.OF_CONTROLLER, 3), counted(7, 100)], more=True)
    assert made.meters.dropped == {}
    made.meters.counted(made.bridge, [counted(share, 5)])
    assert made.meters.dropped == {1: 8}
    made.meters.counted(made.bridge, [counted(share, 6)])
    assert made.meters.dropped == {1: 6}

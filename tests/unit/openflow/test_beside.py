"""Rules that stand beside those of others: what is counted and removed, and what never is."""

from __future__ import annotations

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.segment_copies import COOKIE_COPY
from fairq_ryu.openflow import beside, copy_classes, pipeline
from fairq_ryu.openflow.copy_classes import CopyClass
from tests.support.fakes import DATAPATH, FakeSwitch, ryu_decode, wire

PIPELINE = (pipeline.COOKIE_BASE, pipeline.COOKIE_TCP, pipeline.COOKIE_PATH, 0xFA17_0002_0000_0001)
FOREIGN = (0, 1, 0xFA18 << 48, (1 << 64) - 1)


@pytest.mark.parametrize("cookie", PIPELINE)
def test_the_rules_of_the_pipeline_are_one_kind(cookie):
    assert beside.is_of(cookie, beside.OF_PIPELINE) and not beside.is_of(cookie, beside.OF_NORMAL)


def test_the_rule_that_forwards_is_another_kind():
    assert not beside.is_of(beside.COOKIE_NORMAL, beside.OF_PIPELINE)
    assert beside.is_of(beside.COOKIE_NORMAL, beside.OF_NORMAL)
    assert not pipeline.is_ours(beside.COOKIE_NORMAL)  # its bridge has no pipeline to go on with
    assert beside.COOKIE_NORMAL != COOKIE_COPY


@pytest.mark.parametrize("cookie", FOREIGN)
def test_rules_of_others_are_of_no_kind(cookie):
    assert not beside.is_of(cookie, beside.OF_PIPELINE) and not beside.is_of(cookie, beside.OF_NORMAL)
    assert beside.is_of(cookie, beside.ALL)


def test_the_rule_that_forwards_has_the_lowest_priority_and_never_ends():
    rule = ryu_decode(wire(beside.forward(DATAPATH)))
    assert (rule.command, rule.priority, rule.table_id) == (ofp.OFPFC_ADD, 0, 0)
    assert (rule.idle_timeout, rule.hard_timeout, rule.cookie) == (0, 0, beside.COOKIE_NORMAL)
    assert not dict(rule.match.items())
    (apply,) = rule.instructions
    assert [action.port for action in apply.actions] == [ofp.OFPP_NORMAL]


@pytest.mark.parametrize(("others", "flags"), [(False, 0), (True, ofp.OFPFF_CHECK_OVERLAP)])
def test_the_rule_that_forwards_replaces_no_rule_of_others(others, flags):
    assert ryu_decode(wire(beside.forward(DATAPATH, beside_others=others))).flags == flags


def test_rules_are_removed_by_cookie_from_all_tables():
    bridge = FakeSwitch(1)
    bridge.ports = {2: None, ofp.OFPP_LOCAL: None}
    rule, *meters = (ryu_decode(wire(each)) for each in beside.remove_pipeline(bridge))
    assert (rule.command, rule.table_id) == (ofp.OFPFC_DELETE, ofp.OFPTT_ALL)
    assert (rule.cookie, rule.cookie_mask) == beside.OF_PIPELINE
    assert {meter.command for meter in meters} == {ofp.OFPMC_DELETE}
    of_port = [copy_classes.group_meter_id(2), *(copy_classes.meter_id(kind, 2) for kind in CopyClass)]
    assert [meter.meter_id for meter in meters] == [ofp.OFPM_CONTROLLER, *of_port]


def test_questions_read_no_rule():
    count = ryu_decode(wire(beside.count_rules(DATAPATH, beside.OF_NORMAL)))
    assert type(count).__name__ == "OFPMultipartRequest" and count.type == ofp.OFPMP_AGGREGATE
    description = ryu_decode(wire(beside.ask_description(DATAPATH)))
    assert description.type == ofp.OFPMP_DESC

"""Rules that stand beside those of others: what is counted and removed, and what never is."""

from __future__ import annotations

import struct

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.segment_copies import COOKIE_COPY
from fairq_ryu.openflow import beside, pipeline
from tests.support.fakes import DATAPATH, ryu_decode, wire

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
    rule = ryu_decode(wire(beside.remove_pipeline(DATAPATH)))
    assert (rule.command, rule.table_id) == (ofp.OFPFC_DELETE, ofp.OFPTT_ALL)
    assert (rule.cookie, rule.cookie_mask) == beside.OF_PIPELINE


def test_questions_read_no_rule():
    questions = beside.count_rules(DATAPATH, beside.OF_NORMAL), beside.ask_description(DATAPATH)
    kinds = [struct.unpack_from("!H", wire(each), ofp.OFP_HEADER_SIZE)[0] for each in questions]
    assert kinds == [ofp.OFPMP_AGGREGATE, ofp.OFPMP_DESC]

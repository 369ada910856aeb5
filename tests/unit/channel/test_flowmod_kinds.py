"""The table of the kinds of window rules: each has its number in the eBPF maps, and passes the channel."""

from __future__ import annotations

import pytest
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import layout
from fairq_ryu.channel.flow_match import match_fields
from fairq_ryu.channel.flowmod import window_rule
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowKind, WindowPlan, WindowRule
from tests.support.fakes import DATAPATH, wire

FLOW = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
WINDOWS = [kind for kind in WindowKind if kind.table == 0]
"""The others are no rules of windows: tests/unit/channel/test_queue_law.py."""


def test_the_ebpf_programs_know_the_same_kinds_by_the_same_numbers():
    constants = {name: value for name, value in layout.CONSTANTS.items() if name.startswith("FQ_RULE_")}
    assert constants == {f"FQ_RULE_{kind.name}": kind.map_number for kind in WINDOWS}


def test_no_two_kinds_have_the_same_field_or_number():
    for names in ([k.field for k in WindowKind], [k.oxm_number for k in WindowKind]):
        assert len(set(names)) == len(WindowKind)


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_rule_of_each_kind_arrives_as_it_was_sent(kind):
    rule = WindowRule(kind, 31250)
    message = window_rule(DATAPATH, RuleChange(RuleTarget(PortKey(1, 5), None), rule), 2)
    assert decode_flow_mod(wire(message)).window == rule


def test_a_plan_has_one_rule_for_the_port_of_any_kind():
    pool = WindowRule(WindowKind.POOL, 9)
    assert WindowPlan(rule=pool) == WindowPlan(pool=9)
    assert WindowPlan(rule=pool).port_rule == pool
    assert WindowPlan(rule=WindowRule(WindowKind.WINDOW, 9)) == WindowPlan(window=9)
    assert WindowPlan(rule=pool, flows={FLOW: 0}).rules == {
        FLOW: WindowRule(WindowKind.WINDOW, 0),
        None: pool,
    }
    with pytest.raises(ValueError, match="at most one rule"):
        WindowPlan(window=9, rule=pool)
    with pytest.raises(ValueError, match="whole number of bytes, not -1"):
        WindowPlan(rule=WindowRule(WindowKind.POOL, -1))
    assert not WindowPlan() and WindowPlan(rule=pool)


def test_a_window_rule_of_a_port_or_of_a_flows_acks():
    port, window = PortKey(1, 7), WindowRule(WindowKind.WINDOW, 1460)
    of_port = window_rule(DATAPATH, RuleChange(RuleTarget(port, None), window), 3)
    assert of_port.match.items() == parser.OFPMatch(in_port=7).items()
    of_flow = window_rule(DATAPATH, RuleChange(RuleTarget(port, FLOW), window), 3)
    assert of_flow.match.items() == parser.OFPMatch(**match_fields(FLOW.reversed)).items()

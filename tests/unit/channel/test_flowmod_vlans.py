"""Window rules of flows in VLANs: the match has an optional vlan_vid."""

from __future__ import annotations

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel.flow_match import match_fields, rule_target
from fairq_ryu.channel.flowmod import window_rule
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, wire

FLOW = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80, 10)
RULE = WindowRule(WindowKind.WINDOW, 3000)


@pytest.mark.parametrize(
    "flow", [FLOW, FLOW._replace(vlan=4095), FLOW._replace(src="fe80::1", dst="fe80::2")]
)
def test_a_rule_of_a_flow_in_a_vlan_arrives_as_it_was_sent(flow):
    message = window_rule(DATAPATH, RuleChange(RuleTarget(PortKey(1, 7), flow), RULE), 3)
    assert rule_target(decode_flow_mod(wire(message)).match) == flow.reversed


def test_a_rule_without_a_vlan_is_for_a_flow_in_none():
    fields = match_fields(FLOW._replace(vlan=0))
    assert "vlan_vid" not in fields and rule_target(fields) == FLOW._replace(vlan=0)
    assert rule_target({**fields, "vlan_vid": 0x1000 | 10}) == FLOW


@pytest.mark.parametrize("vlan", [0, 10, 0x1000, 0x2001])
def test_what_is_no_vlan_is_refused(vlan):
    match = parser.OFPMatch(**{**match_fields(FLOW), "vlan_vid": vlan})
    message = parser.OFPFlowMod(DATAPATH, command=ofp.OFPFC_DELETE, match=match, out_port=ofp.OFPP_ANY)
    with pytest.raises(OpenFlowError) as refused:
        decode_flow_mod(wire(message))
    assert (refused.value.type, refused.value.code) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_VALUE)


def test_a_vlan_alone_or_with_a_port_names_no_rule():
    for fields in ({"vlan_vid": 0x1000 | 10}, {"vlan_vid": 0x1000 | 10, "in_port": 3}):
        with pytest.raises(OpenFlowError) as refused:
            rule_target(fields)
        assert refused.value.code == ofp.OFPBMC_BAD_WILDCARDS

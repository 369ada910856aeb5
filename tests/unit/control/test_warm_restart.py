"""Rules of an earlier controller, read back from flow statistics."""

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.control import warm_restart
from fairq_ryu.fabric.topology.forwarding import Deliver, EcmpBits, Flood, FromLink
from fairq_ryu.model import FlowKey
from fairq_ryu.openflow import pipeline
from tests.support.fakes import DATAPATH, ryu_decode, wire

MAC = "02:00:00:00:00:01"
KEY = FlowKey("10.0.0.1", "10.0.0.2", 40000, 80)


def stats(*messages):
    """The rules of FlowMods as a switch would list them."""
    found = []
    for message in messages:
        mod = ryu_decode(wire(message))
        if mod.command == ofp.OFPFC_ADD:
            found.append(
                parser.OFPFlowStats(
                    mod.table_id, 0, 0, mod.priority, 0, 0, 0, mod.cookie, 0, 0, mod.match, mod.instructions
                )
            )
    return found


def everything():
    return [
        *pipeline.pipeline(DATAPATH),
        *pipeline.ecmp_buckets(DATAPATH, 2),
        *pipeline.hold(DATAPATH, 3),
        pipeline.from_link(DATAPATH, 9, True),
        pipeline.flood(DATAPATH, 0, [1, 9]),
        pipeline.flood(DATAPATH, 3, [1, 8]),
        pipeline.deliver(DATAPATH, MAC, 0, 0, 1),
        pipeline.deliver(DATAPATH, MAC, 2, 3, 9),
        *pipeline.source(DATAPATH, MAC, 1, 300),
        pipeline.pin(DATAPATH, KEY, 9, 65, True),
        pipeline.pin(DATAPATH, KEY.reversed._replace(src="fe80::1", dst="fe80::2"), 1, 65, False),
    ]


def test_installed_rules_are_read_back():
    found = warm_restart.read(stats(*everything()))
    assert found.forwarding == {
        FromLink(9): (),
        Flood(): (1, 9),
        Flood(3): (1, 8),
        Deliver(MAC, 0, 0): (1,),
        Deliver(MAC, 2, 3): (9,),
        EcmpBits(): (2,),
    }
    assert found.hosts == [(MAC, 1)]
    assert found.pins == [KEY, FlowKey("fe80::1", "fe80::2", 80, 40000)]


def test_ryus_own_rule_for_discovery_does_not_matter():
    lldp = parser.OFPFlowMod(DATAPATH, match=parser.OFPMatch(eth_type=0x88CC), priority=0xFFFF)
    assert warm_restart.read(stats(lldp, *everything())) is not None


@pytest.mark.parametrize("cookie", [0, 1, *(pipeline.COOKIE_BASE + (step << 32) for step in (-3, -1, 1))])
def test_nothing_is_taken_over_from_a_bridge_with_a_foreign_rule(cookie):
    other = parser.OFPFlowMod(DATAPATH, cookie=cookie, match=parser.OFPMatch(in_port=3), priority=7)
    assert warm_restart.read(stats(*everything(), other)) is None


def test_an_empty_bridge_has_nothing_to_take_over():
    assert warm_restart.read([]) is None
    assert warm_restart.read(stats(*pipeline.pipeline(DATAPATH))) is None

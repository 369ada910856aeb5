"""Rules of an earlier controller, read back from flow statistics."""

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.apps import adoption
from fairq_ryu.fabric.forwarding import Deliver, Flood, FromLink, Shares
from fairq_ryu.model import FlowKey
from fairq_ryu.openflow import rules
from tests.unit.fakes import DATAPATH, ryu_decode, wire

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
        *rules.pipeline(DATAPATH),
        *rules.shares(DATAPATH, 2),
        *rules.hold(DATAPATH, 3),
        rules.from_link(DATAPATH, 9, True),
        rules.flood(DATAPATH, 0, [1, 9]),
        rules.flood(DATAPATH, 3, [1, 8]),
        rules.deliver(DATAPATH, MAC, 0, 0, 1),
        rules.deliver(DATAPATH, MAC, 2, 3, 9),
        *rules.source(DATAPATH, MAC, 1, 300),
        rules.pin(DATAPATH, KEY, 9, 65, True),
        rules.pin(DATAPATH, KEY.reversed._replace(src="fe80::1", dst="fe80::2"), 1, 65, False),
    ]


def test_what_was_installed_is_read_back():
    found = adoption.read(stats(*everything()))
    assert found.standing == {
        FromLink(9): (),
        Flood(): (1, 9),
        Flood(3): (1, 8),
        Deliver(MAC, 0, 0): (1,),
        Deliver(MAC, 2, 3): (9,),
        Shares(): (2,),
    }
    assert found.hosts == [(MAC, 1)]
    assert found.pins == [KEY, FlowKey("fe80::1", "fe80::2", 80, 40000)]


def test_ryus_own_rule_for_discovery_does_not_matter():
    lldp = parser.OFPFlowMod(DATAPATH, match=parser.OFPMatch(eth_type=0x88CC), priority=0xFFFF)
    assert adoption.read(stats(lldp, *everything())) is not None


@pytest.mark.parametrize("cookie", [0, 1, 0xFA17 << 48, rules.COOKIE_BASE + (1 << 32)])
def test_with_a_rule_of_somebody_else_nothing_is_taken_over(cookie):
    other = parser.OFPFlowMod(DATAPATH, cookie=cookie, match=parser.OFPMatch(in_port=3), priority=7)
    assert adoption.read(stats(*everything(), other)) is None


def test_an_empty_bridge_has_nothing_to_take_over():
    assert adoption.read([]) is None
    assert adoption.read(stats(*rules.pipeline(DATAPATH))) is None

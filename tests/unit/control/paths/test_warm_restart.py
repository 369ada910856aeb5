"""Rules of an earlier controller, read back from flow statistics."""

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.control.paths import warm_restart
from fairq_ryu.control.paths.forwarding_rules import ForwardingRules
from fairq_ryu.control.sender import Sender
from fairq_ryu.fabric.topology.forwarding import (
    Deliver,
    EcmpBits,
    Entry,
    Flood,
    ForwardingChange,
    FromLink,
    Tagged,
    Waiting,
)
from fairq_ryu.fabric.topology.ports import UNTAGGED
from fairq_ryu.model import FlowKey
from fairq_ryu.openflow import paths, pipeline
from fairq_ryu.port_settings import OTHER_VLANS
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
        *paths.ecmp_buckets(DATAPATH, 2),
        *pipeline.hold(DATAPATH, 3),
        pipeline.from_link(DATAPATH, 9, True),
        *pipeline.waiting(DATAPATH, 7, ()),
        *pipeline.waiting(DATAPATH, 6, (1,)),
        pipeline.flood(DATAPATH, 0, [1, 9]),
        pipeline.flood(DATAPATH, 3, [1, 8]),
        pipeline.deliver(DATAPATH, MAC, 0, 0, 1),
        pipeline.deliver(DATAPATH, MAC, 2, 3, 9),
        *pipeline.source(DATAPATH, MAC, 1, 300),
        paths.pin(DATAPATH, KEY, 9, 65, True),
        paths.pin(DATAPATH, KEY.reversed._replace(src="fe80::1", dst="fe80::2"), 1, 65, False),
    ]


def test_installed_rules_are_read_back():
    found = warm_restart.read(stats(*everything()))
    assert found.forwarding == {
        FromLink(9): (),
        Waiting(7): (),
        Waiting(6): (1,),
        Flood(): (1, 9),
        Flood(3): (1, 8),
        Deliver(MAC, 0, 0): (1,),
        Deliver(MAC, 2, 3): (9,),
        EcmpBits(): (2,),
    }
    assert found.hosts == [(MAC, 1, 0)]
    assert found.pins == [KEY, FlowKey("fe80::1", "fe80::2", 80, 40000)]


VLANS = {
    Entry(2): (10,),
    Entry(3): (-1, 10 << 16 | 0xFFE, 20 << 16 | 0xFFF),
    Entry(4): (10, 0),
    Entry(5): (-1,),
    Tagged(): (2,),
    Flood(0, 10): (1, 9, 2 + UNTAGGED),
    Flood(0, OTHER_VLANS): (1, 9),
    Flood(1, 10): (9,),
    Deliver(MAC, 0, 0, 10): (2 + UNTAGGED,),
    Deliver(MAC, 2, 3, 20): (9,),
}


def test_the_rules_of_vlans_are_read_back():
    bridges = {1: DATAPATH}
    changes = [ForwardingChange(1, key, value, None) for key, value in VLANS.items()]
    rules = [message for _, message in ForwardingRules(bridges, Sender(1))._messages(changes)]
    found = warm_restart.read(
        stats(
            *everything(),
            *rules,
            *pipeline.source(DATAPATH, MAC, 2, 300, 10),
            paths.pin(DATAPATH, KEY._replace(vlan=10), 2, 65, True, True),
        )
    )
    assert {key: value for key, value in found.forwarding.items() if key in VLANS} == VLANS
    assert found.hosts == [(MAC, 1, 0), (MAC, 2, 10)]
    assert found.pins[-1] == KEY._replace(vlan=10)
    gone = [ForwardingChange(1, key, None, value) for key, value in VLANS.items()]
    left = {(each.table_id, each.priority, str(each.match)) for each in rules}
    for _, message in ForwardingRules(bridges, Sender(1))._messages(gone):
        assert message.command == ofp.OFPFC_DELETE_STRICT
        left.remove((message.table_id, message.priority, str(message.match)))
    assert left == set()  # what was installed is removed, rule by rule


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

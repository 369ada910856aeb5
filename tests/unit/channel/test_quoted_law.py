"""Which law a quoted request is about: by the numbers of its kind alone."""

from __future__ import annotations

import pytest
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import flowmod, queue_law, quoted_law, window_law
from fairq_ryu.channel.quoted_law import LawRequests
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.model import PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, wire

WINDOWS, QUEUES = LawRequests(6, 7, 0), LawRequests(17, 18, 1)
ADD, DELETE = window_law.LawCommand.ADD, window_law.LawCommand.DELETE
RULE = RuleChange(RuleTarget(PortKey(1, 17), None), WindowRule(WindowKind.LAW, 17))
OF_WINDOWS = [
    window_law.set_law(DATAPATH, ADD, 17, LasLaw()),
    window_law.request(DATAPATH, 17),
    flowmod.window_rule(DATAPATH, RULE, 2),
]
OF_QUEUES = [
    queue_law.set_queue_law(DATAPATH, ADD, 17, RedLaw()),
    queue_law.request(DATAPATH, 17),
    flowmod.queue_rule(DATAPATH, 17, 17, 2),
]


@pytest.mark.parametrize(
    ("ours", "others"), [(WINDOWS, QUEUES), (QUEUES, WINDOWS)], ids=["windows", "queues"]
)
def test_the_law_of_each_request(ours: LawRequests, others: LawRequests) -> None:
    for message in OF_WINDOWS if ours is WINDOWS else OF_QUEUES:
        data = wire(message)
        assert ours.quoted(data) == 17 and others.quoted(data) is None
        assert ours.quoted(data[:64]) == 17, "an agent quotes no more"


def test_all_laws_are_number_0() -> None:
    assert WINDOWS.quoted(wire(window_law.set_law(DATAPATH, DELETE, quoted_law.ALL_LAWS))) == 0
    assert QUEUES.quoted(wire(queue_law.request(DATAPATH))) == 0


def test_the_rule_of_a_flow_and_other_messages_name_none() -> None:
    match = parser.OFPMatch(eth_type=0x800, ip_proto=6, ipv4_src="10.0.0.1")
    for message in (
        parser.OFPFlowMod(DATAPATH, match=match),
        parser.OFPEchoRequest(DATAPATH, data=bytes(64)),
    ):
        assert WINDOWS.quoted(wire(message)) is None
    law = window_law.set_law(DATAPATH, DELETE, 17)
    assert WINDOWS.quoted(wire(law)[:20]) is None

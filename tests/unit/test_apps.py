"""The little that the applications decide by themselves."""

from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.apps.controller import AgentLink
from fairq_ryu.openflow import oxm
from fairq_ryu.openflow.depth import QueueDepth


def link(*limits: int, govern_all: bool = False) -> AgentLink:
    made = AgentLink(SimpleNamespace(id=oxm.agent_dpid(5)), govern_all)
    made.depths = {n: QueueDepth(n, 0, 0, 0, limit, 0, 0, 0, 0) for n, limit in enumerate(limits, 1)}
    return made


def test_an_agent_is_known_by_its_bridge():
    assert link().dpid == 5


def test_one_port_with_a_queue_is_asked_alone_but_now_and_then_all():
    agent = link(0, 125000, 0)
    assert agent.port_to_ask(10.0) == ofp.OFPP_ANY
    assert agent.port_to_ask(10.002) == 2
    assert agent.port_to_ask(10.2) == 2
    assert agent.port_to_ask(10.3) == ofp.OFPP_ANY


@pytest.mark.parametrize("agent", [link(), link(1000, 1000), link(0, 1000, govern_all=True)])
def test_otherwise_all_ports_are_asked(agent):
    assert {agent.port_to_ask(at / 100) for at in range(100, 150)} == {ofp.OFPP_ANY}

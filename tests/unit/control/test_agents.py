"""The link to an agent: which port is polled, and when."""

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import queue_depth
from fairq_ryu.control.agents import AgentLink
from tests.support.agent_link import agent_link


def asked(agent: AgentLink, now: float) -> int | None:
    """The port whose queue is requested at that time; the reply arrives at once."""
    agent.datapath.packets.clear()
    agent.request_queues(now)
    agent.queue_reply_complete(now)
    (packet,) = agent.datapath.packets
    return queue_depth.decode_request(packet[-queue_depth.REQUEST_SIZE :])


def test_an_agent_is_known_by_its_bridge():
    assert agent_link().dpid == 5


def test_a_single_port_with_a_queue_is_polled_alone_and_sometimes_all_ports():
    agent = agent_link(0, 125000, 0)
    assert asked(agent, 10.0) == ofp.OFPP_ANY
    assert asked(agent, 10.002) == 2
    assert asked(agent, 10.2) == 2
    assert asked(agent, 10.3) == ofp.OFPP_ANY


@pytest.mark.parametrize(
    "agent", [agent_link(), agent_link(1000, 1000), agent_link(0, 1000, govern_all=True)]
)
def test_otherwise_all_ports_are_polled(agent):
    assert {asked(agent, at / 100) for at in range(100, 150)} == {ofp.OFPP_ANY}


def test_queues_are_requested_again_after_the_reply_or_its_timeout():
    agent = agent_link()
    agent.request_queues(10.0)
    agent.request_queues(10.5)
    assert len(agent.datapath.packets) == 1
    agent.request_queues(11.1)
    assert len(agent.datapath.packets) == 2
    agent.queue_reply_complete(11.15)
    agent.request_queues(11.2)
    assert len(agent.datapath.packets) == 3

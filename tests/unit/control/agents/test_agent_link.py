"""The link to an agent: which port is polled, and when."""

import dataclasses

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import hidden_queue, queue_depth, queue_law, window_law
from fairq_ryu.channel.window_law import LawState
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.far_queue import FAR
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
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


def test_hidden_queues_are_asked_for_once_a_second_if_there_are_far_queues():
    agent = agent_link(1000)
    assert agent.request_hidden_queues(1.0, 10.0) == []
    agent.ports[FAR | 1].name = "eth0@far"
    (message,) = agent.request_hidden_queues(1.0, 11.0)
    assert message.exp_type == hidden_queue.EXP_TYPE_HIDDEN_QUEUE
    assert agent.request_hidden_queues(1.0, 11.9) == []
    assert len(agent.request_hidden_queues(1.0, 12.0)) == 1


def test_a_single_port_with_a_queue_is_polled_alone_and_sometimes_all_ports():
    agent = agent_link(0, 125000, 0)
    assert asked(agent, 10.0) == ofp.OFPP_ANY
    assert asked(agent, 10.002) == 2
    assert asked(agent, 10.2) == 2
    assert asked(agent, 10.3) == ofp.OFPP_ANY


@pytest.mark.parametrize("agent", [agent_link(), agent_link(1000, 1000)])
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


# Laws

FAIRQ = FairQLaw()
OTHER = dataclasses.replace(FAIRQ, target_ppm=100_000)
POOL = WindowRule(WindowKind.POOL, 31_250)


def law_states(agent: AgentLink) -> dict[int, LawState]:
    reported = {number: port.window_law.state for number, port in agent.ports.items()}
    return {number: state for number, state in reported.items() if state is not None}


def law(spec: LawSpec = FAIRQ, port: int = 3) -> WindowRule:
    return WindowRule(WindowKind.LAW, port, spec)


def sent(
    agent: AgentLink, *rules: WindowRule | None, port: int = 3, flow: FlowKey | None = None
) -> list[str]:
    """The messages that rules of a port cause: ``ADD 3 250000``, ``DELETE 3``, or the kind of a rule."""
    agent.datapath.log.clear()
    for rule in rules:
        agent.send(agent.change_rule(RuleChange(RuleTarget(PortKey(5, port), flow), rule), 2))
    return [words(message) for message in agent.datapath.sent]


def words(message: object) -> str:
    if isinstance(message, parser.OFPFlowMod):
        if not message.instructions:
            return "no rule" if message.command == ofp.OFPFC_DELETE_STRICT else "clear"
        return str(message.instructions[0].actions[0].key)
    if message.exp_type == queue_law.EXP_TYPE_SET_QUEUE_LAW:
        return "queue laws"
    found = window_law.decode_set(bytes(message.data))
    name = window_law.LawCommand(found.command).name
    number = "all" if found.law == window_law.ALL_LAWS else found.law
    return f"{name} {number}" + (f" {found.spec.target_ppm}" if found.spec else "")


def test_a_law_is_sent_once_and_before_its_rule():
    agent = agent_link()
    assert sent(agent, law(), law()) == ["ADD 3 250000", "tcp_window_law", "tcp_window_law"]
    assert sent(agent, law(OTHER), law(OTHER)) == ["MODIFY 3 100000", "tcp_window_law", "tcp_window_law"]
    assert sent(agent, law(port=4), port=4) == ["ADD 4 250000", "tcp_window_law"]


def test_the_rule_of_a_law_is_packed_once_and_sent_as_it_is():
    agent = agent_link()
    sent(agent, law(), law())
    first, second = agent.datapath.sent[-2:]
    assert first is second
    sent(agent, law(OTHER))
    assert agent.datapath.sent[-1] is not first, "another law: packed anew"
    assert bytes(agent.datapath.sent[-1].buf)[8:] == bytes(first.buf)[8:]


def test_a_connection_begins_without_laws():
    agent = agent_link()
    agent.send(agent.clear_rules())
    assert [words(message) for message in agent.datapath.sent] == ["queue laws", "DELETE all", "clear"]
    assert sent(agent, law()) == ["ADD 3 250000", "tcp_window_law"]


@pytest.mark.parametrize(("rule", "name"), [(None, "no rule"), (POOL, "tcp_window_pool")])
def test_a_law_is_deleted_after_the_rule_that_referred_to_it(rule, name):
    agent = agent_link()
    sent(agent, law())
    agent.window_laws.reported([LawState(3, 3, *[0] * 13)])
    assert sent(agent, rule, rule) == [name, "DELETE 3", name]
    assert law_states(agent) == {}
    assert sent(agent, law()) == ["ADD 3 250000", "tcp_window_law"]


def test_the_rule_of_a_flow_leaves_the_law_of_its_port():
    agent = agent_link()
    sent(agent, law())
    flow = FlowKey("10.0.0.1", "10.0.0.2", 1, 2)
    assert sent(agent, WindowRule(WindowKind.WINDOW, 3000), None, flow=flow) == ["tcp_window", "no rule"]
    assert sent(agent, law()) == ["tcp_window_law"]


def test_the_law_of_a_port_that_has_gone_is_deleted():
    agent = agent_link()
    sent(agent, law())
    agent.datapath.log.clear()
    for number in (3, 4):
        agent.send(agent.port_removed(number))
    assert [words(message) for message in agent.datapath.sent] == ["DELETE 3"]


def test_a_refused_law_is_not_there():
    agent = agent_link()
    sent(agent, law())
    agent.datapath.log.clear()
    agent.send(agent.window_laws.end(3))
    assert [words(message) for message in agent.datapath.sent] == ["DELETE 3"]
    assert sent(agent, POOL) == ["tcp_window_pool"]
    assert sent(agent, law(OTHER)) == ["ADD 3 100000", "tcp_window_law"]


def test_a_law_that_another_controller_has_changed_is_replaced_once():
    agent = agent_link()
    sent(agent, law())
    assert agent.window_laws.conflict(3)
    assert agent.window_laws.conflict(3), "the rule that followed is refused as well"
    assert sent(agent, law()) == ["DELETE 3", "ADD 3 250000", "tcp_window_law"]
    assert not agent.window_laws.conflict(3), "that controller does the same"


def test_the_states_of_laws_are_requested_while_there_are_any():
    agent = agent_link()
    agent.send(agent.window_laws.request(0.05, 10.0))
    assert agent.datapath.sent == []
    sent(agent, law())
    agent.datapath.log.clear()
    for now in (10.0, 10.04, 10.06):
        agent.send(agent.window_laws.request(0.05, now))
    assert len(agent.datapath.sent) == 2
    agent.window_laws.end(3)
    agent.datapath.log.clear()
    agent.send(agent.window_laws.request(0.05, 11.0))
    assert agent.datapath.sent == []


def test_only_laws_that_govern_a_port_have_a_state():
    agent = agent_link()
    states = [LawState(number, number, *[0] * 13) for number in (3, 4)]
    agent.window_laws.reported(states)
    assert law_states(agent) == {3: states[0], 4: states[1]}
    agent.window_laws.reported([LawState(3, 0, *[0] * 13), states[1]])
    assert law_states(agent) == {4: states[1]}

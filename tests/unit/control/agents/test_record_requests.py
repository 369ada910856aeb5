"""Requests for flow records: one chunk of changes at a time."""

from __future__ import annotations

from typing import Any

import pytest

from fairq_ryu.channel import flow_changes, oxm
from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.channel.flow_changes import ChangeRequest, Chunk, ChunkFlags, RequestFlags
from fairq_ryu.channel.flow_records import ESTABLISHED, FlowRecord
from fairq_ryu.control.agents import record_requests
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.control.agents.record_requests import CHUNK, RecordRequests
from tests.support.fakes import FakeSwitch
from tests.support.flownet import KEY, B


class Agent:
    """The requests to an agent."""

    def __init__(self) -> None:
        self.switch = FakeSwitch(oxm.agent_dpid(1))
        self.requests = RecordRequests(self.switch, AgentPorts())

    def send(self, messages: list[Any]) -> None:
        for message in messages:
            self.switch.send_msg(message)

    def ask(self, now: float, refresh: float = 1.0, again: bool = False) -> list[ChangeRequest]:
        """The requests for changes that are sent at that time, at an interval of a second."""
        self.send(self.requests.request(1.0, refresh, 60.0, again, now))
        return self.taken(flow_changes.EXP_TYPE_FLOW_CHANGES, flow_changes.decode_request)

    def taken(self, kind: int, decode: Any) -> list[Any]:
        found = [decode(message.data) for message in self.switch.sent if message.exp_type == kind]
        if self.switch.sent:
            self.xid = self.switch.sent[-1].xid
        self.switch.log.clear()
        return found

    def answer(self, now: float, generation: int, more: bool = False) -> list[ChangeRequest]:
        """The answer is received and applied; the requests that follow at once."""
        assert self.requests.answered(self.xid)
        head = Chunk(generation, ChunkFlags.MORE if more else ChunkFlags(0), 0, 1000, 0, 0, 0)
        self.send(self.requests.applied(head, now))
        return self.taken(flow_changes.EXP_TYPE_FLOW_CHANGES, flow_changes.decode_request)


@pytest.fixture
def agent() -> Agent:
    return Agent()


def test_the_next_chunk_is_requested_when_the_last_one_is_applied(agent):
    assert agent.ask(10.0) == [ChangeRequest(0, 1000, CHUNK)]
    assert agent.ask(11.5) == []  # not answered yet
    assert agent.answer(11.6, 7, more=True)[0].generation == 7
    assert agent.answer(11.7, 9) == []
    assert agent.ask(12.0) == []
    assert agent.ask(12.7) == [ChangeRequest(9, 1000, CHUNK)]


def test_no_chunk_is_requested_while_one_is_being_applied(agent):
    agent.ask(10.0)
    assert agent.requests.answered(agent.xid)
    assert agent.ask(100.0) == []


def test_an_answer_that_does_not_come_is_requested_again_and_is_then_too_late(agent):
    agent.ask(10.0)
    late = agent.xid
    assert agent.ask(19.9) == []
    assert agent.ask(20.1) == [ChangeRequest(0, 1000, CHUNK)]
    assert not agent.requests.answered(late)
    assert agent.answer(20.2, 3) == []
    assert not agent.requests.answered(agent.xid)  # it was answered


def test_after_a_fault_everything_is_requested_anew(agent):
    agent.ask(10.0)
    agent.answer(10.1, 5)
    agent.ask(11.2)
    assert agent.requests.answered(agent.xid)
    agent.requests.restart()
    assert [each.generation for each in agent.ask(12.3)] == [0]


def test_ended_connections_are_requested_again_for_outcomes(agent):
    assert agent.ask(10.0, again=True)[0].flags == RequestFlags.ENDED_AGAIN
    agent.answer(10.1, 5)
    assert agent.ask(11.2)[0].flags == RequestFlags(0)


def test_a_round_that_takes_long_lets_flows_be_reported_less_often(agent):
    """Otherwise the flows that send would be reported again before the others were at all."""
    agent.ask(10.0)
    assert [each.refresh_ms for each in agent.answer(10.1, 1, more=True)] == [1000]
    assert [each.refresh_ms for each in agent.answer(11.0, 2, more=True)] == [4000]
    assert [each.refresh_ms for each in agent.answer(20.0, 3, more=True)] == [20_000]  # a third of 60 s
    agent.answer(21.0, 4)
    assert [each.refresh_ms for each in agent.ask(22.0)] == [1000]


def record(n: int) -> FlowRecord:
    key = KEY._replace(sport=1000 + n)
    return FlowRecord(key, B.port, ESTABLISHED, 7, 1460, 0, 10 * n, n, 0, acked=5 * n, rtt_us=2000)


def test_parts_of_a_reply_are_joined_by_transaction_id(agent):
    """Replies about two ports are in transit at once, from two agents."""
    requests, others = agent.requests, Agent().requests
    others.request_progress(1, 0.01, 10.0)
    for port in (1, 2):
        agent.send(requests.request_progress(port, 0.01, 10.0))
    first, second = [message.xid for message in agent.switch.sent]
    assert first != second
    one, two, three = map(record, (1, 2, 3))
    assert requests.add(first, [one], True) is None
    assert requests.add(second, [two], True) is None
    assert others.add(first, [three], False) == (1, [three])
    assert requests.add(second, [three], False) == (2, [two, three])
    assert requests.add(first, [three], False) == (1, [one, three])
    assert requests.add(second, [one], False) is None, "it was answered"
    assert not requests._partial


def test_a_reply_without_end_is_refused(agent, monkeypatch):
    monkeypatch.setattr(record_requests, "MOST_RECORDS", 10)
    (message,) = agent.requests.request_progress(1, 0.01, 10.0)
    agent.send([message])
    xid = agent.switch.sent[-1].xid
    assert agent.requests.add(xid, [record(1)] * 10, True) is None
    with pytest.raises(TooMuch, match="flow records of a port"):
        agent.requests.add(xid, [record(1)], True)


def test_an_unexpected_reply_is_ignored(agent):
    assert agent.requests.add(7, [record(1)], True) is None
    assert agent.requests.add(7, [record(1)], False) is None
    assert not agent.requests._partial


def test_a_chunk_is_no_more_than_an_agent_sends():
    assert record_requests.CHUNK <= flow_changes.MAX_RECORDS


def test_connections_that_end_soon_are_left_out_where_there_is_much_to_report(agent):
    """Not for announced flows, whose last counts are needed."""
    assert agent.ask(10.0, refresh=4.0)[0].flags is RequestFlags.LASTING
    agent.answer(10.1, 5)
    assert agent.ask(20.0, refresh=4.0, again=True)[0].flags is RequestFlags.ENDED_AGAIN
    agent.answer(20.1, 6)
    assert not agent.ask(30.0, refresh=1.0)[0].flags


def test_connections_may_be_left_out_until_some_time_after_the_last_request_for_it(agent):
    assert not agent.requests.leaves_out(9.0)
    agent.ask(10.0, refresh=4.0)
    agent.answer(10.1, 5)
    agent.ask(12.0)
    assert agent.requests.leaves_out(15.0) and not agent.requests.leaves_out(15.1)

"""Messages of agents reach their handlers; a message that cannot be decoded is counted and changes
nothing.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import (
    congestion,
    far_queues,
    flow_changes,
    flow_records,
    oxm,
    port_settings,
    queue_depth,
    segment_copies,
    segment_state,
)
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.dispatch import ExperimenterMessage
from fairq_ryu.channel.far_queues import FarQueueState
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.channel.segment_copies import SegmentCopy
from fairq_ryu.control.agents import agent_far_queues, agent_port
from fairq_ryu.control.arrivals.agent_messages import AgentMessages
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.flows.record_tracking import RecordTracker
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.model import Congestion, FlowKey
from fairq_ryu.policies.base import Recovery
from fairq_ryu.port_settings import PortSettings
from tests.support.fakes import FakeSwitch, ryu_decode
from tests.support.flownet import KEY, B, placed
from tests.support.site import LIMIT, Site, state
from tests.switch.packets import Segment

REPLIES = [
    queue_depth.EXP_TYPE_QUEUE_DEPTH,
    flow_records.EXP_TYPE_FLOW_RECORDS,
    flow_changes.EXP_TYPE_FLOW_CHANGES,
    segment_state.EXP_TYPE_SEGMENTS,
]


class Made:
    """The messages of a site's agent."""

    def __init__(self) -> None:
        log = logging.getLogger(__name__)
        self.site, self.counts = Site(), Counts()
        self.tracker = tracker = FlowTracker(self.site.fabric, self.site.flows, self.site.windows, log)
        self.records = RecordTracker(self.site.flows, self.site.windows, tracker.apply, log)
        self.messages = AgentMessages(
            self.site.windows, self.records, tracker.copied_by_agent, self.counts, log
        )

    def reply(self, exp_type: int, data: bytes, more: bool = False, now: float = 10.5, **about: Any) -> None:
        body = SimpleNamespace(experimenter=about.pop("experimenter", oxm.EXPERIMENTER_ID), exp_type=exp_type)
        body.data = data
        message = {"datapath": self.site.agent, "body": body, "xid": 7} | about
        flags = ofp.OFPMPF_REPLY_MORE if more else 0
        self.messages.reply(SimpleNamespace(**message, flags=flags), now)

    def notice(self, data: bytes, exp_type: int = congestion.EXP_TYPE_CONGESTION) -> None:
        message = {"experimenter": oxm.EXPERIMENTER_ID, "exp_type": exp_type, "data": data, "xid": 7}
        self.messages.notification(SimpleNamespace(datapath=self.site.agent, **message), 10.5)

    def read(self, **about: Any) -> int | None:
        """Report a queue. Returns its length as the controller knows it."""
        self.reply(queue_depth.EXP_TYPE_QUEUE_DEPTH, queue_depth.encode_reply([DEPTH]), **about)
        known = self.site.link.ports[DEPTH.port].depth
        return None if known is None else known.backlog


DEPTH = QueueDepth(B.port, 0, 4000, 5000, LIMIT, 25_000_000, 0, 0, 10**9)


@pytest.fixture
def made() -> Made:
    return Made()


def test_a_queue_depth_is_the_reading_of_its_port(made):
    assert made.read() == 4000


def test_the_last_part_of_a_reply_ends_the_request(made):
    link = made.site.link
    link.request_queues(10.0)
    made.read(more=True)
    assert link.round_trip.count == 0
    made.read()
    assert link.round_trip.count == 1


@pytest.mark.parametrize(("more", "requests"), [(True, 1), (False, 2)])
def test_a_malformed_reply_ends_the_request_as_well(made, more, requests):
    link = made.site.link
    link.request_queues(10.0)
    made.reply(queue_depth.EXP_TYPE_QUEUE_DEPTH, b"\xff" * 3, more=more)
    link.request_queues(10.5)
    assert len(made.site.agent.packets) == requests
    assert link.unanswered == 0


@pytest.mark.parametrize("exp_type", [kind for kind in REPLIES if kind != queue_depth.EXP_TYPE_QUEUE_DEPTH])
def test_other_malformed_replies_leave_the_request_for_queues_open(made, exp_type):
    made.site.link.request_queues(10.0)
    made.reply(exp_type, b"\xff" * 3)
    made.site.link.request_queues(10.5)
    assert len(made.site.agent.packets) == 1


@pytest.mark.parametrize("about", [{"experimenter": 1}, {"datapath": FakeSwitch(oxm.agent_dpid(1))}])
def test_messages_of_others_are_ignored(made, about):
    """Another experimenter's, and those of an earlier connection."""
    assert made.read(**about) is None
    assert made.counts.malformed == 0


@pytest.mark.parametrize("ours", [True, False])
def test_a_reply_that_comes_without_an_event(made, ours):
    """One that is not from an agent is left to Ryu."""
    number, data = queue_depth.EXP_TYPE_QUEUE_DEPTH, queue_depth.encode_reply([DEPTH])
    agent = made.site.agent if ours else FakeSwitch(oxm.agent_dpid(1))
    made.site.link.request_queues(10.0)
    said = ExperimenterMessage(oxm.EXPERIMENTER_ID, number, 7, False, data)
    assert made.messages.direct_reply(agent, said) == ours
    assert (made.site.link.round_trip.count, made.site.link.ports[B.port].depth is not None) == (ours, ours)


def test_unknown_types_are_ignored(made):
    made.reply(0x7777, b"")
    made.notice(b"", 0x7777)
    assert made.counts.malformed == 0


@pytest.mark.parametrize("exp_type", REPLIES)
def test_malformed_replies_are_counted_and_logged(made, caplog, exp_type):
    made.reply(exp_type, b"\xff" * 3)
    assert made.counts.malformed == 1
    (line,) = caplog.messages
    assert line.startswith("agent of bridge 0000000000000001: malformed ")


@pytest.mark.parametrize("module", [agent_port, agent_far_queues, port_settings])
def test_an_agent_that_names_ports_without_end_is_disconnected(made, caplog, monkeypatch, module):
    monkeypatch.setattr(module, "MOST_PORTS", 2)
    numbers = range(100, 103)
    if module is agent_port:
        body = queue_depth.encode_reply([DEPTH._replace(port=each) for each in numbers])
        made.reply(queue_depth.EXP_TYPE_QUEUE_DEPTH, body)
    elif module is agent_far_queues:
        states = [FarQueueState(FarQueue(f"eth{each}"), True, each) for each in numbers]
        made.reply(far_queues.EXP_TYPE_FAR_QUEUES, far_queues.encode_reply(states), more=True)
    else:
        (body,) = port_settings.encode(dict.fromkeys(numbers, PortSettings()))
        made.notice(body, port_settings.EXP_TYPE_PORT_SETTINGS)
    assert "its connection is ended" in caplog.text and made.site.agent.closed


def test_malformed_notices_are_counted(made):
    made.notice(b"\xff")
    assert made.counts.malformed == 1


def test_a_congestion_notice_reaches_the_law_of_its_port(made):
    made.read()
    made.notice(congestion.encode_notice(CongestionNotice(B.port, Congestion.CNG, 90_000, 10**9)))
    assert ("congestion", Congestion.CNG, 90_000) in made.site.law(B).calls


def test_segment_states_answer_a_loss(made):
    site = made.site
    site.policy.recovery = Recovery(True, False, 5000, 1.0, by_agent=False)
    site.open()
    site.log.clear()
    frame = Segment(KEY.src, KEY.dst, KEY.sport, KEY.dport, 101, 901, payload=b"x" * 1000).frame()
    site.windows.packet_dropped(B, frame, len(frame), 0.1)
    assert [type(message).__name__ for message in site.agent.sent] == ["OFPExperimenterStatsRequest"]
    made.reply(segment_state.EXP_TYPE_SEGMENTS, segment_state.encode_reply([state(KEY, ack=101)]), now=0.2)
    assert site.injector.counts == {"dupack": 1}


@pytest.mark.parametrize("event", [True, False])
def test_a_copied_segment_places_its_flow(made, event):
    """The agent names the port by which the SYN has left; a bridge of the fabric would copy it itself."""
    syn = Segment(flags="S")
    message = ryu_decode(segment_copies.encode(SegmentCopy(B.port, syn.frame(), len(syn.frame()))))
    message.datapath = made.site.agent

    def arrives() -> None:
        if event:
            made.messages.packet_in(message, 10.5)
        else:
            assert made.messages.segment_copy(made.site.agent, B.port, syn.frame())
        made.tracker.drain()

    arrives()
    assert not made.site.flows and made.counts.packet_ins["tcp"] == 1
    del made.site.fabric.bridges[1]
    arrives()
    assert placed(made.site.flows) == {(B, FlowKey(syn.src, syn.dst, syn.sport, syn.dport))}
    assert not made.messages.segment_copy(FakeSwitch(oxm.agent_dpid(1)), B.port, syn.frame())

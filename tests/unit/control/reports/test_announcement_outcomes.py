"""The outcomes of announced flows: copies, records and time pass, and events report the outcome."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fairq_ryu.channel import flow_records, oxm
from fairq_ryu.channel.description import Description
from fairq_ryu.config.loader import Config
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports import event_reporter
from fairq_ryu.control.reports.announcement_outcomes import Assignment, Counted, Outcomes
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.flows.table import SYN_TIMEOUT, FlowTable
from fairq_ryu.model import Announcement, FlowKey, PortKey, Service
from fairq_ryu.policies.choice import PolicyChoice, make
from tests.support.fakes import FakeSwitch
from tests.support.flownet import BACK, IDLE, ISN, KEY, LOCAL, PEER_ISN, A, B, Net, reconcile, record, segment

SIZE = 1_000_000
MET, MISSED, UNSENT = Kind.MET, Kind.MISSED, Kind.UNSENT
NOTHING_SENT = f"{KEY} has ended without sending"


class Story:
    """A controller with one switch and a clock that the test sets; ``events`` are the reported events."""

    def __init__(self, policy: str = "sed", *services: Service) -> None:
        log = logging.getLogger(__name__)
        self.config = Config({}, services=services)
        self.events: list[tuple[Kind, str, PortKey | None, FlowKey | None]] = []
        self.flows = FlowTable(IDLE)
        self.reporter = EventReporter(self._reported, lambda _: "")
        choice = PolicyChoice(make(policy, self.config))
        fabric = FabricController(self.config, log)
        self.windows = WindowController(choice, self.config, fabric, self.flows, log, self.reporter)
        self.tracker = FlowTracker(fabric, self.flows, self.windows, log)
        self.link = self.windows.agent_connected(FakeSwitch(oxm.agent_dpid(1)), Description("s1"))
        self.events.clear()

    def _reported(self, occurrence: Occurrence) -> None:
        self.events.append(occurrence[:4])

    @property
    def kinds(self) -> list[Kind]:
        return [event[0] for event in self.events]

    def announce(self, now: float = 0.0, **more: Any) -> int:
        wanted = {"src": KEY.src, "dst": KEY.dst, "dport": KEY.dport, "size": SIZE, "deadline": 2.0} | more
        return self.windows.announce(Request(**wanted), now).id

    def send(self, flags: str, now: float, key: FlowKey = KEY, **numbers: int) -> None:
        there = key.dport == KEY.dport
        port, path = (A, LOCAL) if there else (B, LOCAL.reversed)
        self.tracker.apply(self.flows.segment(segment(key, flags, **numbers), port, path, now), now)

    def open(self, now: float = 0.0, isn: int = ISN) -> None:
        self.send("S", now, seq=isn)
        self.send("SA", now, BACK, seq=PEER_ISN, ack=isn + 1)

    def close(self, now: float) -> None:
        self.send("FA", now, seq=ISN + 1 + SIZE)
        self.send("FA", now, BACK, seq=PEER_ISN + 1)

    def record(
        self,
        now: float,
        acked: int,
        *,
        sent: int | None = None,
        idle: float = 0.0,
        flags: int = flow_records.KNOWN | flow_records.ESTABLISHED,
        closed: bool = False,
        port: int | None = None,
    ) -> None:
        """The agent reports all its flows, or those of a port."""
        flags |= flow_records.CLOSED if closed else 0
        rest = {"idle_ms": round(idle * 1000), "packets": 1, "rewritten": 0}
        sent = acked if sent is None else sent
        there = flow_records.FlowRecord(KEY, B.port, flags, 7, 1460, bytes=sent, acked=acked, **rest)
        back = flow_records.FlowRecord(BACK, A.port, flags, 7, 1460, bytes=0, acked=0, **rest)
        found = [there, back] if port is None else [there]
        if port is None:
            self.recorded(found, now)
        else:
            self.windows.port_flows_reported(self.link, port, found, now)

    def recorded(self, found: list[flow_records.FlowRecord], now: float) -> None:
        seen = [
            record(
                each.key,
                PortKey(1, each.port),
                closed=bool(each.flags & flow_records.CLOSED),
                idle=each.idle_ms / 1000,
                bytes=each.bytes,
            )
            for each in found
        ]
        self.tracker.apply(reconcile(self.flows, 1, seen, now), now)
        self.windows.flows_counted(self.link, found, now)

    def wait(self, until: float) -> None:
        self.windows.report_overdue(until)


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def announced(story: Story) -> Story:
    """A million bytes within two seconds, from 0 on."""
    story.announce()
    story.open()
    return story


# Met


@pytest.mark.parametrize("port", [None, B.port])
def test_a_deadline_is_met_as_soon_as_a_record_says_so(announced, port):
    announced.record(0.5, SIZE - 1, port=port)
    announced.wait(0.6)
    assert announced.events == []
    announced.record(1.0, SIZE, port=port)
    assert announced.events == [(MET, f"{KEY} has met its deadline", B, KEY)]
    announced.record(1.1, SIZE)  # once
    announced.close(1.2)
    announced.record(1.3, SIZE, closed=True)
    announced.wait(60.0)
    assert announced.kinds == [MET]
    assert not announced.reporter.outcomes


def test_the_record_arrives_after_the_end(announced):
    announced.record(0.9, SIZE // 2)
    announced.close(1.2)
    announced.record(1.3, SIZE, closed=True)
    assert announced.kinds == [MET]
    announced.wait(60.0)
    assert announced.kinds == [MET]


def test_a_late_record_has_the_time_of_the_last_progress(announced):
    """The record arrives after the deadline, but the deadline was met."""
    announced.close(1.9)
    announced.wait(2.1)
    announced.record(2.5, SIZE, idle=0.6, closed=True)
    assert announced.kinds == [MET]


def test_a_late_record_without_that_time_decides_nothing(announced):
    """The flow may have been in time, or late."""
    announced.close(1.9)
    announced.record(2.5, SIZE, idle=0.4, closed=True)
    announced.wait(60.0)
    assert announced.events == []


def test_a_missed_deadline_is_not_reported_as_met(announced):
    announced.wait(2.01)
    assert announced.kinds == [MISSED]
    announced.record(2.02, SIZE, idle=0.1)  # the port's table was not up to date
    announced.close(2.1)
    announced.record(3.0, SIZE, idle=1.1, closed=True)
    announced.wait(60.0)
    assert announced.kinds == [MISSED]


def test_a_met_deadline_is_not_reported_as_missed(announced):
    """The port's table may be out of date."""
    announced.record(1.99, SIZE)
    announced.wait(2.01)
    assert announced.kinds == [MET]


def test_a_size_without_deadline_is_no_event():
    story = Story()
    story.announce(deadline=None)
    story.open()
    story.record(1.0, SIZE)
    story.close(1.1)
    story.wait(60.0)
    assert story.events == []


def test_a_changed_announcement_is_met_again(announced):
    announced.record(0.5, SIZE)
    announced.announce(0.6, sport=KEY.sport, size=2 * SIZE)
    announced.record(0.7, SIZE)
    assert announced.kinds == [MET]
    announced.record(0.9, 2 * SIZE)
    assert announced.kinds == [MET, MET]


def test_a_flow_takes_another_path_and_meets_its_deadline_once(announced):
    announced.record(0.5, SIZE)
    for path in (None, LOCAL):
        events = announced.flows.forget_port(B) if path is None else announced.flows.repath(KEY, path, 0.6)
        announced.tracker.apply(events, 0.6)
    announced.record(0.7, SIZE)
    assert announced.kinds == [MET]


def test_a_service_s_flow_meets_its_deadline():
    story = Story("sed", Service("s", KEY.dport, "", SIZE, 2.0, True))
    story.open()
    story.record(1.0, SIZE)
    assert story.kinds == [MET]


# Unsent


def test_a_flow_that_ends_without_a_byte(announced):
    announced.record(0.9, 0)
    announced.close(1.0)
    announced.record(1.9, 0, idle=0.9, closed=True)
    announced.wait(3.9)
    assert announced.events == []  # more may come
    announced.wait(4.0)
    assert announced.events == [(UNSENT, NOTHING_SENT, B, KEY)]
    announced.wait(60.0)
    assert len(announced.events) == 1


def test_a_flow_that_ends_early_with_part_of_its_bytes(announced):
    announced.record(0.9, 12_345)
    announced.close(1.0)
    announced.record(1.9, 400_000, idle=0.9, closed=True)
    announced.wait(4.9)
    words = f"{KEY} has ended with 400,000 of 1,000,000 announced bytes acknowledged"
    assert announced.events == [(UNSENT, words, B, KEY)]


def test_bytes_that_arrive_after_the_end_are_waited_for(announced):
    """FIN is copied at the ingress, before the queues."""
    announced.close(1.0)
    announced.record(3.9, SIZE - 1, closed=True)
    announced.wait(4.1)
    announced.record(4.9, SIZE, idle=3.0, closed=True)
    announced.wait(60.0)
    assert announced.kinds == [MET]


def test_a_lost_record_is_no_proof(announced):
    announced.record(0.9, 0)
    announced.close(1.0)
    announced.record(1.1, 0, closed=True)  # bytes in flight may not have arrived
    announced.wait(60.0)
    announced.record(60.0, 0, closed=True)
    announced.wait(90.0)
    assert announced.events == []
    assert not announced.reporter.outcomes


def test_a_record_that_began_in_the_middle_is_no_proof(announced):
    """An agent that was started after the handshake has not counted the bytes before."""
    announced.close(1.0)
    announced.record(1.9, 5_000, idle=0.9, closed=True, flags=flow_records.ESTABLISHED)
    announced.wait(60.0)
    assert announced.events == []


def test_a_reset(announced):
    announced.record(0.9, 70_000)
    announced.send("R", 1.0, BACK, seq=PEER_ISN + 1)
    announced.record(1.9, 70_000, sent=SIZE, idle=0.9, closed=True)
    announced.wait(4.0)
    assert announced.kinds == [UNSENT]
    assert "70,000 of 1,000,000" in announced.events[0][1]


def test_a_reset_before_anything_is_acknowledged(announced):
    announced.send("R", 1.0, BACK, seq=PEER_ISN + 1)
    announced.record(1.9, 0, sent=1460, idle=0.9, closed=True)
    announced.wait(4.0)
    assert announced.events[0][1] == f"{KEY} has ended with 0 of 1,000,000 announced bytes acknowledged"


def test_a_forged_reset_is_no_end(announced):
    announced.send("R", 1.0, seq=ISN + 1)
    announced.record(2.0, 70_000, closed=True)  # it progresses
    announced.wait(60.0)
    assert UNSENT not in announced.kinds


def test_a_refused_connection_has_sent_nothing(story):
    story.announce()
    story.send("S", 0.0, seq=ISN)
    story.send("RA", 0.1, BACK, seq=0, ack=ISN + 1)
    story.wait(3.2)
    assert story.events == [(UNSENT, NOTHING_SENT, B, KEY)]


def test_an_unanswered_syn(story):
    story.announce(deadline=None)
    story.send("S", 0.0, seq=ISN)
    story.tracker.apply(story.flows.expire(SYN_TIMEOUT + 1), SYN_TIMEOUT + 1)
    story.wait(SYN_TIMEOUT + 1)
    assert story.events == [(UNSENT, NOTHING_SENT, B, KEY)]


def test_a_silent_flow_has_ended_when_the_table_expires_it(story):
    story.announce(deadline=None)
    story.open()
    story.record(1.0, 0)
    story.record(50.0, 0, idle=49.0)
    story.tracker.apply(story.flows.expire(IDLE + 2), IDLE + 2)
    story.wait(IDLE + 2)
    assert story.kinds == [UNSENT]


def test_records_lost_by_an_agent_are_no_proof_of_an_end(story):
    story.announce(deadline=None)
    story.open()
    story.record(4.0, 5_000)
    for now in (5.0, 6.0, 7.0):
        story.recorded([], now)
    assert story.flows.get(KEY) is None
    story.wait(60.0)
    assert story.events == []


@pytest.mark.parametrize(("sent", "kinds"), [(0, [UNSENT]), (1, [])])
def test_without_a_size_one_byte_is_enough(story, sent, kinds):
    story.announce(size=None, deadline=9.0)
    story.open()
    story.close(1.0)
    story.record(1.9, sent, idle=0.9, closed=True)
    story.wait(60.0)
    assert story.kinds == kinds


def test_a_flow_may_miss_its_deadline_and_end_without_the_rest(announced):
    announced.record(1.0, 5_000)
    announced.wait(2.1)
    announced.close(5.0)
    announced.record(5.9, 5_000, idle=0.9, closed=True)
    announced.wait(8.0)
    assert announced.kinds == [MISSED, UNSENT]


def test_one_side_that_has_sent_its_fin_has_ended(announced):
    announced.send("FA", 1.0, seq=ISN + 1)
    announced.record(1.9, 0, idle=0.9, closed=True)
    announced.wait(4.0)
    assert announced.kinds == [UNSENT]


def test_the_other_direction_s_fin_is_not_the_flow_s_end(announced):
    announced.send("FA", 1.0, BACK, seq=PEER_ISN + 1)
    announced.wait(1.9)
    announced.record(1.95, SIZE)
    assert announced.kinds == [MET]


def test_an_announcement_that_is_withdrawn_is_forgotten(story):
    number = story.announce(sport=KEY.sport)
    story.open()
    story.windows.withdraw(number, 0.5)
    story.record(0.9, SIZE)
    story.close(1.0)
    story.record(1.9, SIZE, idle=0.9, closed=True)
    story.wait(60.0)
    assert story.events == []


def test_ports_that_are_used_again(announced):
    """The outcome of an ended flow is decided by the known state; its records do not count for the
    next flow.
    """
    announced.close(1.0)
    announced.record(1.9, 0, idle=0.9, closed=True)
    announced.announce(2.0, sport=KEY.sport)
    announced.open(2.1, isn=ISN + 2 * SIZE)
    assert announced.kinds == [UNSENT]
    announced.record(2.2, SIZE, idle=1.2)  # of the flow before
    announced.record(2.3, SIZE, closed=True)  # the handshake is not recorded yet
    assert announced.kinds == [UNSENT]
    announced.record(3.0, SIZE)
    assert announced.kinds == [UNSENT, MET]


# Bounds, and flows that are not reported


def test_a_policy_that_ignores_announcements_causes_no_events():
    story = Story("fairq", Service("s", KEY.dport, "", SIZE, 2.0, True))
    story.open()
    story.record(1.0, SIZE)
    assert story.events == []
    assert not story.reporter.outcomes


def test_a_change_to_such_a_policy_ends_it(announced):
    announced.windows.use(PolicyChoice(make("fairq", announced.config)))
    assert not announced.reporter.outcomes
    announced.record(1.0, SIZE)
    assert announced.events == []


def test_floods_of_a_service_are_no_events_and_take_no_room(monkeypatch):
    monkeypatch.setattr(event_reporter, "_MAX_DEADLINES", 40)
    story = Story("sed", Service("s", KEY.dport, "", SIZE, 60.0, True))
    for sport in range(1000, 2000):
        story.send("S", 0.0, KEY._replace(sport=sport), seq=ISN)
    assert len(story.reporter.outcomes) == 20
    story.announce(sport=KEY.sport)
    story.open()
    story.close(1.0)
    story.record(1.9, 0, idle=0.9, closed=True)
    story.wait(4.0)
    assert story.kinds == [UNSENT]
    end = SYN_TIMEOUT + 1
    story.tracker.apply(story.flows.expire(end), end)
    story.wait(60.0)
    assert story.kinds == [UNSENT]
    assert not story.reporter.outcomes


def test_a_flow_that_ends_on_no_port_is_forgotten(announced):
    announced.tracker.apply(announced.flows.forget_switch(1), 1.0)
    announced.close(2.0)
    assert list(announced.reporter.outcomes) == [KEY]
    announced.windows.prune(15.0)
    announced.wait(60.0)
    assert not announced.reporter.outcomes


def test_the_number_of_flows_is_bounded():
    net, outcomes = Net(), Outcomes(capacity=2)
    for sport in (1, 2, 3):
        key = KEY._replace(sport=sport)
        net.open(key=key)
        connection = net.table.get(key)
        assert connection is not None
        outcomes.announced(Assignment(key, Announcement(9, 1.0), connection, 0.0, True))
    assert [key.sport for key in outcomes] == [1, 2]
    assert outcomes.counted(KEY._replace(sport=3), Counted(B, 9, 9, 0.0, True, False), 0.5) is None

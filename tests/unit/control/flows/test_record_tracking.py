"""Agents' flow records reach the flow table in short steps, chunk by chunk."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from fairq_ryu.channel import flow_changes, flow_records, segment_state
from fairq_ryu.channel.flow_changes import Changes, Chunk, ChunkFlags
from fairq_ryu.channel.flow_records import ESTABLISHED, KNOWN, FlowRecord
from fairq_ryu.control.flows import record_tracking
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.flows.record_tracking import STEP, RecordTracker
from fairq_ryu.model import FlowKey
from tests.support.flownet import KEY, A, B
from tests.support.site import Site


def key(n: int) -> FlowKey:
    return KEY._replace(sport=1000 + n)


def both(n: int, flags: int = KNOWN | ESTABLISHED, idle_ms: int = 0) -> list[FlowRecord]:
    """The records of a connection."""
    return [
        FlowRecord(each, port.port, flags, 7, 1460, idle_ms, 100, 1, 0)
        for each, port in ((key(n), B), (key(n).reversed, A))
    ]


class Made:
    """A site whose agent reports changes; ``meanwhile`` counts how often other greenlets could run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site = Site()
        log = logging.getLogger(__name__)
        self.tracker = FlowTracker(site.fabric, site.flows, site.windows, log)
        self.now, self.tick = 100.0, 0.0
        self.meanwhile: list[int] = []
        hub = SimpleNamespace(sleep=lambda _: self.meanwhile.append(len(site.flows)))
        monkeypatch.setattr(record_tracking, "hub", hub)
        self.records = RecordTracker(site.flows, site.windows, self.tracker.apply, log, self.clock)
        site.log.clear()

    def clock(self) -> float:
        self.now += self.tick
        return self.now

    def report(
        self,
        records: list[FlowRecord],
        gone: tuple[FlowKey, ...] = (),
        flags: int = 0,
        generation: int = 1,
        age_ms: int = 0,
        refresh: float = 0.0,
    ) -> list[int]:
        """A chunk is asked for, comes, and is applied. The generations of requests that follow."""
        requests = self.site.link.flow_records
        self.site.link.send(requests.request(0.0, refresh, 60.0, False, self.now))
        xid = self.site.agent.sent[-1].xid
        self.site.log.clear()
        head = Chunk(generation, ChunkFlags(flags), age_ms, 1000, 2 * len(records), len(records), 3)
        removed = b"".join(map(segment_state.encode_key, gone))
        reply = Changes(head, flow_records.encode_reply(records), removed)
        self.records.changed(self.site.link, xid, reply, self.now)
        self.records.drain()
        return [
            flow_changes.decode_request(message.data).generation
            for message in self.site.agent.sent
            if getattr(message, "exp_type", None) == flow_changes.EXP_TYPE_FLOW_CHANGES
        ]

    @property
    def known(self) -> set[FlowKey]:
        return {each.forward for each in self.site.flows}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(monkeypatch)


def test_reported_connections_are_known_and_counted_at_their_ports(made):
    made.report(both(1) + both(2), flags=ChunkFlags.ANEW)
    assert made.known == {key(1), key(2)}
    assert [call[:2] for call in made.site.law(B).calls] == [("started", key(1)), ("started", key(2))]
    assert (made.site.link.flows_unscaled, made.site.link.records) == (3, 4)


def test_the_next_chunk_is_asked_for_after_the_last_was_applied(made):
    assert made.report(both(1), flags=ChunkFlags.ANEW | ChunkFlags.MORE, generation=5) == [5]
    assert made.report(both(2), generation=9) == []
    assert made.known == {key(1), key(2)}


def test_a_long_report_lets_others_run(made):
    made.tick = 0.0006
    many = [record for n in range(200) for record in both(n)]
    made.report(many, flags=ChunkFlags.ANEW)
    assert len(made.known) == 200
    steps = len(many) / STEP
    assert steps / 3 <= len(made.meanwhile) <= 2 * steps
    # In each step so many connections were added.
    assert max(b - a for a, b in zip(made.meanwhile, made.meanwhile[1:], strict=False)) <= 2 * STEP
    made.meanwhile.clear()
    for n in range(8):
        made.report([], generation=2 + n)
    assert len(made.meanwhile) <= 8  # silent connections take no time


def test_a_connection_that_is_not_listed_any_more_ends(made):
    made.report(both(1) + both(2), flags=ChunkFlags.ANEW)
    made.now += 10
    made.report([], generation=2)
    assert made.known == {key(1), key(2)}  # silent, and still listed
    made.report([], (key(1), key(1).reversed), generation=3)
    made.now += 3
    made.report([], generation=4)
    assert made.known == {key(2)}


@pytest.mark.parametrize(("refresh", "ends"), [(0.0, 3.0), (9.0, 3.0 + flow_changes.LEAVE_OUT_MS / 1000)])
def test_a_connection_without_a_record_ends_later_where_young_ones_are_left_out(made, refresh, ends):
    made.report([], flags=ChunkFlags.ANEW, refresh=refresh)
    made.site.open(key(1), made.now)
    began = made.now
    for number in range(2, 60):
        made.now = began + number / 10
        made.report([], generation=number, age_ms=990, refresh=refresh)
        if not made.known:
            break
    assert made.now - began == pytest.approx(ends, abs=0.11)


def test_a_chunk_that_was_not_asked_for_changes_nothing(made):
    made.report(both(1), flags=ChunkFlags.ANEW)
    reply = Changes(Chunk(7, ChunkFlags.ANEW, 0, 1000, 0, 0, 0), b"", b"")
    made.records.changed(made.site.link, 0xFA180001, reply, made.now)
    made.records.drain()
    made.now += 3
    made.report([], generation=2)
    assert made.known == {key(1)}


def test_a_chunk_of_a_connection_that_has_ended_is_dropped(made):
    link = made.site.link
    link.send(link.flow_records.request(0.0, 1.0, 60.0, False, made.now))
    reply = Changes(
        Chunk(7, ChunkFlags.ANEW, 0, 1000, 0, 0, 0),
        flow_records.encode_reply([record for n in range(100) for record in both(n)]),
        b"",
    )
    made.records.changed(link, made.site.agent.sent[-1].xid, reply, made.now)
    made.site.windows.agent_disconnected(link)
    made.records.drain()
    assert len(made.known) <= STEP


def test_what_a_switch_lists_is_asked_for_anew_if_the_switch_was_forgotten(made):
    made.report(both(1), flags=ChunkFlags.ANEW, generation=5)
    made.site.flows.forget_switch(1)
    assert made.report(both(2), generation=6) == []
    link = made.site.link
    link.send(link.flow_records.request(0.0, 1.0, 60.0, False, made.now + 1))
    assert flow_changes.decode_request(made.site.agent.sent[-1].data).generation == 0


def test_a_report_that_fails_does_not_end_the_worker(made, monkeypatch, caplog):
    monkeypatch.setattr(made.site.flows, "changed", lambda *_: 1 / 0)
    made.report(both(1), flags=ChunkFlags.ANEW)
    assert "division by zero" in caplog.text
    monkeypatch.undo()
    made.report(both(2), flags=ChunkFlags.ANEW)
    assert made.known == {key(2)}

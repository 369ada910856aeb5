"""Copies of segments are applied in their order, later; records of agents correct what they missed."""

from __future__ import annotations

import pytest

from fairq_ryu.channel import flow_records
from fairq_ryu.control import flow_tracking
from fairq_ryu.fabric.deadlines.request import Request
from tests.support.flownet import KEY
from tests.support.workers import Holding


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Holding:
    return Holding(monkeypatch)


def test_copies_are_worked_on_later_in_their_order(holding):
    for number in range(5):
        holding.copy(number)
    assert holding.counted == []
    holding.work_on_copies()
    assert holding.counted == list(range(5))
    holding.copy(5)
    holding.work_on_copies()
    assert holding.counted == list(range(6))


def test_others_have_their_turn_among_copies_when_these_take_long(holding):
    seen = []
    holding.meanwhile = lambda: seen.append(len(holding.counted))
    for number in range(4):
        holding.copy(number)
    holding.work_on_copies()
    assert seen == []  # the clock stands: they took no time
    times = iter(11.0 + 0.0006 * tick for tick in range(100))
    holding.clock = lambda: next(times)
    for number in range(4, 8):
        holding.copy(number)
    holding.work_on_copies()
    assert seen and seen[0] < 8


def test_when_too_many_copies_wait_the_first_is_worked_on_at_once(holding, monkeypatch):
    monkeypatch.setattr(flow_tracking, "MAX_COPIES", 2)
    for number in range(4):
        holding.copy(number)
    assert holding.counted == [0, 1]  # the first to come
    holding.work_on_copies()
    assert holding.counted == [0, 1, 2, 3]


def test_a_copy_that_fails_does_not_end_the_worker(holding, monkeypatch, caplog):
    holding.fail_with(0, monkeypatch)
    for number in range(3):
        holding.copy(number)
    holding.work_on_copies()
    assert holding.counted == [1, 2] and "a bad day" in caplog.text


def test_the_deadline_of_a_copied_syn_counts_from_when_it_came(holding):
    wanted = Request(KEY.src, KEY.dst, KEY.dport, sport=KEY.sport, size=5000, deadline=0.5)
    holding.site.windows.announce(wanted, 10.9)
    holding.copy(0, 11.0)
    holding.now = 11.2
    holding.work_on_copies()
    assert holding.site.windows.announcements.of(KEY).deadline == pytest.approx(11.5)


def test_flows_whose_handshake_the_agent_has_not_seen_are_counted(holding):
    link = holding.site.link
    found = [
        flow_records.FlowRecord(KEY, 1, flags, 7, 1460, 0, 0, 0, 0)
        for flags in (
            flow_records.KNOWN,
            0,
            flow_records.ESTABLISHED,
            flow_records.CLOSED,
            flow_records.KNOWN | flow_records.CLOSED,
        )
    ]
    holding.tracker.recorded(link, found, 1.0)
    assert link.flows_unscaled == 2

"""The queue program's entries for ports, and what it knows of queues, without a kernel."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs import queue
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tx_queues import tx_queue_id
from fairq_ryu.model import Thresholds
from tests.support.tables import Table

EVENT, AREA, BACKLOG = 10**12, 5, 30_000
# Its queue drains in 50 ms; the margin is 20.
LIMITS, DRAIN = QueueLimits("htb", 50_000, 1_000_000), 70_000_000


TABLES = ("queues", "checks", "_histograms")


@pytest.fixture
def program() -> QueueProgram:
    made = QueueProgram(None, 4)
    for name in (*TABLES, "threshold_map", "config"):
        setattr(made, name, Table())
    made.law_maps = SimpleNamespace(add=lambda known, slot: None, remove=lambda known: None)  # type: ignore[assignment]
    return made


def ports(program: QueueProgram) -> list[list[int]]:
    return [sorted(getattr(program, name)) for name in TABLES]


def test_a_port_has_an_entry_in_all_maps(program):
    program.add_port(7)
    assert ports(program) == [[7]] * 3
    program.remove_port(7)
    assert ports(program) == [[]] * 3


@pytest.mark.parametrize("name", TABLES)
def test_a_port_whose_entry_fails_leaves_nothing_behind(program, name):
    program.add_port(7)
    getattr(program, name).full = True
    with pytest.raises(BpfError):
        program.add_port(8)
    assert ports(program) == [[7]] * 3
    getattr(program, name).full = False
    program.add_port(8)
    assert ports(program) == [[7, 8]] * 3


# Missed events


@pytest.fixture
def stale(program, monkeypatch):
    """Port 7 has had a backlog by its last event. Returns a function that sets the time after it."""
    program.add_port(7)
    program.set_limits({7: LIMITS}, [7])
    program.queues[7] = layout.fq_queue(last_ns=EVENT, backlog=BACKLOG, byte_ns=AREA)
    now = 0
    monkeypatch.setattr(queue, "time", SimpleNamespace(monotonic_ns=lambda: EVENT + now))

    def wait(ns: int) -> int:
        nonlocal now
        now = ns
        return EVENT + now

    return wait


def seen(program) -> tuple[int, int]:
    """Backlog, and its integral."""
    found = program.state(7)
    return found.backlog, found.byte_ns


def test_a_stale_backlog_is_none_and_is_corrected_once(program, stale):
    assert program.silent(stale(DRAIN)) == {}
    assert seen(program) == (BACKLOG, AREA + DRAIN * BACKLOG)
    now = stale(DRAIN + 1)
    assert program.silent(now) == {7: EVENT}
    assert seen(program) == (0, AREA + DRAIN * BACKLOG)
    assert program.correct(7, EVENT, now, 0), "events were missed"
    for later in (DRAIN + 2, 10**15):
        assert program.silent(stale(later)) == {}
        assert seen(program) == (0, AREA + DRAIN * BACKLOG)


def test_a_queue_that_stands_still_keeps_its_backlog_while_it_is_read(program, stale):
    area = DRAIN * BACKLOG
    for number in range(1, 4):
        now = stale(number * 2 * DRAIN)
        assert program.silent(now) == {7: EVENT} and seen(program) == (0, AREA + area)
        assert not program.correct(7, EVENT, now, BACKLOG)
        assert seen(program) == (BACKLOG, AREA + area)
        stale((number * 2 + 1) * DRAIN)
        area += DRAIN * BACKLOG
        assert seen(program) == (BACKLOG, AREA + area)


def test_an_integral_that_wraps_is_corrected_as_well(program, stale):
    program.queues[7].byte_ns = 2**64 - 1
    area = (DRAIN * BACKLOG - 1) % 2**64
    now = stale(DRAIN + 1)
    assert seen(program) == (0, area)
    assert program.correct(7, EVENT, now, 0)
    assert program.checks[7].byte_ns == DRAIN * BACKLOG and seen(program) == (0, area)


def test_an_event_during_the_reading_counts_and_not_the_reading(program, stale):
    now = stale(DRAIN + 1)
    silent = program.silent(now)
    # Before what was read is written, and after it.
    program.queues[7] = layout.fq_queue(last_ns=now + 1, backlog=900, byte_ns=AREA)
    assert not program.correct(7, silent[7], now, 0)
    assert program.checks[7].event_ns == 0
    program.queues[7] = layout.fq_queue(last_ns=EVENT, backlog=BACKLOG, byte_ns=AREA)
    assert program.correct(7, silent[7], now, 0)
    program.queues[7] = layout.fq_queue(last_ns=now + 1, backlog=900, byte_ns=AREA)
    stale(DRAIN + 12)
    assert seen(program) == (900, AREA + 10 * 900)


def test_a_port_that_has_gone_is_not_corrected(program, stale):
    program.remove_port(7)
    assert program.silent(EVENT + 10**12) == {}
    assert not program.correct(7, EVENT, EVENT + 10**12, 0)
    assert 7 not in program.checks


def test_a_reading_outlives_a_change_of_the_limits(program, stale):
    now = stale(DRAIN + 1)
    program.correct(7, EVENT, now, 400)
    program.set_limits({7: dataclasses.replace(LIMITS, rate=500_000)}, [7])
    check = program.checks[7]
    assert (check.drain_ns, check.event_ns, check.backlog) == (120_000_000, EVENT, 400)
    program.set_limits({}, [7])
    assert program.checks[7].drain_ns == 10**9, "not known"


def test_a_port_without_a_queue_is_never_silent(program, stale):
    program.set_limits({7: QueueLimits("noqueue", 0, 0)}, [7])
    assert program.silent(EVENT + 10**12) == {}


def test_a_stale_backlog_is_no_congestion(program, stale):
    program.set_thresholds(7, Thresholds(20_000, 5_000))
    program.queues[7].state = layout.CONSTANTS["FQ_CNG"]
    stale(DRAIN)
    assert program.congested(7) == (True, BACKLOG)
    stale(DRAIN + 1)
    assert program.congested(7) == (False, 0)


# Several transmit queues


def states(*backlogs: int, **others: int) -> list[Any]:
    return [layout.fq_queue(backlog=each, last_ns=EVENT, **others) for each in backlogs]


@pytest.fixture
def several(program, monkeypatch):
    """Port 7 has three transmit queues. Returns a function that sets the time since their last event."""
    ids = tuple(tx_queue_id(7, number) for number in range(3))
    program.add_port(7)
    program.set_queues(7, ids)
    program.set_limits({7: dataclasses.replace(LIMITS, queues=3)}, [7])
    for known, state in zip(ids, states(100, 900, 500, drops=2, packets=5), strict=True):
        program.queues[known] = state

    def after(ns: int) -> None:
        monkeypatch.setattr(queue, "time", SimpleNamespace(monotonic_ns=lambda: EVENT + ns))

    after(0)
    return after


def test_transmit_queues_have_entries_of_their_own(program, several):
    ids = [tx_queue_id(7, number) for number in range(3)]
    assert ports(program) == [[7, *ids]] * 3
    assert all(program.checks[each].drain_ns == DRAIN for each in ids)
    program.set_queues(7, tuple(ids[:2]))
    assert ports(program) == [[7, *ids[:2]]] * 3
    program.set_queues(7, ())
    assert ports(program) == [[7]] * 3
    assert program.tx_states(7) == []


def test_the_port_shows_the_longest_queue_and_all_packets(program, several):
    found = program.state(7)
    assert (found.backlog, found.drops, found.packets) == (900, 6, 15)
    assert [each.backlog for each in program.tx_states(7)] == [100, 900, 500]


def test_the_mean_of_a_port_is_that_of_its_longest_queue(program, several):
    before = program.state(7)
    several(1000)
    now = program.state(7)
    assert (now.byte_ns - before.byte_ns, now.clock_ns - before.clock_ns) == (900_000, 1000)
    # The last one becomes the longest.
    program.queues[tx_queue_id(7, 2)].backlog = 2000
    program.state(7)
    several(2000)
    assert program.state(7).byte_ns >= now.byte_ns + 2_000_000


def test_an_integral_that_starts_again_is_left_out():
    mean = queue._LongestMean()
    assert [mean.integral(each) for each in ([5, 5], [5, 25], [0, 26], [4, 2**64 - 1])] == [0, 20, 21, 25]


def test_thresholds_of_several_queues(program, several):
    program.set_thresholds(7, Thresholds(800, 100, drops=True))
    for number in range(3):
        entry = program.threshold_map[tx_queue_id(7, number)]
        assert (entry.cng, entry.nom, entry.flags) == (800, 100, 0)
    own = program.threshold_map[7]
    assert (own.cng, own.limit, own.flags) == (0, 0, layout.CONSTANTS["FQ_REPORT_DROPS"])
    assert program.congested(7) == (True, 900)
    program.set_thresholds(7, None)
    assert program.threshold_map == {}


def test_no_room_for_transmit_queues_leaves_one_queue(program):
    program.add_port(7)
    program.queues.full = True
    with pytest.raises(BpfError):
        program.set_queues(7, (tx_queue_id(7, 0), tx_queue_id(7, 1)))
    program.queues.full = False
    assert ports(program) == [[7]] * 3
    assert program.tx_states(7) == []


def test_silent_transmit_queues_are_read_by_their_ids(program, several):
    program.queues[7] = layout.fq_queue(backlog=9, last_ns=EVENT)
    assert program.silent(EVENT + DRAIN) == {}
    assert set(program.silent(EVENT + DRAIN + 1)) == {tx_queue_id(7, number) for number in range(3)}

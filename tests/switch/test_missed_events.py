"""A queue whose last events were missed: the backlog in the map is stale. Nothing acts on it, and the agent
corrects it from the qdisc.

The tests write such an entry, because the kernel misses events only now and then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from ctypes import c_uint32
from typing import Any

import pytest

from fairq_ryu.agent.congestion_monitor import CongestionMonitor
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.ports import BridgePorts
from fairq_ryu.agent.programs.backlog import believed
from fairq_ryu.channel.congestion import SetThresholds
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import Congestion, Thresholds
from tests.support.lab import until
from tests.switch.queue_rig import (
    Watched,
    bottleneck,
    kernel_counters,
    send,
    set_queue_limits,
    take_drops,
    wait_empty,
)

SECOND = 10**9
# The queue drains in 20 ms, and the margin is 20.
LIMIT, DRAIN, STALE = 20_000, 40_000_000, 15_000


@pytest.fixture
def watched() -> Iterator[Watched]:
    with bottleneck("8mbit", LIMIT) as found:
        yield found


def maps(watched: Watched) -> tuple[Any, Any]:
    """The queue of the port as the programs see it, and its check."""
    key, queues = c_uint32(watched.port.ifindex), watched.datapath.queues
    return queues.queues.get(key), queues.checks.get(key)


def last_event(watched: Watched, backlog: int, age: int) -> Any:
    """The last event of the queue was so long ago, ns, and left this backlog. With a negative age it does not
    become stale during a test. Returns the entry.
    """
    entry, _ = maps(watched)
    entry.backlog, entry.last_ns = backlog, time.monotonic_ns() - age
    watched.datapath.queues.queues.set(c_uint32(watched.port.ifindex), entry)
    return entry


def read_silent(watched: Watched) -> list[int]:
    """What the agent does every 0.1 s."""
    unused: Any = None
    ports = BridgePorts("s1", unused, watched.datapath, unused, lambda: None)
    return asyncio.run(ports.read_silent_queues())


def time_at(watched: Watched, depth: int) -> int:
    """The time that the queue has spent at a depth, by the histogram, ns."""
    return sum(ns for low, high, ns in watched.datapath.histogram(watched.port) if low <= depth <= high)


def test_a_stale_backlog_is_corrected_from_the_qdisc(watched: Watched) -> None:
    entry = last_event(watched, STALE, SECOND)
    found = watched.datapath.queue(watched.port)
    assert (found.backlog, found.byte_ns) == (0, STALE * DRAIN), "before it is corrected"
    assert read_silent(watched) == [1]
    _, check = maps(watched)
    assert (check.event_ns, check.byte_ns, check.backlog) == (entry.last_ns, STALE * DRAIN, 0)
    assert kernel_counters("p1")["backlog"] == 0
    assert read_silent(watched) == []
    found = watched.datapath.queue(watched.port)
    assert (found.backlog, found.byte_ns) == (0, STALE * DRAIN)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_next_packet_counts_a_stale_backlog_for_the_time_in_which_it_drains(
    watched: Watched, corrected: bool
) -> None:
    last_event(watched, STALE, SECOND)
    if corrected:
        assert read_silent(watched) == [1]
    empty = time_at(watched, 0)
    send("p1", 1, 1000)
    wait_empty("p1")
    entry, _ = maps(watched)
    assert entry.backlog == 0 and entry.peak == 1000
    assert time_at(watched, STALE) == DRAIN
    assert entry.byte_ns == STALE * DRAIN + 1000 * time_at(watched, 1000)
    assert time_at(watched, 0) - empty > SECOND - DRAIN


def test_a_fresh_backlog_is_not_touched(watched: Watched) -> None:
    entry = last_event(watched, STALE, -SECOND)
    assert read_silent(watched) == []
    assert watched.datapath.queue(watched.port).backlog == STALE
    after, check = maps(watched)
    assert bytes(after) == bytes(entry) and check.event_ns == 0


def test_a_queue_that_stands_still_keeps_its_backlog(watched: Watched) -> None:
    set_queue_limits("p1", "8kbit", LIMIT)  # a packet a second; the agent has not noticed yet
    send("p1", 10, 1000)

    def looked_at() -> Any:
        """The entry and its check since the last packet, of which one leaves every second."""
        assert read_silent(watched) == [], "no events were missed"
        entry, check = maps(watched)
        same = check.event_ns == entry.last_ns and check.backlog == kernel_counters("p1")["backlog"]
        return same and (entry, check)

    entry, check = until(looked_at)
    assert check.backlog == entry.backlog > 0
    assert check.byte_ns == entry.backlog * DRAIN
    assert believed(entry, check, check.ns + DRAIN) == (
        check.backlog,
        entry.byte_ns + 2 * check.backlog * DRAIN,
    )


def test_a_law_counts_a_stale_backlog_for_the_time_in_which_it_drains(watched: Watched) -> None:
    data = watched.datapath
    # A long interval: the second event of the packet makes no tick.
    law = parameters(FairQLaw(interval_us=10_000), data.limits_of(1))
    data.install_law(1, 1, law, time.monotonic_ns() + 3600 * SECOND)
    entry = last_event(watched, STALE, SECOND)
    state = data.law_state(1)
    state.last_ns, state.byte_ns = entry.last_ns, entry.byte_ns
    state.pool, state.segment = law.target << 8, 1460
    data.window.law_states.set(c_uint32(data.window.slots[watched.port.ifindex]), state)
    send("p1", 1, 1000)
    after = data.law_state(1)
    assert after.last_ns - entry.last_ns >= SECOND
    assert after.queue == STALE * DRAIN // (after.last_ns - entry.last_ns)


def test_a_stale_full_queue_does_not_drop_every_packet(watched: Watched) -> None:
    """No packet would reach the queue any more, so no event would ever correct it."""
    data = watched.datapath
    data.set_thresholds(1, Thresholds(LIMIT, LIMIT // 2, drops=True))
    time.sleep(0.05)  # that has attached a program
    last_event(watched, LIMIT, -SECOND)
    send("p1", 3, 1000)
    assert len(take_drops(data, 10)) == 3 and kernel_counters("p1")["packets"] == 0
    last_event(watched, LIMIT, SECOND)
    send("p1", 3, 1000)
    wait_empty("p1")
    assert take_drops(data, 10) == [] and kernel_counters("p1")["packets"] == 3
    entry, _ = maps(watched)
    assert entry.backlog == 0


class Sender:
    """Counts messages to controllers."""

    def __init__(self) -> None:
        self.sent = 0

    def send_to_all(self, _data: bytes) -> None:
        self.sent += 1

    def send_to_ready(self, _data: bytes) -> bool:
        return True


def test_controllers_are_told_that_a_queue_is_no_longer_congested(watched: Watched) -> None:
    data, sender = watched.datapath, Sender()
    monitor = CongestionMonitor(data, sender, 0.0, 1.0)
    monitor.set_thresholds(SetThresholds(1, 10_000, 4_000, 0), time.monotonic_ns())
    last_event(watched, STALE, -SECOND)
    monitor.mark_crossed([1])
    monitor.send_due(time.monotonic_ns())
    assert sender.sent == 1 and data.congestion(1)[:3] == (1, Congestion.CNG, STALE)
    last_event(watched, STALE, SECOND)
    monitor.mark_crossed(read_silent(watched))
    monitor.send_due(time.monotonic_ns())
    assert sender.sent == 2 and data.congestion(1)[:3] == (1, Congestion.NOM, 0)


def test_both_crossings_are_reported_when_a_queue_that_drained_unseen_is_congested_again(
    watched: Watched,
) -> None:
    """Also with NOM at 0: no event has a backlog of 0 then."""
    data = watched.datapath
    data.set_thresholds(1, Thresholds(1_000, 0))
    entry = last_event(watched, STALE, SECOND)
    entry.state = 1  # FQ_CNG
    data.queues.queues.set(c_uint32(watched.port.ifindex), entry)
    send("p1", 1, 1000)
    wait_empty("p1")
    assert data.queues._event_count.get(c_uint32(0)).sent == 3, "NOM, CNG, and NOM again"

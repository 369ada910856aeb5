"""The queue that a far queue stands for, as round trips and arrivals show it, and the rate that follows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.far_queue import Why
from tests.support.host_laws import HostHidden, drain, least_index

NS, MS = 10**9, 10**6
SPAN_NS = 1 << 33
RTT = 100_000
LINES = [(6_250_000, 62_500), (125_000_000, 125_000), (1_250_000_000, 500_000), (12_500_000_000, 1_000_000)]
"""Rates in bytes/s, and buffers in bytes."""


def test_the_numbers_of_reasons_are_those_of_the_layout() -> None:
    for name, number in layout.CONSTANTS.items():
        if name.startswith("FQ_HIDDEN_"):
            assert Why[name.removeprefix("FQ_HIDDEN_")] == number


# The least round trip


def test_what_a_round_trip_takes_beyond_the_least_one_of_its_host_counts() -> None:
    hidden = HostHidden(*LINES[2])
    took = [300, 200, 250, 900, 200]
    assert [hidden.round_trip("a", each * 1000, NS) for each in took] == [0, 0, 50_000, 700_000, 0]
    assert hidden.round_trip("b", 10_000_000, NS) == 0, "another host is further away"
    assert (hidden.state.samples, hidden.state.excess_ns) == (6, 750_000)


def test_a_path_that_has_become_longer_is_known_after_two_spans() -> None:
    hidden = HostHidden(*LINES[2])
    now = 7 * SPAN_NS
    hidden.round_trip("a", 100_000, now)
    assert hidden.round_trip("a", 400_000, now + 1) == 300_000
    assert hidden.round_trip("a", 400_000, now + SPAN_NS) == 300_000
    assert hidden.round_trip("a", 400_000, now + 2 * SPAN_NS) == 0


def test_the_least_one_of_a_silent_host_is_forgotten() -> None:
    hidden = HostHidden(*LINES[2])
    hidden.round_trip("a", 100_000, 7 * SPAN_NS)
    assert hidden.round_trip("a", 400_000, 11 * SPAN_NS) == 0


def test_a_processor_that_is_late_forgets_nothing() -> None:
    hidden = HostHidden(*LINES[2])
    hidden.round_trip("a", 100_000, 7 * SPAN_NS)
    hidden.round_trip("a", 400_000, 8 * SPAN_NS)
    assert hidden.round_trip("a", 400_000, 8 * SPAN_NS - 1) == 300_000
    assert hidden.round_trip("a", 400_000, 8 * SPAN_NS) == 300_000


@pytest.mark.parametrize("network", ["10.0.0.{}", "192.168.{}.7", "2001:db8::{:x}", "2001:db8:{:x}::1"])
def test_hosts_of_a_network_have_least_round_trips_of_their_own(network: str) -> None:
    """As many as with random numbers, of which 254 among 1,024 are 225 different ones."""
    kept = {least_index(network.format(host), 3) for host in range(1, 255)}
    assert len(kept) > 200 and max(kept) < layout.CONSTANTS["FQ_LEAST"]
    assert len({least_index("10.0.0.1", slot) for slot in range(100)}) > 80


@given(st.lists(st.tuples(st.integers(1, 2**32 - 1), st.integers(0, SPAN_NS)), min_size=1))
def test_no_round_trip_is_shorter_than_the_least(steps: list[tuple[int, int]]) -> None:
    hidden, now, total = HostHidden(*LINES[2]), NS, 0
    hidden.state.bound_ns = 0
    for took, passes in steps:
        now += passes
        excess = hidden.round_trip("a", took, now)
        assert 0 <= excess < took
        total += excess
    assert hidden.state.excess_ns == total


# Intervals


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1))
def test_an_interval_is_judged_exactly_when_it_is_due(steps: list[tuple[int, int]]) -> None:
    """Few packets may pay for it: there are eight samples, or 100 ms have passed. ``steps``: ms, samples."""
    hidden, now = HostHidden(*LINES[2]), 100 * NS
    hidden.arrive(1, now)
    last, samples = now, 0
    for passes, number in steps:
        now, samples = now + passes * MS, samples + number
        for _ in range(number):
            hidden.round_trip("a", RTT, now)
        ends = now - last >= 10 * MS and (samples >= 8 or now - last >= 100 * MS)
        assert hidden.is_due(now) == ends
        hidden.arrive(1000, now)
        last, samples = (now, 0) if ends else (last, samples)
        assert hidden.state.judged_ns == last


# A closed loop: what arrives follows the rate of the virtual queue, as a law makes it


class Moment(NamedTuple):
    """``queue`` as a part of the buffer; ``ours``, ``total`` and ``rate`` as parts of the line."""

    queue: float
    ours: float
    total: float
    rate: float
    why: Why


Neighbour = Callable[[float], float]
STEP = MS


class Loop:
    """A line with a queue that nobody sees, and what others send there. Each step is a millisecond, with
    ``samples`` round trips. ``believed``: the rate of the line, bytes/s, as it was configured; ``room``:
    likewise the buffer.
    """

    def __init__(
        self,
        line: int,
        buffer: int,
        share: float = 0.98,
        believed: int = 0,
        samples: int = 2,
        room: int = 0,
    ) -> None:
        self.hidden = HostHidden(believed or line, room or buffer, share)
        self.line, self.buffer, self.samples = line, buffer, samples
        self.now, self.queue = 100 * NS, 0.0
        self.hidden.arrive(1, self.now)

    def run(self, seconds: float, others: Neighbour = lambda _: 0.0, wants: float = 2.0) -> list[Moment]:
        """Go on for so long. ``others``: what they send at a time (seconds), ``wants``: what we would send
        without the virtual queue, as parts of the line.
        """
        found, state, began = [], self.hidden.state, self.now
        for _ in range(round(seconds * NS / STEP)):
            ours = min(state.drain * NS / 2**24, wants * self.line) * STEP / NS
            beside = others((self.now - began) / NS) * self.line * STEP / NS
            carries = self.line * STEP / NS
            there = self.queue + ours + beside
            served = min(there, carries)
            self.queue = min(self.buffer, there - served)
            part = ours / (ours + beside) if ours + beside else 0
            self.hidden.lost += there - served > self.buffer
            self.now += STEP
            for host in range(self.samples):
                self.hidden.round_trip(host, RTT + round(self.queue / self.line * NS), self.now)
            self.hidden.arrive(int(served * part), self.now)
            shares = (served * part / carries, served / carries, state.rate / self.line)
            found.append(Moment(self.queue / self.buffer, *shares, Why(state.why)))
        return found


def mean(moments: list[Moment], what: str) -> float:
    return sum(getattr(each, what) for each in moments) / len(moments)


@pytest.mark.parametrize(("line", "buffer"), LINES)
def test_alone_the_rate_rises_towards_the_line_and_nothing_stands(line: int, buffer: int) -> None:
    last = Loop(line, buffer).run(8)[-1000:]
    assert mean(last, "total") >= 0.98 and mean(last, "queue") <= 0.1
    assert {each.why for each in last} == {Why.RAISED}
    assert min(each.rate for each in last) > 0.98 and max(each.rate for each in last) < 1


@pytest.mark.parametrize(("line", "buffer"), LINES)
@pytest.mark.parametrize("part", [0.1, 0.4, 0.8])
def test_beside_others_we_get_what_they_leave_and_the_queue_stays_short(
    line: int, buffer: int, part: float
) -> None:
    last = Loop(line, buffer).run(10, others=lambda t: part * (t > 2))[-5000:]
    assert mean(last, "total") >= 0.97 and mean(last, "queue") <= 0.1
    rates = [each.rate for each in last]
    assert max(rates) - min(rates) <= 0.1 * (1 - part) + 0.02, "it does not swing"
    assert Why.OTHERS in {each.why for each in last}


@pytest.mark.parametrize(("line", "buffer"), LINES)
def test_when_they_have_gone_we_get_the_line_again(line: int, buffer: int) -> None:
    loop = Loop(line, buffer)
    loop.run(6, others=lambda t: 0.4 * (t > 2))
    after = loop.run(8)
    rates = [each.rate for each in after]
    assert all(later >= earlier * 0.85 for earlier, later in itertools.pairwise(rates))
    assert after[-1].rate > 0.98 and after[-1].why is Why.RAISED


def test_others_that_come_and_go_do_not_fill_the_queue_for_long() -> None:
    """On for a second, off for a second."""
    moments = Loop(*LINES[2]).run(20, others=lambda t: 0.4 * (int(t) % 2))[4000:]
    assert mean(moments, "queue") <= 0.1


def test_two_that_know_nothing_of_each_other_share_a_line() -> None:
    """The bridges of two receivers behind one hidden port, both of the opinion that it is theirs."""
    line, buffer = LINES[2]
    both = [HostHidden(line, buffer), HostHidden(line, buffer)]
    now, queue, served, stood = 100 * NS, 0.0, 0.0, 0.0
    for each in both:
        each.arrive(1, now)
    for step in range(20_000):
        sends = [each.state.drain / 2**24 * STEP for each in both]
        there, carries = queue + sum(sends), line * STEP / NS
        passed = min(there, carries)
        queue, now = min(buffer, there - passed), now + STEP
        for each, sent in zip(both, sends, strict=True):
            each.round_trip(0, RTT + round(queue / line * NS), now)
            each.round_trip(1, RTT + round(queue / line * NS), now)
            each.arrive(int(passed * sent / sum(sends)), now)
        if step >= 10_000:
            served, stood = served + passed / carries, stood + queue / buffer
    assert served / 10_000 >= 0.95 and stood / 10_000 <= 0.1


def test_a_line_that_was_configured_too_fast_is_found_out() -> None:
    line, buffer = LINES[2]
    last = Loop(line, buffer, believed=2 * line).run(8)[-4000:]
    assert mean(last, "total") >= 0.95 and mean(last, "queue") <= 0.1


@pytest.mark.parametrize(("line", "buffer"), LINES)
@pytest.mark.parametrize("times", [3, 8, 30])
def test_a_buffer_that_was_configured_too_small_does_not_hide_what_stands(
    line: int, buffer: int, times: int
) -> None:
    """It fills before an interval has ended: no sample is within the bound."""
    loop = Loop(line, times * buffer, room=buffer)
    loop.run(2)
    loop.queue = loop.buffer
    began = loop.run(2, others=lambda _: 0.4)
    assert Why.OTHERS in {each.why for each in began}
    last = loop.run(10, others=lambda _: 0.4)[-4000:]
    assert mean(last, "total") >= 0.95 and mean(last, "queue") <= 0.1


def test_without_losses_the_bound_stays() -> None:
    """All round trips take long: the senders take their time."""
    line, buffer = LINES[2]
    hidden, now = HostHidden(line, buffer), 100 * NS
    hidden.round_trip(0, RTT, now)
    hidden.arrive(1, now)
    bound = hidden.state.bound_ns
    for step in range(3000):
        now += MS
        hidden.lost += step == 1000
        hidden.round_trip(0, RTT + (10 * bound if step > 1000 else 0), now)
        hidden.arrive(line // 10_000, now)
    assert hidden.state.bound_ns == bound


# What it does not react to


def test_without_round_trips_it_is_the_share() -> None:
    last = Loop(*LINES[2], samples=0).run(3)[-1]
    assert last.rate == pytest.approx(0.98) and last.why is Why.BLIND


def test_a_sender_that_takes_its_time_is_not_a_queue() -> None:
    """Ten times as long as the whole queue needs to drain."""
    line, buffer = LINES[2]
    hidden, now = HostHidden(line, buffer), 100 * NS
    hidden.arrive(1, now)
    hidden.arrive(1, now + 200 * MS)
    for _ in range(1000):
        now += MS
        hidden.round_trip(0, RTT, now - 5 * SPAN_NS if not hidden.state.samples else now)
        hidden.round_trip(0, RTT + 10 * buffer * NS // line, now)
        hidden.arrive(line // 10_000, now)
    assert hidden.state.rate >= int(line * 0.98) and hidden.state.standing == 0


def test_one_slow_answer_among_many_is_not_a_queue() -> None:
    line, buffer = LINES[2]
    hidden, now = HostHidden(line, buffer), 100 * NS
    for step in range(2000):
        now += MS
        hidden.round_trip(0, RTT, now)
        hidden.round_trip(0, RTT + (buffer * NS // line if step % 2 else 0), now)
        hidden.arrive(line // 10_000, now)
    assert hidden.state.rate >= int(line * 0.98) and hidden.state.why != Why.OTHERS


def test_what_was_inferred_ends_with_a_second_without_arrivals() -> None:
    loop = Loop(*LINES[2])
    loop.run(5, others=lambda t: 0.4 * (t > 1))
    assert loop.hidden.state.rate < 0.7 * loop.line
    assert loop.hidden.arrive(1, loop.now + 2 * NS) == int(0.98 * loop.line)


def test_after_a_probe_the_rate_rises_as_slowly_as_after_anything_else_that_stood() -> None:
    """Something has stood for seconds, and is gone with the probe."""
    line, buffer = LINES[2]
    hidden, now = HostHidden(line, buffer), 100 * NS
    hidden.round_trip(0, RTT, now)
    hidden.arrive(1, now)
    state = hidden.state

    def step(stands: bool) -> None:
        nonlocal now
        now += MS
        for _ in range(2):
            hidden.round_trip(0, RTT + (buffer * NS // line // 2 if stands else 0), now)
        hidden.arrive(line // 2000, now)

    began = now
    while not (state.probes and now - began > 4 * NS):
        step(True)
    while state.probes:
        step(False)
    ended, before = now, state.rate
    while now - ended < NS // 10:
        step(False)
    # Once by an interval what has come, then a hundredth of the line in a second, and four times that later.
    assert state.rate - max(before, line // 2) < line // 500


def test_a_pause_ends_a_probe() -> None:
    loop = Loop(*LINES[2])
    while not loop.hidden.state.probes:
        loop.run(STEP / NS)
    loop.hidden.arrive(1, loop.now + 2 * NS)
    assert not loop.hidden.state.probes


def test_a_queue_that_was_ours_is_not_that_of_others_when_round_trips_are_no_longer_seen() -> None:
    line, buffer = LINES[2]
    loop = Loop(line, buffer, believed=int(1.03 * line))
    while not loop.hidden.state.rate < loop.hidden.far.base:
        loop.run(0.01)
    assert loop.hidden.state.why == Why.FULL
    loop.samples = 0
    assert {each.why for each in loop.run(0.5)} == {Why.FULL}


def test_a_lease_that_moves_does_not_forget_that_the_queue_is_larger() -> None:
    line, buffer = LINES[2]
    loop = Loop(line, 8 * buffer, room=buffer)
    loop.run(2)
    loop.queue = loop.buffer
    loop.run(2, others=lambda _: 0.4)
    far, state = loop.hidden.far, loop.hidden.state
    widened = state.bound_ns
    assert widened > 2 * buffer * NS // line
    far.line, far.base, far.limit = line // 3, int(0.98 * line / 3), buffer // 3
    loop.run(0.1)
    assert state.line == line // 3 and state.bound_ns == widened
    far.limit = buffer
    loop.run(0.1)
    assert state.bound_ns == 2 * buffer * NS // (line // 3), "another queue"


def test_what_others_have_is_known_when_the_line_changes() -> None:
    """A lease that moves, and a rate that was found."""
    line, buffer = LINES[2]
    loop = Loop(line, buffer)
    loop.run(5, others=lambda t: 0.4 * (t > 1))
    before, why = loop.hidden.state.rate, loop.hidden.state.why
    loop.hidden.far.line, loop.hidden.far.base = int(1.05 * line), int(0.98 * 1.05 * line)
    while not loop.hidden.is_due(loop.now):
        loop.now += MS
    assert loop.hidden.arrive(1, loop.now) == pytest.approx(1.05 * before, rel=0.05)
    assert loop.hidden.state.why == why == Why.OTHERS


def test_a_single_slow_sender_is_no_queue_of_a_line_that_nobody_knows() -> None:
    """15 kB/s, each answer after 2 ms."""
    hidden, now = HostHidden(0, 0), 100 * NS
    hidden.round_trip(0, RTT, now)
    for _ in range(50):
        now += 100 * MS
        hidden.round_trip(0, 2 * MS, now)
        hidden.arrive(1_500, now)
    assert hidden.state.served == 0


def test_nothing_is_drained_before_a_rate_is_known_and_then_it_is_measured() -> None:
    """Round trips and arrivals at exactly the rate of the line."""
    line, buffer = LINES[1]
    hidden, now = HostHidden(0, buffer), 100 * NS
    hidden.round_trip(0, RTT, now)
    for _ in range(500):
        now += MS
        hidden.round_trip(0, RTT + buffer * NS // line, now)
        hidden.round_trip(0, RTT + buffer * NS // line, now)
        hidden.arrive(line // 1000, now)
    assert (hidden.state.drain, hidden.state.why) == (0, Why.UNKNOWN)
    assert hidden.state.served == pytest.approx(line, rel=0.01)
    assert hidden.state.peak == pytest.approx(line, rel=0.01)


@pytest.mark.parametrize("line, buffer", LINES)
@pytest.mark.parametrize("every", [13, 14, 17, 21])
def test_the_rate_is_not_higher_because_a_run_ends_between_two_milliseconds(
    line: int, buffer: int, every: int
) -> None:
    """A round trip for every 1.3 to 2.1 ms, as one flow with a long one has them."""
    hidden, now = HostHidden(0, buffer), 100 * NS
    hidden.round_trip(0, RTT, now)
    for number in range(5000):
        now += MS // 10
        if not number % every:
            hidden.round_trip(0, RTT + buffer * NS // line, now)
        hidden.arrive(line // 10_000, now)
    assert hidden.state.served == pytest.approx(line, rel=0.01)


@settings(deadline=None, max_examples=60)
@given(
    line=st.integers(125_000, 100_000_000_000),
    buffer=st.integers(1538, 1 << 30),
    share=st.floats(0.1, 1),
    steps=st.lists(
        st.tuples(st.integers(0, 3 * NS), st.integers(0, 1 << 40), st.lists(st.integers(1, 2**32 - 1))),
        max_size=40,
    ),
)
def test_the_rate_is_bounded_whatever_comes(
    line: int, buffer: int, share: float, steps: list[tuple[int, int, list[int]]]
) -> None:
    """At least a sixteenth of the line or the share, and never more than the line."""
    hidden, now = HostHidden(line, buffer, share), 100 * NS
    for passes, size, trips in steps:
        now += passes
        for number, took in enumerate(trips):
            hidden.round_trip(number % 3, took, now)
        rate, state = hidden.arrive(size, now), hidden.state
        if state.judged_ns:
            assert min(line // 16, hidden.far.base) <= rate <= line
            assert state.drain == drain(state.probe_rate if state.probes else rate)

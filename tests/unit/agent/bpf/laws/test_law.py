"""What holds for every window law of the switch, whatever its parameters and whatever happens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies

from fairq_ryu.agent import layout
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.registry import window_laws
from tests.support.host_laws import NO_WINDOW, NUMBERS, FedPort, HostLaw, OpeningFlags, fq_law
from tests.support.law_traces import TRACES, drive, parameters

MOST = 1 << 30
SECOND = 10**9
POOLS = [law for law in window_laws().values() if law.has_pool]
FOLLOWING = [law for law in POOLS if law.loop_gain]


def cap(law: HostLaw) -> int:
    """Bytes that the port can hold: its buffer and what is on the way, rounded down as the law does."""
    p = law.parameters
    ways = (p.limit + p.rate // 1000 * p.base_rtt_ns // 10**6, p.rate // 1000 * law.state.rtt_ns // 10**6)
    return min(max(ways), MOST)


def floor(law: HostLaw, n: int) -> int:
    p, segment = law.parameters, law.state.segment
    return p.floor_segments * segment if n * p.floor_segments * segment <= p.limit else segment


@settings(max_examples=400)
@given(parameters(), TRACES)
def test_no_event_leaves_the_bounds(values, trace):
    """Undefined behaviour, such as an overflow, would end the process."""
    for law, step, result in drive(values, trace):
        state, kind = law.state, values["law"]
        assert state.granted <= MOST
        assert state.segment <= 8960 and state.rtt_ns <= SECOND // 2
        assert state.unproven <= values["syn_allowance"]
        if step == "tick" and result and kind.has_pool and kind.loop_gain:
            least = state.segment << 8
            assert least <= state.pool <= max(cap(law) << 8, least)
        if step != "window":
            continue
        if result == NO_WINDOW:
            assert not kind.has_pool
        elif kind.has_pool:
            assert result >= (state.segment if kind.loop_gain else min(state.segment, cap(law)))


@settings(max_examples=200)
@given(parameters(FOLLOWING), TRACES)
def test_flows_together_have_no_more_than_the_pool_and_their_floors(values, trace):
    """In a volley, which has more young flows, LAS gives what the buffer holds."""
    for law, step, _ in drive(values, trace):
        if step == "tick" and law.state.pool:
            for n, young in ((1, 0), (3, 1), (40, 4), (40, 8), (5000, 0)):
                old = (n - young) * law.window(n, young, 1 << 40)
                total = old + young * law.window(n, young, max(values["law"].young_below - 1, 1))
                shared = max(law.pool, values["limit"] if young > 4 else 0)
                assert total <= shared + n * max(floor(law, n), law.state.segment)


@settings(max_examples=200)
@given(parameters(POOLS), TRACES)
def test_a_longer_queue_never_leaves_a_larger_pool(values, trace):
    """The same past, then a tick with a longer queue. (One of 80 bytes moves nothing under FairSwitch.)"""
    for queue in (81, 81 + values["target"] // 2, 81 + values["target"]):
        found = []
        for more in (0, 1, 1000, values["limit"]):
            law = HostLaw(fq_law(**values))
            port = FedPort(law)
            for step, *given_values in trace:
                if step == "tick":
                    port.feed(given_values[1], flows=given_values[2])
            port.feed(min(queue + more, MOST), flows=3)
            found.append((law.state.pool, law.window(3)))
        assert found == sorted(found, reverse=True)


def test_the_numbers_are_those_of_the_header():
    for prefix, numbers in NUMBERS.items():
        found = {n.removeprefix(prefix): v for n, v in layout.CONSTANTS.items() if n.startswith(prefix)}
        assert found == {each.name: each.value for kind in numbers for each in kind}
    for flag in OpeningFlags:
        assert layout.CONSTANTS[f"FQ_{flag.name}"] == flag


# The segment, the round trip and the integral of the queue, which all laws have


def test_the_shortest_handshake_of_the_flows_that_fill_their_windows_counts():
    law = HostLaw(fq_law(FairQLaw))
    law.saw_segment(1460, 1460, SECOND)
    law.limited(1_000, 10_000, 5_000_000, SECOND)
    assert law.state.rtt_ns == 0, "it does not fill its window"
    law.limited(9_000, 10_000, 20_000_000, SECOND)
    law.limited(9_000, 10_000, 30_000_000, SECOND + 10)
    law.limited(9_000, 10_000, 0, SECOND + 20)
    assert law.state.rtt_ns == 20_000_000
    law.limited(9_000, 10_000, 5_000_000, SECOND + 30)
    assert law.state.rtt_ns == 5_000_000
    law.limited(9_000, 10_000, 20_000_000, 2 * SECOND + 30)
    assert law.state.rtt_ns == 20_000_000, "the short one has not been seen for a second"


def test_large_segments_count_while_their_flows_are_seen():
    """Every ACK shows its flow. One of MTU 9,000 that has gone must not leave its minimum windows behind."""
    law = HostLaw(fq_law(FairQLaw))
    law.saw_segment(1460, 8960, 10 * SECOND)
    assert law.state.segment == 1460
    law.saw_segment(65_495, 8960, 10 * SECOND + 1)
    assert law.state.segment == 8960
    for tenth in range(100, 150):  # both send
        law.saw_segment(1460, 1460, tenth * SECOND // 10)
        law.saw_segment(8960, 8960, tenth * SECOND // 10)
        assert law.state.segment == 8960
    seen = []
    for tenth in range(150, 180):  # the large one has ended
        law.saw_segment(1460, 1460, tenth * SECOND // 10)
        seen.append(law.state.segment)
    assert seen[:10] == [8960] * 10 and seen[-10:] == [1460] * 10
    law.saw_segment(8960, 8960, 20 * SECOND)
    assert law.state.segment == 8960
    law.saw_segment(0, 0, 60 * SECOND)
    assert law.state.segment == 8960, "nothing else is known"
    law.saw_segment(1460, 0, 60 * SECOND)
    assert law.state.segment == 1460, "nobody was there for a minute"


def test_a_law_goes_on_when_the_integral_of_the_queue_wraps():
    """After a few hours at 10 Gbit/s."""
    law = HostLaw(fq_law(FairQLaw))
    before = 2**64 - 1_000
    assert law.tick(SECOND, before, 20_000, 1)
    assert law.tick(SECOND + 10**6, (before + 20_000 * 10**6) % 2**64, 20_000, 1)
    assert law.state.queue == 20_000
    # The reading of another processor that is behind still changes nothing.
    assert not law.tick(SECOND + 2 * 10**6, before, 20_000, 1)


@settings(max_examples=200)
@given(parameters(), strategies.integers(-(2**63), 2**63 - 1))
def test_a_law_ticks_after_a_second_at_the_latest_whatever_the_integral_is(values, ahead):
    """Another program may tell it of another queue."""
    law = HostLaw(fq_law(**values))
    law.tick(SECOND, 0, 0, 1)
    now = SECOND + max(SECOND, law.parameters.interval_ns) + 1
    assert law.tick(now, ahead % 2**64, 1000, 1)
    assert law.state.queue == (min(ahead // (now - SECOND), MOST) if ahead >= 0 else 1000)
    assert not law.tick(now + SECOND, (ahead - 1) % 2**64, 1000, 1), "the reading may only be late"


def test_a_state_that_was_cleared_begins_anew():
    """Also if a processor that still ran the law before has written a time to it."""
    law = HostLaw(fq_law(FairQLaw))
    law.state.last_ns = SECOND
    assert law.tick(SECOND + 1, 5, 20_000, 1)
    assert (law.state.pool, law.state.segment) == (31_250 << 8, 1460)


@pytest.mark.parametrize("late", [1, 2, 10, 64, 1000])
def test_a_late_tick_counts_for_the_intervals_since_the_last_one(late):
    """At most 64 of them."""
    law = HostLaw(fq_law(FairSwitchLaw, trim_step=40))
    port = FedPort(law)
    port.feed(5_000)
    port.now += (late - 1) * 200_000
    port.area += (late - 1) * 200_000 * 5_000
    port.feed(5_000)
    assert (law.own("fairswitch_state").trim, law.state.late) == (40 * min(late, 64), late > 2)

"""IQM's law in the switch: a few segments for every flow while an incast threatens, and no longer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.laws.iqm import IqmLaw
from tests.support.host_laws import NO_WINDOW, ClosedLoop, FedPort, HostLaw, fq_law, in_force

MS = 1_000_000
LIMIT, RATE, CALM = 125_000, 6_250_000, 25_000


def iqm(target: int = LIMIT, **changes: int) -> FedPort:
    """A port; with a target of the whole buffer there are no windows between incasts."""
    values = {"limit": LIMIT, "rate": RATE, "target": target, "calm": CALM, "interval_ns": MS}
    return FedPort(HostLaw(fq_law(IqmLaw, **values | {"linger_ns": 5 * MS} | changes)))


def begin(port: FedPort, flows: int, backlog: int) -> None:
    for _ in range(flows):
        port.law.flow_began(backlog, port.now)


def test_the_flow_that_would_overflow_the_buffer_begins_the_incast():
    """8 * 10 * 1460 = 116,800 fits into 125,000 bytes, and nine do not."""
    port = iqm()
    port.feed(0)
    begin(port, 8, 0)
    assert not port.law.limits and port.law.window(8) == NO_WINDOW
    begin(port, 1, 0)
    assert port.law.limits and port.law.window(9, sent=0) == 2 * 1460


@pytest.mark.parametrize("kind", ["netem", FAR_KIND])
@pytest.mark.parametrize(("standing_ppm", "limits"), [(875_000, True), (990_000, True), (1_000_000, False)])
def test_windows_between_incasts_unless_the_target_is_the_whole_buffer(kind, standing_ppm, limits):
    law = HostLaw(parameters(IqmLaw(target_ppm=standing_ppm), QueueLimits(kind, LIMIT, RATE)))
    assert (law.window(8) < NO_WINDOW) is limits


def test_the_present_queue_counts_and_flows_that_have_ended_do_not():
    port = iqm()
    port.feed(LIMIT - 2 * 14_600)
    begin(port, 2, LIMIT - 2 * 14_600)
    port.law.flow_ended()
    begin(port, 1, LIMIT - 2 * 14_600)
    assert not port.law.limits
    begin(port, 1, LIMIT - 2 * 14_600)
    assert port.law.limits


def test_a_new_interval_counts_from_none():
    port = iqm()
    port.feed(0)
    for _ in range(10):
        begin(port, 8, 0)
        port.feed(0, flows=8)
    assert not port.law.limits


def test_in_an_incast_new_flows_have_more_than_those_that_have_sent_their_first_window():
    """20 new flows of ten segments are expected behind a buffer of 125,000 bytes."""
    port = iqm()
    port.feed(100_000, flows=8)

    def windows() -> list[int]:
        return [port.law.window(28, 20, sent) for sent in (0, 14_599, 14_600, 10**9)]

    assert windows() == [NO_WINDOW] * 4
    begin(port, 20, 100_000)
    assert windows() == [2920, 2920, 1460, 1460]
    for queue, old in ((90_000, 1460), (10_000, 2920), (90_000, 1460)):
        port.feed(queue, flows=28)
        assert windows() == [2920, 2920, old, old], "short for less than `linger`: the incast goes on"


def test_between_incasts_flows_share_a_pool_that_follows_the_queue():
    port = iqm(target=37_500)
    port.feed(37_500, flows=8)
    before = port.law.window(8)
    assert before == 37_500 // 8
    port.feed(10_000, flows=8)
    more = port.law.window(8)
    assert more > before, "the queue is short, and flows use their windows"
    port.feed(100_000, flows=8)
    assert port.law.window(8) < more
    # 32 flows begin: each with one segment, because the queue is not empty.
    begin(port, 32, 37_500)
    assert [port.law.window(40, 32, sent) for sent in (0, 1460, 14_600)] == [1460, 2920, 1460]


def test_the_incast_is_over_when_the_queue_has_been_short_for_a_while_and_windows_open_by_an_eighth():
    port = iqm()
    port.feed(LIMIT)
    begin(port, 1, LIMIT)
    assert port.law.limits
    port.feed(0, 0, LIMIT // 2, 0, 0, 0, 0)
    assert port.law.limits
    port.feed(0, 0)
    assert not port.law.limits
    sizes = []
    while (window := port.law.window(1)) != NO_WINDOW:
        sizes.append(window)
        port.feed(0)
    assert sizes[0] == 2920
    assert all(after == before * 9 // 8 for before, after in pairwise(sizes))
    assert sizes[-1] * 9 // 8 >= LIMIT


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(1, 12)),
        st.tuples(st.just("end"), st.integers(1, 12)),
        st.tuples(st.just("tick"), st.integers(0, LIMIT)),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([LIMIT, 37_500]))
def test_an_incast_begins_only_when_too_much_is_expected_and_ends_only_with_a_short_queue(
    steps: Any, target: int
):
    """Held against a count of what new flows will send."""
    port = iqm(target, linger_ns=0)
    port.feed(0)
    queue = expected = 0
    for what, value in steps:
        before = port.law.limits
        if what == "begin":
            for _ in range(value):
                expected += 1
                port.law.flow_began(queue, port.now)
                assert port.law.limits == (before or expected * 14_600 + queue > LIMIT)
                before = port.law.limits
        elif what == "end":
            for _ in range(value):
                expected = max(expected - 1, 0)
                port.law.flow_ended()
            assert port.law.limits == before
        else:
            queue = value
            port.feed(queue, flows=20)
            again = expected * 14_600 + queue > LIMIT
            assert port.law.limits == (again or (before and queue >= CALM))
            expected = 0
        if port.law.limits:
            assert {port.law.window(20, 9, sent) for sent in (0, 1, 10**9)} <= {1460, 2920}


@pytest.mark.parametrize("flows", [2, 8])
def test_the_queue_between_incasts_settles_at_the_target(flows):
    law = HostLaw(in_force(IqmLaw(interval_us=10_000, target_ppm=200_000)))
    loop = ClosedLoop(law, flows, 0.001)
    loop.run(20)
    assert loop.mean_queue(5) == pytest.approx(25_000, rel=0.05) and loop.lost == 0

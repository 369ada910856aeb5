"""SED's allocation of windows: the paper's steps, and invariants of every allocation."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.sed.allocation import BestEffortFlow, DeadlineFlow, allocate
from fairq_ryu.model import LARGEST_WINDOW, FlowKey

FLOWS = [FlowKey(f"10.0.0.{n}", "10.0.1.1", 80, 1000) for n in range(1, 30)]


def demand(place: int, need: float, sending: bool = False, mss: int = 1460, step: int = 1) -> DeadlineFlow:
    return DeadlineFlow(FLOWS[place], need, mss, step, sending)


def share(place: int, mss: int = 1460, step: int = 1) -> BestEffortFlow:
    return BestEffortFlow(FLOWS[place], mss, step)


def windows(
    total: float,
    deadline_flows: list[DeadlineFlow],
    best_effort: list[BestEffortFlow],
    base: int = 1,
) -> list[int]:
    found = allocate(total, deadline_flows, best_effort, base)
    return [found[each.flow] for each in (*deadline_flows, *best_effort)]


def test_the_paper_s_steps():
    """Base windows first; then needs, earliest deadline first, completely or not at all; the rest in equal
    parts.
    """
    needs = [demand(0, 20_000), demand(1, 30_000), demand(2, 5_000)]
    assert windows(40_000, needs, [share(3), share(4)]) == [20_000, 0, 5_000, 7_500, 7_500]
    assert windows(40_000, [], [share(3), share(4)]) == [20_000, 20_000]
    assert windows(40_000, [], []) == []


def test_flows_without_deadline_have_their_base_whatever_others_need():
    assert windows(3_000, [demand(0, 100)], [share(n) for n in (1, 2, 3)]) == [0, 1460, 1460, 1460]
    assert windows(5_000, [demand(0, 80)], [share(1), share(2)]) == [1460, 1770, 1770]
    assert windows(10_000, [demand(0, 100_000)], [share(1)], base=2) == [0, 10_000]
    assert windows(0, [], [share(1)], base=2) == [2920]


def test_spare_window_is_given_to_the_earliest_deadline():
    needs = [demand(0, 2_000)._replace(max_window=9_000), demand(1, 3_000)._replace(max_window=50_000)]
    assert windows(40_000, needs, []) == [9_000, 31_000]
    assert windows(10_000, needs, []) == [7_000, 3_000]
    assert windows(40_000, needs, [share(3)]) == [2_000, 3_000, 35_000]


def test_a_refused_flow_gets_the_link_when_no_other_flow_uses_it():
    assert windows(40_000, [demand(0, 50_000), demand(1, 60_000)], []) == [40_000, 0]
    small = demand(1, 5_000)._replace(max_window=39_000)
    assert windows(40_000, [demand(0, 50_000), small], []) == [0, 39_000]
    assert windows(1_000, [demand(0, 50_000)], []) == [0]
    assert windows(0, [demand(0, 50_000)], []) == [0]


def test_windows_are_multiples_of_the_step():
    found = windows(40_000, [demand(0, 5_000, step=512), demand(1, 10, step=512)], [share(2, step=512)])
    assert found == [5_120, 1_536, 33_280]
    assert windows(1e12, [demand(0, 2e11)], [share(1)]) == [LARGEST_WINDOW, LARGEST_WINDOW]


def test_a_sending_flow_is_kept_while_a_large_part_of_its_need_remains():
    """Half of it. The base window of another flow is 1,460 bytes."""

    def first_two(total: int, *needs: DeadlineFlow) -> list[int]:
        return windows(total + 1460, list(needs), [share(5)])[:2]

    needs = demand(0, 8_000, True), demand(1, 4_000, True)
    assert first_two(10_000, *needs) == [8_000, 2_000]
    assert first_two(9_900, *needs) == [8_000, 0]
    assert first_two(10_000, demand(0, 8_000, True), demand(1, 4_000, False)) == [8_000, 0]
    # Not before a flow with an earlier deadline and no greater need.
    assert first_two(5_000, demand(0, 6_000, False), demand(1, 6_000, True)) == [0, 0]


def test_floors_are_subtracted_from_the_total():
    """Ten flows that need little: their windows are a segment each, and two of them fill the total."""
    needs = [demand(place, 100) for place in range(10)]
    assert windows(3_000 + 1460, needs, [share(11)])[:-1] == [1460] * 2 + [0] * 8
    # A later flow with a smaller segment does not overtake an earlier one that needs no more.
    mixed = [demand(0, 100), demand(1, 100, mss=536), demand(2, 50, mss=536)]
    assert windows(1_000 + 1460, mixed, [share(11)])[:-1] == [0, 0, 536]


SHAPES = st.sampled_from([(1460, 1), (1460, 512), (536, 1), (8960, 4096)])


@st.composite
def divisions(draw):
    count = draw(st.integers(0, 12))
    deadline_flows = []
    for place in range(count):
        mss, step = draw(SHAPES)
        need = draw(st.floats(1e-6, 200_000))
        largest = need + draw(st.floats(0, 200_000))
        deadline_flows.append(
            demand(place, need, draw(st.booleans()), mss, step)._replace(max_window=largest)
        )
    best_effort = [share(place, *draw(SHAPES)) for place in range(count, count + draw(st.integers(0, 12)))]
    return draw(st.floats(0, 300_000)), deadline_flows, best_effort, draw(st.integers(1, 3))


@given(divisions())
def test_windows_add_up_to_the_total_and_the_floors(division):
    total, deadline_flows, best_effort, base = division
    found = allocate(*division)
    bases = sum(math.ceil(base * s.mss / s.step) * s.step for s in best_effort)
    # Each rounded up to a step, and at most one segment for the rest.
    steps = sum(d.step for d in deadline_flows if found[d.flow])
    floors = steps + max((d.mss for d in deadline_flows), default=0)
    assert sum(found.values()) <= max(total, bases) + floors + 1e-6 * total
    assert set(found) == {each.flow for each in (*deadline_flows, *best_effort)}


@given(divisions())
def test_a_window_is_0_or_at_least_one_segment(division):
    _, deadline_flows, best_effort, _ = division
    found = allocate(*division)
    for each in (*deadline_flows, *best_effort):
        window = found[each.flow]
        assert window == 0 or (window >= each.mss and window % each.step == 0)
    assert all(found[s.flow] >= s.mss for s in best_effort)


@given(divisions())
def test_an_earlier_deadline_is_not_refused_for_a_later_one(division):
    _, deadline_flows, _, _ = division
    found = allocate(*division)
    for place, earlier in enumerate(deadline_flows):
        if found[earlier.flow]:
            continue
        for later in deadline_flows[place + 1 :]:
            assert not found[later.flow] or later.need < earlier.need


@given(divisions())
def test_needs_that_fit_are_met(division):
    total, deadline_flows, best_effort, base = division
    bases = sum(math.ceil(base * s.mss / s.step) * s.step for s in best_effort)
    if bases + sum(max(d.need, d.mss) for d in deadline_flows) < total * (1 - 1e-9):
        assert all(allocate(*division)[d.flow] >= d.need for d in deadline_flows)


def test_shares_of_the_same_kind_are_equal():
    found = windows(50_000, [demand(0, 12_345)], [share(n, step=512) for n in range(1, 6)])
    assert len(set(found[1:])) == 1

"""SED's equations and algorithms, worked by hand from the text.

C = 10,000,000 bytes/s, RTT_avg = 1 ms, K = 20,000 bytes: Twin = 20,000 + 10,000 = 30,000 bytes.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.sed_paper import algorithm as source
from fairq_ryu.laws.sed_paper.algorithm import (
    Algorithm1,
    State,
    alloc_window,
    total_window,
    window_allocation,
)
from fairq_ryu.model import Announcement, FlowInfo, FlowKey, FlowProgress
from fairq_ryu.policies.parts.deadline_table import GifTable
from tests.support.fakes import info
from tests.support.listings import line_numbers

RTT, TWIN, MSS = 0.001, 30_000.0, 1000
A, B, C, D = (FlowKey("10.0.0.1", "10.0.0.2", number, 80) for number in range(1, 5))


def flow(key: FlowKey) -> FlowInfo:
    return info(key, MSS)


def table(**flows: tuple[int, float] | None) -> GifTable:
    """The GIF table of flows that start at 0: size in bytes and deadline in seconds, or neither."""
    gif = GifTable()
    for name, wanted in flows.items():
        gif.add(flow(globals()[name]), 0.0, None if wanted is None else Announcement(*wanted))
    return gif


def allocated(gif: GifTable, now: float = 0.0, twin: float = TWIN, base: int = 1):
    return window_allocation(gif.ordered(now), twin, RTT, base, now)


# Equations


def test_equation_3_has_the_number_of_section_4() -> None:
    # K = 30 packets, 1 Gbit/s, 200 us, packets of 1,500 bytes: 25,000 bytes are 16.7 packets, Twin is 46.7.
    assert total_window(30 * 1500, 125e6, 200e-6) / 1500 == pytest.approx(46.7, abs=0.05)


def test_equation_4_sends_the_rest_in_the_time_that_is_left() -> None:
    # 8 MB in 300 ms, Fig. 8: 26,667 bytes/ms, in each of 200 us.
    assert alloc_window(8e6, 0.3, 200e-6) == pytest.approx(5_333.3, abs=0.1)


# Algorithm 2


def test_lines_10_to_17_give_deadline_flows_what_they_need() -> None:
    # A: 1 MB in 100 ms = 10,000 bytes/ms. B: 4 MB in 250 ms = 16,000. Together 26,000 of 30,000.
    windows, dropped = allocated(table(B=(4_000_000, 0.25), A=(1_000_000, 0.1)))
    assert windows == pytest.approx({A: 10_000, B: 16_000})
    assert not dropped


def test_lines_6_to_8_come_first_and_lines_26_to_28_share_the_rest() -> None:
    # Base: 1,000 each for C and D. A needs 10,000. The rest, 30,000 - 2,000 - 10,000, is 9,000 for each.
    windows, _ = allocated(table(A=(1_000_000, 0.1), C=None, D=None))
    assert windows == pytest.approx({A: 10_000, C: 10_000, D: 10_000})


def test_line_14_gives_nothing_to_a_flow_that_needs_more_than_is_left() -> None:
    # A needs 20,000 of 30,000, B needs 16,000 of the other 10,000. C, later than B, needs 10,000 and gets it.
    windows, _ = allocated(table(A=(2_000_000, 0.1), B=(4_000_000, 0.25), C=(3_000_000, 0.3)))
    assert windows == pytest.approx({A: 20_000, B: 0, C: 10_000})


def test_the_earliest_deadline_is_served_first() -> None:
    # Both need 20,000 of 30,000.
    windows, _ = allocated(table(A=(4_000_000, 0.2), B=(2_000_000, 0.1)))
    assert windows == pytest.approx({B: 20_000, A: 0})


def test_the_base_is_not_taken_from_non_deadline_flows() -> None:
    # Twin of 3,000: C and D get 2,000 each all the same; nothing is left for A.
    windows, _ = allocated(table(A=(1_000, 0.1), C=None, D=None), twin=3_000.0, base=2)
    assert windows == {A: 0, C: 2_000, D: 2_000}


def test_the_base_is_in_segments_of_the_flow() -> None:
    gif = GifTable()
    gif.add(info(A, 1460), 0.0)
    gif.add(info(B, 536), 0.0)
    assert allocated(gif, twin=0.0)[0] == {A: 1460, B: 536}


def test_lines_2_to_4_drop_flows_whose_deadline_is_missed() -> None:
    gif = table(A=(1_000_000, 0.1), B=(2_000_000, 0.3))
    windows, dropped = allocated(gif, now=0.1)
    # B has 200 ms left for 2 MB: 10,000. A has no window at all.
    assert windows == pytest.approx({B: 10_000})
    assert dropped == {A}


def test_what_was_acknowledged_is_not_needed_any_more() -> None:
    gif = table(A=(1_000_000, 0.2))
    gif.progressed(A, FlowProgress(600_000, 700_000, 0.001, True), 0.1)
    assert allocated(gif, now=0.1)[0] == pytest.approx({A: 4_000})  # 400 kB in 100 ms


@pytest.mark.parametrize("wanted", [(None, 0.1), (1_000_000, None), (0, 0.1)])
def test_without_size_or_deadline_or_bytes_it_is_a_non_deadline_flow(wanted) -> None:
    gif = table(C=None)
    gif.add(flow(A), 0.0, Announcement(*wanted))
    assert allocated(gif, now=0.05)[0] == pytest.approx({A: 15_000, C: 15_000})
    assert allocated(gif, now=0.15)[1] == set()


FLOWS = st.lists(
    st.one_of(st.none(), st.tuples(st.integers(1, 10**7), st.floats(0.01, 1))), min_size=1, max_size=12
)


@given(FLOWS, st.floats(0, 100_000))
def test_the_windows_are_twin_or_as_little_as_the_text_has(flows, twin) -> None:
    """Eq. 2: with a non-deadline flow, the sum of the windows is Twin, or the bases if these are more."""
    gif = GifTable()
    keys = [FlowKey("10.0.0.1", "10.0.0.2", number, 80) for number in range(len(flows))]
    for key, wanted in zip(keys, flows, strict=True):
        gif.add(flow(key), 0.0, None if wanted is None else Announcement(*wanted))
    windows, dropped = allocated(gif, twin=twin)
    others = flows.count(None)
    assert not dropped and set(windows) == set(keys)
    if others:
        assert sum(windows.values()) == pytest.approx(max(twin, others * MSS), abs=0.01)
    else:
        assert sum(windows.values()) <= twin + 0.01
    for key, wanted in zip(keys, flows, strict=True):
        if wanted is None:
            assert windows[key] >= MSS
        else:
            need = wanted[0] / wanted[1] * RTT
            assert windows[key] == 0 or math.isclose(windows[key], need)


# Algorithm 1


def controller(*keys: FlowKey) -> Algorithm1:
    found = Algorithm1(RTT, 1)
    found.twin = TWIN
    for key in keys:
        found.connection_created(flow(key), 0.0)
    return found


def test_windows_are_pushed_in_congestion_and_deleted_at_once_when_it_is_over() -> None:
    law = controller(A, B)
    assert (law.state, law.windows) == (State.NOM, {})
    law.congestion_trigger(0.1)
    assert (law.state, law.windows) == (State.CNG, {A: 15_000, B: 15_000})
    law.congestion_recovery()
    assert (law.state, law.windows) == (State.NOM, {})


def test_allocation_is_recalled_when_a_connection_is_created_or_terminated_in_congestion() -> None:
    law = controller(A, B)
    law.congestion_trigger(0.0)
    law.connection_created(flow(C), 0.1)
    assert law.windows == pytest.approx({A: 10_000, B: 10_000, C: 10_000})
    law.connection_terminated(A, 0.2)
    law.connection_terminated(B, 0.2)
    assert law.windows == pytest.approx({C: 30_000})


def test_an_announcement_belongs_to_the_creation_of_a_flow() -> None:
    law = controller(A, B)
    law.congestion_trigger(0.0)
    law.announced(A, Announcement(1_000_000, 0.1), 0.0)
    assert law.windows == pytest.approx({A: 10_000, B: 20_000})
    law.announced(A, None, 0.05)
    assert law.windows == pytest.approx({A: 15_000, B: 15_000})


def test_progress_alone_changes_no_window() -> None:
    law = controller(A, B)
    law.announced(A, Announcement(1_000_000, 0.1), 0.0)
    law.congestion_trigger(0.0)
    before = dict(law.windows)
    law.progressed(A, FlowProgress(900_000, 900_000, 0.001, True), 0.05)
    assert law.windows == before
    law.connection_created(flow(C), 0.05)  # 100 kB in 50 ms: 2,000; the rest is 28,000
    assert law.windows == pytest.approx({A: 2_000, B: 14_000, C: 14_000})


def test_a_dropped_flow_stays_dropped_until_it_ends_or_is_announced_anew() -> None:
    law = controller(A, B)
    law.announced(A, Announcement(1_000_000, 0.1), 0.0)
    law.congestion_trigger(0.2)
    assert (law.dropped, law.windows) == ({A}, {B: 30_000})
    law.congestion_recovery()
    assert (law.dropped, law.windows) == ({A}, {})
    law.progressed(A, FlowProgress(1_000_000, 1_000_000, 0.001, True), 0.3)
    law.congestion_trigger(0.4)
    assert (law.dropped, law.windows) == ({A}, {B: 30_000})
    law.announced(A, Announcement(3_000_000, 0.5), 0.4)  # 2 MB more in 100 ms
    assert (law.dropped, law.windows) == (set(), pytest.approx({A: 20_000, B: 10_000}))
    law.congestion_recovery()
    law.congestion_trigger(0.5)
    assert law.dropped == {A}
    law.connection_terminated(A, 0.6)
    assert law.dropped == set()
    law.connection_created(flow(A), 0.7)
    assert law.windows == pytest.approx({A: 15_000, B: 15_000})


def test_the_file_has_every_line_of_the_listing_in_its_order() -> None:
    assert line_numbers(source) == list(range(1, 29))

"""FairQ's Algorithm 1, worked by hand from the listing. T, M and alpha are small and round numbers.

Buffer 100,000 bytes, alpha 1/4: a target of 25,000 bytes. M = 4, segments of 1,000 bytes.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.fairq_paper import algorithm as source
from fairq_ryu.laws.fairq_paper.algorithm import Algorithm1
from tests.support.listings import line_numbers

LIMIT, TARGET, M, MSS = 100_000, 25_000, 4, 1000


def law(flows: int = 0, slow_start: bool = False) -> Algorithm1:
    found = Algorithm1(M, 0.25, slow_start, LIMIT)
    for _ in range(flows):
        found.syn_ack(MSS)
    return found


def timeouts(algorithm: Algorithm1, *queues: float) -> list[bool]:
    return [algorithm.window_increment_timeout(queue) for queue in queues]


def test_lines_2_to_3_keep_the_largest_segment() -> None:
    algorithm = law()
    for size, largest in ((900, 900), (1460, 1460), (536, 1460)):
        algorithm.syn_ack(size)
        assert algorithm.max_size == largest


def test_lines_5_to_9_divide_the_window_among_all_flows() -> None:
    algorithm = law()
    windows = []
    for _ in range(4):
        algorithm.syn_ack(MSS)
        windows.append(algorithm.receive_window())
    # alpha * Q_limit = 25,000; * 1/2; * 2/3; * 3/4: a half, a third, a quarter of it.
    assert windows == pytest.approx([25_000, 12_500, 25_000 / 3, 6_250])
    assert algorithm.q_fcount == 4


def test_lines_11_to_13_give_what_a_flow_leaves_to_the_others() -> None:
    algorithm = law(4)
    algorithm.fin()  # 6,250 * (3 + 1) / 3
    assert algorithm.receive_window() == pytest.approx(25_000 / 3)
    algorithm.fin()  # * (2 + 1) / 2
    assert algorithm.receive_window() == pytest.approx(12_500)


def test_line_15_and_the_text_begin_anew_when_no_flow_is_left() -> None:
    algorithm = law(1, slow_start=True)
    timeouts(algorithm, *[0] * 4, *[TARGET] * 4)
    assert (algorithm.receive_window(), algorithm.slowstart) == (29_000, False)
    algorithm.fin()
    assert (algorithm.receive_window(), algorithm.slowstart, algorithm.q_fcount) == (25_000, True, 0)


def test_lines_20_to_23_and_29_add_up_m_increments() -> None:
    # Q_ratio at 0, 12,500, 25,000 and 50,000 bytes: 1, 1/2, 0, -1. W_incr = 1/2 * 1,000 / 4 = 125.
    # One flow: Q_Rwnd = 25,000 + 125 / 1.
    algorithm = law(1)
    assert timeouts(algorithm, 0, 12_500, 25_000, 50_000) == [False, False, False, True]
    assert algorithm.receive_window() == 25_125
    # Five flows: alpha * Q_limit / 5 = 5,000, and a fifth of the increment.
    algorithm = law(5)
    timeouts(algorithm, 0, 12_500, 25_000, 50_000)
    assert algorithm.receive_window() == pytest.approx(5_025)


def test_before_m_increments_the_window_stays() -> None:
    algorithm = law(1)
    timeouts(algorithm, 0, 0, 0)
    assert (algorithm.receive_window(), algorithm.w_incr, algorithm.interval_count) == (25_000, 750, 3)


def test_lines_30_to_31_begin_the_next_update_interval() -> None:
    algorithm = law(1)
    timeouts(algorithm, 0, 0, 0, 0)  # + 4 * 1,000 / 4
    assert (algorithm.receive_window(), algorithm.w_incr, algorithm.interval_count) == (26_000, 0, 0)
    timeouts(algorithm, *[LIMIT] * 4)  # + 4 * (1 - 4) * 1,000 / 4
    assert algorithm.receive_window() == 23_000


def test_lines_24_to_25_add_two_segments_whatever_the_number_of_flows() -> None:
    algorithm = law(5, slow_start=True)
    timeouts(algorithm, 0, 0, 0, 0)
    assert algorithm.receive_window() == pytest.approx(5_000 + 2_000)
    assert algorithm.slowstart


def test_lines_26_to_27_end_slow_start_at_an_update_that_finds_the_target() -> None:
    algorithm = law(1, slow_start=True)
    timeouts(algorithm, 30_000, 30_000, 30_000, TARGET - 1)
    assert algorithm.slowstart  # only the queue of the fourth timeout counts
    timeouts(algorithm, 0, 0, 0, TARGET)
    assert (algorithm.receive_window(), algorithm.slowstart) == (29_000, False)  # line 25 comes first
    timeouts(algorithm, *[TARGET] * 4)
    assert algorithm.receive_window() == 29_000


def test_slow_start_is_optional() -> None:
    algorithm = law(1, slow_start=False)
    assert not algorithm.slowstart
    algorithm.fin()
    algorithm.syn_ack(MSS)
    assert not algorithm.slowstart


def test_without_flows_the_timer_does_not_run() -> None:
    algorithm = law()
    assert timeouts(algorithm, *[LIMIT] * 4) == [False] * 4
    assert (algorithm.w_incr, algorithm.interval_count) == (0, 0)


def test_nothing_but_0_bounds_the_window() -> None:
    algorithm = law(1)
    timeouts(algorithm, *[0] * 4 * 200)  # 200 updates of + 1,000: more than the buffer
    assert algorithm.receive_window() == 25_000 + 200_000
    timeouts(algorithm, *[LIMIT] * 4 * 75)  # 75 updates of - 3,000
    assert algorithm.receive_window() == 0
    timeouts(algorithm, 0, 0, 0, 0)
    assert algorithm.receive_window() == 1_000


@given(st.lists(st.sampled_from(["start", "end"]), max_size=60))
def test_starts_and_ends_share_alpha_q_limit_among_the_flows(events: list[str]) -> None:
    """Lines 5 to 15 alone: Q_Rwnd * Q_fcount is alpha * Q_limit after each of them."""
    algorithm = law()
    for event in events:
        if event == "start":
            algorithm.syn_ack(MSS)
        elif algorithm.q_fcount:
            algorithm.fin()
        assert algorithm.receive_window() * max(1, algorithm.q_fcount) == pytest.approx(TARGET)


def test_the_file_has_every_line_of_the_listing_in_its_order() -> None:
    assert line_numbers(source) == list(range(1, 32))

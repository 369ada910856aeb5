import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.workloads.deadlines import figures
from tests.support.results import outcome

SECOND = 10**9


def test_an_endless_flow_beside_others():
    series = [
        (0, 10),
        (1 * SECOND, 1_000),
        (2 * SECOND, 500_000),
        (5 * SECOND, 1_001_000),
        (9 * SECOND, 7**9),
    ]
    summed = figures.endless_figures(series, 1 * SECOND, 6 * SECOND)
    assert summed["goodput_mbit"] == pytest.approx(1_000_000 * 8e-6 / 5)
    assert summed["longest_gap_ms"] == 3000


def test_the_silence_counts_from_the_start_and_to_the_end():
    assert figures.endless_figures([(0, 10)], 1 * SECOND, 4 * SECOND) == {
        "goodput_mbit": 0, "longest_gap_ms": 3000,
    }  # fmt: skip
    assert figures.endless_figures([], 0, SECOND)["longest_gap_ms"] == 1000
    late = [(SECOND // 10, 5), (SECOND // 5, 10)]
    assert figures.endless_figures(late, 0, SECOND)["longest_gap_ms"] == 800


@given(st.lists(st.integers(0, 10**10), max_size=50))
def test_the_longest_silence_lies_within_the_time(moments):
    series = [(at, place) for place, at in enumerate(sorted(moments))]
    summed = figures.endless_figures(series, 10**9, 5 * 10**9)
    within = sum(10**9 < at <= 5 * 10**9 for at in moments)
    assert 4000 / (within + 1) - 1e-6 <= summed["longest_gap_ms"] <= 4000


def run(*flows, endless=()):
    return {
        "flows": [figures.flow_figures(each) for each in flows],
        "endless": [{"goodput_mbit": rate, "longest_gap_ms": gap} for rate, gap in endless],
    }


def test_runs_with_deadlines_add_up():
    summed = figures.deadlines_figures(
        [
            run(outcome(100, 0.3), outcome(900, 0.8, retrans=4), endless=[(50, 10)]),
            run(outcome(200, 0.3), outcome(None, 0.8, rto=2), endless=[(70, 300)]),
            run(outcome(150, 0.3), outcome(700, 0.8), endless=[(60, 20)]),
        ],
        announced=6,
    )
    assert (summed["deadlines"], summed["missed"], summed["runs_with_missed"]) == (6, 2, 2)
    assert (summed["unfinished"], summed["retransmissions"], summed["rto_timeouts"]) == (1, 4, 2)
    assert (summed["endless_goodput_mbit"], summed["endless_longest_gap_ms"]) == (60, 300)
    first, second = summed["by_flow"]
    assert (first["missed"], first["ms"]["mean"], first["ms"]["max"]) == (0, 150, 200)
    assert (second["missed"], second["ms"]["count"], second["deadline_s"]) == (2, 2, 0.8)


def test_runs_without_endless_flows_and_counters_have_no_such_figures():
    summed = figures.deadlines_figures([run(outcome(100, rto=None))], 0)
    assert (
        summed["rto_timeouts"] is summed["endless_goodput_mbit"] is summed["endless_longest_gap_ms"] is None
    )
    assert (summed["deadlines"], summed["missed"]) == (0, 0)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.measure import outcomes
from fairq_ryu.experiments.measure.outcomes import Flow, Outcome
from fairq_ryu.experiments.report import result

SECOND = 10**9


def came(ms, deadline=None, size=1000, rto=0, retrans=0):
    error = "timeout" if ms is None else None
    return Outcome(Flow(0, 0, size, 1, deadline), ms, size - 12 if ms else 0, error, retrans, rto)


def test_a_deadline_is_met_to_the_millisecond():
    assert came(300, 0.3).met is True
    assert came(300.001, 0.3).met is False
    assert came(None, 0.3).met is False
    assert came(10_000).met is None


def test_an_endless_flow_beside_others():
    series = [
        (0, 10),
        (1 * SECOND, 1_000),
        (2 * SECOND, 500_000),
        (5 * SECOND, 1_001_000),
        (9 * SECOND, 7**9),
    ]
    figures = outcomes.beside_others(series, 1 * SECOND, 6 * SECOND)
    assert figures["goodput_mbit"] == pytest.approx(1_000_000 * 8e-6 / 5)
    assert figures["longest_gap_ms"] == 3000


def test_the_silence_counts_from_the_start_and_to_the_end():
    assert outcomes.beside_others([(0, 10)], 1 * SECOND, 4 * SECOND) == {
        "goodput_mbit": 0, "longest_gap_ms": 3000,
    }  # fmt: skip
    assert outcomes.beside_others([], 0, SECOND)["longest_gap_ms"] == 1000
    late = [(SECOND // 10, 5), (SECOND // 5, 10)]
    assert outcomes.beside_others(late, 0, SECOND)["longest_gap_ms"] == 800


@given(st.lists(st.integers(0, 10**10), max_size=50))
def test_the_longest_silence_lies_within_the_time(moments):
    series = [(at, place) for place, at in enumerate(sorted(moments))]
    figures = outcomes.beside_others(series, 10**9, 5 * 10**9)
    within = sum(10**9 < at <= 5 * 10**9 for at in moments)
    assert 4000 / (within + 1) - 1e-6 <= figures["longest_gap_ms"] <= 4000


def test_the_last_byte_of_an_unfinished_round_is_its_timeout():
    assert outcomes.last_ms([came(5), came(9)], 20) == 9
    assert outcomes.last_ms([came(5), came(None)], 20) == 20_000


def test_rounds_add_up():
    made = [
        [came(10, 0.02, rto=1, retrans=2), came(30, 0.02)],
        [came(20, 0.02), came(None, 0.02, retrans=5, rto=3)],
    ]
    figures = outcomes.rounds_figures(made, namespace_timeouts=99, timeout_s=1)
    assert (figures["flows"], figures["unfinished"], figures["errors"]) == (4, 1, {"timeout": 1})
    assert (figures["deadlines"], figures["missed"]) == (4, 2)
    assert figures["last_byte_list_ms"] == [30, 1000]
    assert figures["goodput_mbit"] == pytest.approx(3 * 988 * 8e-6 / 1.03)
    assert (figures["rto_timeouts"], figures["rto_source"], figures["retransmissions"]) == (4, "tcp_info", 7)


def test_old_kernels_fall_back_to_the_namespace():
    figures = outcomes.rounds_figures([[came(10, rto=None)]], 7, 1)
    assert (figures["rto_timeouts"], figures["rto_source"], figures["deadlines"]) == (7, "namespace", 0)


def run(*flows, endless=()):
    return {
        "flows": [outcomes.flow_figures(each) for each in flows],
        "endless": [{"goodput_mbit": rate, "longest_gap_ms": gap} for rate, gap in endless],
    }


def test_runs_with_deadlines_add_up():
    figures = outcomes.deadlines_figures(
        [
            run(came(100, 0.3), came(900, 0.8, retrans=4), endless=[(50, 10)]),
            run(came(200, 0.3), came(None, 0.8, rto=2), endless=[(70, 300)]),
            run(came(150, 0.3), came(700, 0.8), endless=[(60, 20)]),
        ],
        announced=6,
    )
    assert (figures["deadlines"], figures["missed"], figures["runs_with_missed"]) == (6, 2, 2)
    assert (figures["unfinished"], figures["retransmissions"], figures["rto_timeouts"]) == (1, 4, 2)
    assert (figures["endless_goodput_mbit"], figures["endless_longest_gap_ms"]) == (60, 300)
    first, second = figures["by_flow"]
    assert (first["missed"], first["ms"]["mean"], first["ms"]["max"]) == (0, 150, 200)
    assert (second["missed"], second["ms"]["count"], second["deadline_s"]) == (2, 2, 0.8)


def test_runs_without_endless_flows_and_counters_say_so():
    figures = outcomes.deadlines_figures([run(came(100, rto=None))], 0)
    assert (
        figures["rto_timeouts"]
        is figures["endless_goodput_mbit"]
        is figures["endless_longest_gap_ms"]
        is None
    )
    assert (figures["deadlines"], figures["missed"]) == (0, 0)


def fanin(*medians, missed=1, rto=2):
    sweep = [
        {"last_byte_ms": {"p50": p50}, "flows": 1, "unfinished": 0, "deadlines": 4, "missed": missed,
         "rto_timeouts": rto, "retransmissions": 0, "qdisc_drops": 0}
        for p50 in medians
    ]  # fmt: skip
    return {"failed": None, "fanin": outcomes.fanin_figures(sweep, 0)}


def test_fan_ins_are_compared_at_the_worst_number_of_flows():
    compared = result.compare(
        [{"policy": "droptail", **fanin(300, 200, missed=5)}, {"policy": "rsed", **fanin(30, 50, rto=1)}]
    )["rsed"]
    assert compared["last_byte_times_lower"] == 4
    assert compared["fanin_missed_share"] == pytest.approx(0.2)
    assert compared["fanin_rto_share"] == pytest.approx(0.5)
    assert compared["goodput_share"] is None

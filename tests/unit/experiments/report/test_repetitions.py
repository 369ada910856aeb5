"""Several repetitions as one result."""

import pytest

from fairq_ryu.experiments.report import repetitions, result


def test_each_policy_comes_first_in_turn():
    orders = [repetitions.order(["a", "b", "c"], number) for number in range(4)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]
    assert repetitions.order(["a"], 7) == ["a"]


def test_numbers_are_means_with_half_widths_in_the_same_shape():
    merged = repetitions.merge(
        [
            {"policy": "p", "failed": None, "mice": {"count": 32, "fct_ms": {"p99": 10.0}}},
            {"policy": "p", "failed": None, "mice": {"count": 32, "fct_ms": {"p99": 14.0}}},
        ]
    )
    assert merged["mice"] == {"count": 32, "fct_ms": {"p99": 12.0}}
    # s = 2 sqrt 2, n = 2: 12.706 * 2
    assert merged["interval"]["mice"]["fct_ms"]["p99"] == pytest.approx(25.412)
    assert merged["interval"]["mice"]["count"] == 0


def test_a_single_repetition_is_unchanged():
    figures = {"policy": "p", "failed": None, "mice": {"count": 1}}
    assert repetitions.merge([figures]) == figures


def test_a_policy_that_failed_once_has_failed():
    good = {"policy": "p", "failed": None, "seconds": 1.0}
    bad = {"policy": "p", "failed": "no network"}
    assert repetitions.merge([good, bad, good]) == {"policy": "p", "failed": "repetition 2: no network"}
    assert repetitions.merge([bad]) == bad


def test_a_figure_missing_in_one_repetition_has_no_mean():
    merged = repetitions.merge([{"policy": "p", "a": None, "b": 1.0}, {"policy": "p", "a": 2.0, "b": 3.0}])
    assert merged["a"] is None and merged["b"] == 2.0


def test_times_missing_in_one_repetition_have_no_mean():
    times = {"p99": 2.0, "mean": 1.0}
    merged = repetitions.merge([{"policy": "p", "fct_ms": times}, {"policy": "p", "fct_ms": None}])
    assert merged["fct_ms"] is None and "fct_ms" not in merged["interval"]
    merged = repetitions.merge([{"policy": "p", "each": [1.0, 2.0]}, {"policy": "p", "each": None}])
    assert merged["each"] is None and "each" not in merged["interval"]


def test_samples_are_kept_counts_by_name_are_filled_up_and_members_stay_in_their_places():
    merged = repetitions.merge(
        [
            {
                "policy": "p",
                "fct_list_ms": [1.0, None],
                "errors": {"timeout": 2},
                "goodput_mbit": [4.0, 6.0],
                "histogram": [[0, 10, 5], [10, 20, 1]],
                "sweep": [{"n": 1, "missed": 0}, {"n": 5, "missed": 4}],
            },
            {
                "policy": "p",
                "fct_list_ms": [3.0],
                "errors": {},
                "goodput_mbit": [6.0, 6.0],
                "histogram": [[10, 20, 2], [20, 30, 7]],
                "sweep": [{"n": 1, "missed": 0}, {"n": 5, "missed": 8}],
            },
        ]
    )
    assert merged["fct_list_ms"] == [1.0, None, 3.0]
    assert merged["errors"] == {"timeout": 1.0}
    assert merged["goodput_mbit"] == [5.0, 6.0]
    assert merged["histogram"] == [[0, 10, 5], [10, 20, 3], [20, 30, 7]]
    assert merged["sweep"] == [{"n": 1, "missed": 0}, {"n": 5, "missed": 6.0}]
    assert merged["interval"]["sweep"][1]["missed"] == pytest.approx(25.412)


def test_ratios_are_of_one_repetition_each():
    means, bounds = repetitions.compared(
        [
            {"fairq": {"fct_p99_times_lower": 2.0, "goodput_share": 0.9, "mice_rto_share": None}},
            {"fairq": {"fct_p99_times_lower": 8.0, "goodput_share": 1.0, "mice_rto_share": 0.0}},
        ]
    )
    assert means["fairq"]["fct_p99_times_lower"] == pytest.approx(4)  # geometric
    assert means["fairq"]["goodput_share"] == pytest.approx(0.95)
    assert means["fairq"]["mice_rto_share"] is None
    low, high = bounds["fairq"]["fct_p99_times_lower"]
    assert low * high == pytest.approx(16)
    assert set(bounds["fairq"]) == {"fct_p99_times_lower", "goodput_share"}
    assert repetitions.compared([{"fairq": {"goodput_share": 0.9}}])[1] == {"fairq": {}}


def test_the_whole_result_of_repetitions():
    def one(p99):
        policies = [
            {"policy": name, "failed": None, "mice": {"fct_ms": {"p99": value}}}
            for name, value in (("droptail", p99), ("fairq", 10.0))
        ]
        return {
            "order": ["droptail", "fairq"],
            "floor": {"policy": "floor", "failed": None},
            "policies": policies,
        }

    whole = result.assemble({}, {}, [one(20.0), one(80.0)])
    assert whole["repeat"] == 2 and len(whole["repetitions"]) == 2
    assert whole["comparison"]["fairq"]["fct_p99_times_lower"] == pytest.approx(4)
    assert whole["policies"][0]["mice"]["fct_ms"]["p99"] == 50
    assert whole["repetitions"][1]["comparison"]["fairq"]["fct_p99_times_lower"] == 8
    single = result.assemble({}, {}, [one(20.0)])
    assert single["repetitions"] is None and single["comparison_interval"] == {"fairq": {}}

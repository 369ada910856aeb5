import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.experiments.measure import stats

samples = st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=200)


@given(samples)
def test_mean_and_deviation_agree_with_the_standard_library(values):
    assert stats.mean(values) == pytest.approx(statistics.fmean(values))
    if len(values) > 1:
        assert stats.deviation(values) == pytest.approx(statistics.stdev(values), abs=1e-6)
    else:
        assert stats.deviation(values) == 0


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=2, max_size=200))
def test_percentiles_agree_with_the_standard_library(values):
    hundredths = statistics.quantiles(values, n=100, method="inclusive")
    for share in (0.5, 0.95, 0.99):
        expected = hundredths[round(share * 100) - 1]
        assert stats.percentile(values, share) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert stats.percentile(values, 0) == min(values)
    assert stats.percentile(values, 1) == max(values)


@given(samples)
def test_jain_lies_between_one_nth_and_one(values):
    assert 1 / len(values) - 1e-9 <= stats.jain(values) <= 1 + 1e-9


def test_jain_of_known_shares():
    assert stats.jain([5, 5, 5, 5]) == pytest.approx(1)
    assert stats.jain([10, 0, 0, 0]) == pytest.approx(0.25)
    assert stats.jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert stats.jain([0, 0]) == 1
    assert stats.jain([1e-200, 1e-200]) == pytest.approx(1)


@pytest.mark.parametrize("function", [stats.mean, stats.deviation, stats.jain])
def test_nothing_has_no_statistics(function):
    with pytest.raises(ValueError):
        function([])
    with pytest.raises(ValueError):
        stats.percentile([], 0.5)
    with pytest.raises(ValueError):
        stats.percentile([1], 1.5)


def test_time_percentile_weighs_by_time():
    histogram = [(0, 100, 90), (100, 200, 0), (200, 300, 10)]
    assert stats.time_percentile(histogram, 0.45) == pytest.approx(50)
    assert stats.time_percentile(histogram, 0.9) == pytest.approx(100)
    assert stats.time_percentile(histogram, 0.99) == pytest.approx(290)
    assert stats.time_percentile(histogram, 1.0) == pytest.approx(300)
    assert stats.time_percentile([(0, 100, 0)], 0.99) is None
    assert stats.time_percentile([], 0.99) is None


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.floats(0, 1))
def test_time_percentile_stays_in_the_range(weights, share):
    histogram = [(10.0 * i, 10.0 * (i + 1), w) for i, w in enumerate(weights)]
    depth = stats.time_percentile(histogram, share)
    if sum(weights) == 0:
        assert depth is None
    else:
        assert 0 <= depth <= 10.0 * len(weights)


def test_summary_has_every_figure():
    summary = stats.fct_summary([1.0, 2.0, 3.0])
    assert set(summary) == {"count", "mean", "sd", "p50", "p95", "p99", "max"}
    assert math.isclose(summary["sd"], 1.0)
    assert stats.fct_summary([]) is None

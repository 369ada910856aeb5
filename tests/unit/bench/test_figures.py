"""Figures of the benchmarks: spreads, ratios, shares."""

import pytest

from bench import figures


def test_a_spread_is_median_lowest_and_highest():
    assert figures.spread([3.0, 1.0, 2.0], ".0f") == "2 (1 to 3)"
    assert figures.spread([0.5, 1.0], ".2f") == "0.75 (0.50 to 1.00)"


def test_ratios_are_of_the_same_round():
    assert figures.ratios([50, 90], [100, 100]) == [0.5, 0.9]
    with pytest.raises(ValueError):
        figures.ratios([1], [1, 2])


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 10, "0 %"), (1, 1000, "<1 %"), (1, 8, "12 %"), (5, 5, "100 %"), (0, 0, "0 %")],
)
def test_a_share_is_in_percent(part, whole, text):
    assert figures.share(part, whole) == text


@pytest.mark.parametrize(("number", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (30, 10, 21)])
def test_the_interval_of_a_median_is_that_of_the_binomial_distribution(number, low, high):
    """The ranks of the usual tables, as of Conover, Practical Nonparametric Statistics."""
    values = [float(rank) for rank in range(number, 0, -1)]
    assert figures.median_interval(values) == (low, high)


def test_the_interval_of_a_median_needs_six_values():
    with pytest.raises(ValueError, match="six"):
        figures.median_interval([1.0] * 5)

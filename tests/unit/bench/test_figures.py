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

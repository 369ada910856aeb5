"""Means with confidence intervals, compared with tables and with a second computation."""

import math
import random

import pytest

from fairq_ryu.experiments.measure import intervals


def test_a_mean_and_its_interval():
    # n = 4, mean 10, s = 2: half = 3.182 * 2 / 2
    samples = [10 - math.sqrt(6), 10.0, 10.0, 10 + math.sqrt(6)]
    assert intervals.of_mean(samples) == pytest.approx((10, 10 - 3.182, 10 + 3.182))
    assert intervals.half_width(samples) == pytest.approx(3.182)


def test_a_ratio_is_as_far_from_one_as_its_inverse():
    samples = [2.0, 8.0, 3.0]
    mean, low, high = intervals.of_ratio(samples)
    assert mean == pytest.approx(48 ** (1 / 3))
    assert intervals.of_ratio([1 / each for each in samples]) == pytest.approx((1 / mean, 1 / high, 1 / low))


def test_values_without_an_interval_are_refused():
    with pytest.raises(ValueError, match="two samples"):
        intervals.of_mean([1.0])
    with pytest.raises(ValueError, match="more than 0"):
        intervals.of_ratio([1.0, 0.0])


def test_student_approaches_the_normal_distribution():
    points = [intervals.student(freedom) for freedom in range(1, 200)]
    assert points == sorted(points, reverse=True)
    assert intervals.student(40) == pytest.approx(2.021, abs=0.002)
    assert intervals.student(120) == pytest.approx(1.980, abs=0.001)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_95_percent_of_the_intervals_contain_the_mean(size):
    source = random.Random(size)
    contained = 0
    for _ in range(4000):
        _mean, low, high = intervals.of_mean([source.gauss(7, 3) for _ in range(size)])
        contained += low <= 7 <= high
    assert 0.93 < contained / 4000 < 0.97  # a fixed seed: the same each time


def test_the_difference_of_two_means_is_welchs():
    """By hand: the deviations are 1 and 1.708, and Welch and Satterthwaite's degrees of freedom 4.85, which
    are rounded down.
    """
    one, other = [1.0, 2, 3], [5.0, 7, 9, 6]
    found = intervals.of_difference(one, other)
    parts = 1 / 3, (35 / 12) / 4
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3)
    assert freedom == pytest.approx(4.86, abs=0.02)
    assert found.mean == pytest.approx(4.75)
    assert (found.high - found.low) / 2 == pytest.approx(intervals.student(4) * math.sqrt(sum(parts)))
    back = intervals.of_difference(other, one)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))


def test_samples_of_the_same_size_and_deviation_have_all_degrees_of_freedom():
    found = intervals.of_difference([1.0, 2, 3], [11.0, 12, 13])
    assert (found.high - found.low) / 2 == pytest.approx(intervals.student(4) * math.sqrt(2 / 3))


def test_samples_without_deviation_differ_by_their_difference():
    assert intervals.of_difference([1.0, 1], [3.0, 3, 3]) == (2, 2, 2)
    assert intervals.of_difference([1.0, 1], [1.0, 1]) == (0, 0, 0)


def test_a_quotient_is_a_difference_in_the_logarithm():
    found = intervals.of_quotient([1.0, 2, 4], [10.0, 20, 40])
    assert found.mean == pytest.approx(10)
    assert found.low * found.high == pytest.approx(100)
    with pytest.raises(ValueError, match="more than 0"):
        intervals.of_quotient([0.0, 1], [1.0, 2])
    with pytest.raises(ValueError, match="two samples of each"):
        intervals.of_difference([1.0], [1.0, 2])

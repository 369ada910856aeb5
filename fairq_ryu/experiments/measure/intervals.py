"""Means of repetitions with their 95 % confidence intervals, as pure functions.

Student's t distribution: repetitions are few and independent, each on a network of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fairq_ryu.experiments.measure import stats

# The 97.5 % points of Student's t for 1, 2, ... 30 degrees of freedom.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.960


class Interval(NamedTuple):
    """A mean and the bounds of its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def student(freedom: int) -> float:
    """The 97.5 % point of Student's t with ``freedom`` degrees of freedom, 1 or more.

    Above 30 it is within 0.1 %.
    """
    if freedom < 1:
        raise ValueError("an interval needs two samples")
    if freedom <= len(_T):
        return _T[freedom - 1]
    return _NORMAL + 2.4 / freedom  # the first term of the expansion in 1 / freedom


def half_width(samples: Sequence[float]) -> float:
    """Half of the 95 % confidence interval of the mean. ``ValueError`` on fewer than two samples."""
    return student(len(samples) - 1) * stats.deviation(samples) / math.sqrt(len(samples))


def of_mean(samples: Sequence[float]) -> Interval:
    """The arithmetic mean and its interval. ``ValueError`` on fewer than two samples."""
    mean, half = stats.mean(samples), half_width(samples)
    return Interval(mean, mean - half, mean + half)


def of_ratio(samples: Sequence[float]) -> Interval:
    """The geometric mean of ratios and its interval, which is symmetric in the logarithm: 2 and 1/2 have the
    same distance from 1. ``ValueError`` on fewer than two samples, or one that is not above 0.
    """
    if min(samples) <= 0:
        raise ValueError("a ratio must be more than 0")
    return Interval(*(math.exp(each) for each in of_mean([math.log(each) for each in samples])))


def of_difference(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The mean of ``other`` less that of ``one``, and its interval, of independent samples whose deviations
    may differ (Welch). Without any deviation the interval is the difference alone. ``ValueError`` on fewer
    than two samples in one of them.
    """
    if min(len(one), len(other)) < 2:
        raise ValueError("an interval needs two samples of each")
    difference = stats.mean(other) - stats.mean(one)
    parts = [stats.deviation(each) ** 2 / len(each) for each in (one, other)]
    if not sum(parts):
        return Interval(difference, difference, difference)
    # Welch and Satterthwaite's number of degrees of freedom, rounded down: the interval is not too short.
    weights = [part**2 / (len(each) - 1) for part, each in zip(parts, (one, other), strict=True)]
    half = student(max(1, math.floor(sum(parts) ** 2 / sum(weights)))) * math.sqrt(sum(parts))
    return Interval(difference, difference - half, difference + half)


def of_quotient(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The geometric mean of ``other`` over that of ``one``, and its interval, as `of_difference` in the
    logarithm. ``ValueError`` on fewer than two samples in one of them, or one that is not above 0.
    """
    if min(*one, *other) <= 0:
        raise ValueError("a ratio must be more than 0")
    logarithms = [[math.log(each) for each in samples] for samples in (one, other)]
    return Interval(*(math.exp(each) for each in of_difference(*logarithms)))

"""Figures of repeated measurements: the median and the range. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], form: str) -> str:
    """Median, lowest and highest, each in the format ``form``: ``1200 (1100 to 1250)``."""
    middle, low, high = (format(f(values), form) for f in (statistics.median, min, max))
    return f"{middle} ({low} to {high})"


def ratios(own: Sequence[float], base: Sequence[float]) -> list[float]:
    """Each value divided by the baseline of the same round, because noise affects neighbouring measurements
    equally.
    """
    return [mine / theirs for mine, theirs in zip(own, base, strict=True)]


def share(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent: ``12 %``. A small part is shown as ``<1 %``, not as 0."""
    percent = 100 * part / whole if whole else 0.0
    return "<1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The bounds of a 95 % confidence interval of the median, whatever the distribution: so many values are
    left out at each end that the median is beyond them with a probability of at most 2.5 %. ``ValueError`` on
    fewer than six values.
    """
    ordered, number = sorted(values), len(values)
    left_out, beyond = 0, 1  # of 2**number equally probable cases
    while 40 * beyond <= 2**number:
        left_out += 1
        beyond += math.comb(number, left_out)
    if not left_out:
        raise ValueError("an interval of the median needs six values")
    return ordered[left_out - 1], ordered[-left_out]

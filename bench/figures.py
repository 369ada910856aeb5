"""Figures of repeated measurements: the median and the range. Pure."""

from __future__ import annotations

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

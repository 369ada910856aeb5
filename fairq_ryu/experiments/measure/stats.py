"""Statistics of a run, as pure functions: samples, fairness, time at each queue depth."""

from __future__ import annotations

import math
from collections.abc import Sequence

Histogram = Sequence[tuple[float, float, float]]
"""(lower bytes, upper bytes, weight) of adjoining ranges, lowest first; the weight is time in ns."""


def mean(samples: Sequence[float]) -> float:
    """Arithmetic mean. ``ValueError`` on no samples."""
    if not samples:
        raise ValueError("mean of nothing")
    return math.fsum(samples) / len(samples)


def deviation(samples: Sequence[float]) -> float:
    """Standard deviation of the sample (n - 1); 0 for a single one. ``ValueError`` on none."""
    centre = mean(samples)
    if len(samples) == 1:
        return 0.0
    return math.sqrt(math.fsum((each - centre) ** 2 for each in samples) / (len(samples) - 1))


def percentile(samples: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of the samples lie, straight lines between neighbours.

    Defined as numpy does and ``statistics.quantiles(method="inclusive")``. ``ValueError`` on none.
    """
    if not samples:
        raise ValueError("percentile of nothing")
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}, must be 0 to 1")
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def fct_summary(times_ms: Sequence[float]) -> dict[str, float] | None:
    """Count, mean, sd, p50, p95, p99, max of completion times; None without any."""
    if not times_ms:
        return None
    return {
        "count": len(times_ms),
        "mean": mean(times_ms),
        "sd": deviation(times_ms),
        "p50": percentile(times_ms, 0.50),
        "p95": percentile(times_ms, 0.95),
        "p99": percentile(times_ms, 0.99),
        "max": max(times_ms),
    }


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index, from 1/n (one has all) to 1 (all equal); 1 when all are 0.

    ``ValueError`` on no shares or a negative one.
    """
    if not shares or min(shares) < 0:
        raise ValueError("Jain's index needs shares of 0 or more")
    # Scaled by the largest, so that tiny shares do not vanish when squared.
    largest = max(shares)
    if largest == 0:
        return 1.0
    scaled = [each / largest for each in shares]
    return math.fsum(scaled) ** 2 / (len(scaled) * math.fsum(each * each for each in scaled))


def time_percentile(histogram: Histogram, share: float) -> float | None:
    """The depth not exceeded for ``share`` (0 to 1) of the time, straight lines within a range.

    None when no time passed.
    """
    total = math.fsum(weight for _low, _high, weight in histogram)
    if total <= 0:
        return None
    wanted = share * total
    passed = 0.0
    for low, high, weight in histogram:
        if weight > 0 and passed + weight >= wanted:
            return low + (high - low) * max(0.0, wanted - passed) / weight
        passed += weight
    return max(high for _low, high, weight in histogram if weight > 0)


def histogram_difference(before: Histogram, after: Histogram) -> list[tuple[float, float, float]]:
    """The increase between two readings of a cumulative histogram. New ranges in ``after`` count from 0."""
    earlier = {(low, high): weight for low, high, weight in before}
    return [(low, high, weight - earlier.get((low, high), 0)) for low, high, weight in after]

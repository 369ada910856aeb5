"""What a soak has found: whether memory is flat, counts are true and logs are short. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from fairq_ryu.experiments.measure import intervals
from fairq_ryu.experiments.measure.intervals import Interval

WARM_UP = 0.2
"""The part of the time that is not judged: caches fill, and what is used for the first time is loaded."""
GROWTH, MORE = 0.02, 1.0
"""Memory is flat if the median of its last quarter is at most so much above that of the first: this part, and
MB."""
DRIFT = 0.5
"""The agent's count of active flows has not drifted if the mean of its difference from the recount changes by
less from the first half to the last. On a slow machine the difference is noisy: the 95 % interval decides."""
LOG_BYTES = 16_384
"""A log may grow by so much in an hour, and by a quarter of it in any case."""


class Sample(NamedTuple):
    """At a time, seconds since the start."""

    at: float
    value: float


class Change(NamedTuple):
    """The medians of the first and the last quarter, and how fast a straight line through all rises, per
    hour.
    """

    first: float
    last: float
    slope: float


def judged(samples: Sequence[Sample], whole: float) -> list[Sample]:
    """Those after the warm-up of a soak of ``whole`` seconds."""
    return [each for each in samples if each.at >= WARM_UP * whole]


def change(samples: Sequence[Sample]) -> Change:
    """Of a quantity. ValueError: there are less than four samples."""
    quarter = len(samples) // 4
    if not quarter:
        raise ValueError(f"{len(samples)} samples are too few: soak for longer")
    values = [each.value for each in samples]
    line = statistics.linear_regression([each.at for each in samples], values)
    return Change(
        statistics.median(values[:quarter]), statistics.median(values[-quarter:]), line.slope * 3600
    )


def is_flat(memory: Change) -> bool:
    """Of a program, MB."""
    return memory.last <= memory.first * (1 + GROWTH) + MORE


def drift(difference: Sequence[Sample]) -> Interval:
    """By how much the difference of the agent's count and the recount has changed."""
    middle = len(difference) // 2
    values = [each.value for each in difference]
    return intervals.of_difference(values[:middle], values[middle:])


def has_drifted(change: Interval) -> bool | None:
    """Whether this is a drift; None: these samples cannot tell."""
    if change.low > -DRIFT and change.high < DRIFT:
        return False
    return True if change.low >= DRIFT or change.high <= -DRIFT else None


def log_bound(seconds: float) -> float:
    """The most bytes by which a log may grow."""
    return LOG_BYTES * max(0.25, seconds / 3600)

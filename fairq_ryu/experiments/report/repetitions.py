"""Several repetitions of a run as one: every figure's mean, and half of its 95 % confidence interval.

Pure functions over the figures that `result` documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure import intervals, stats

LISTS = frozenset({"fct_list_ms", "last_byte_list_ms", "runs"})
"""Lists of samples: the merged list has those of all repetitions."""
COUNTED = frozenset({"errors"})
"""Objects of counts by name: a missing name counts as 0."""

Figures = Mapping[str, Any]


def order(policies: Sequence[str], repetition: int) -> list[str]:
    """The order in which the policies run in this repetition, counted from 0: rotated by one each time, so
    that no policy is always the first on a machine whose speed changes over time.
    """
    first = repetition % len(policies) if policies else 0
    return [*policies[first:], *policies[:first]]


def merge(repetitions: Sequence[Figures]) -> dict[str, Any]:
    """One policy's figures of all repetitions: means, and in ``interval`` the half-widths, in the same shape.

    A policy that failed once has failed. Of a single repetition the figures are as they are, without
    ``interval``.
    """
    if not repetitions:
        raise ValueError("no repetition to merge")
    for number, each in enumerate(repetitions, 1):
        if each.get("failed"):
            why = each["failed"] if len(repetitions) == 1 else f"repetition {number}: {each['failed']}"
            return {"policy": each["policy"], "failed": why}
    if len(repetitions) == 1:
        return dict(repetitions[0])
    mean, half = _objects(repetitions)
    return {**mean, "interval": half}


def _objects(each: Sequence[Figures], counted: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = list(dict.fromkeys(key for figures in each for key in figures))
    mean: dict[str, Any] = {}
    half: dict[str, Any] = {}
    for key in keys:
        values = [figures.get(key, 0 if counted else None) for figures in each]
        mean[key], within = _values(key, values)
        if within is not None:
            half[key] = within
    return mean, half


def _values(key: str, values: Sequence[Any]) -> tuple[Any, Any]:
    """The mean of one figure, and its half-width; None for what has no mean."""
    there = [value for value in values if value is not None]
    if not there:
        return None, None
    if all(isinstance(value, Mapping) for value in there):
        if len(there) < len(values) and key not in COUNTED:
            return None, None
        return _objects(there, key in COUNTED)
    if all(isinstance(value, list) for value in there):
        if len(there) < len(values) and key not in LISTS:
            return None, None
        return _lists(key, there)
    if any(isinstance(value, (bool, str)) for value in there):
        same = all(value == there[0] for value in there)
        return (there[0] if same else ", ".join(sorted({str(value) for value in there}))), None
    if all(value == there[0] for value in there) and len(there) == len(values):
        return there[0], 0.0  # a whole number stays one
    if len(there) < len(values):
        return None, None  # a mean of some repetitions only would be biased
    return stats.mean(there), intervals.half_width(there)


def _lists(key: str, values: Sequence[list[Any]]) -> tuple[list[Any], list[Any] | None]:
    if key in LISTS:
        return [member for value in values for member in value], None
    if key == "histogram":
        return _histogram(values), None
    # A member at one index is the same in each repetition: a number of flows, an elephant.
    members = [_values("", list(place)) for place in zip(*values, strict=True)]
    return [mean for mean, _half in members], [half for _mean, half in members]


def _histogram(values: Sequence[list[Any]]) -> list[Any]:
    total: dict[tuple[float, float], float] = {}
    for value in values:
        for low, high, weight in value:
            total[low, high] = total.get((low, high), 0) + weight
    return [[low, high, weight] for (low, high), weight in sorted(total.items())]


def compared(
    comparisons: Sequence[Mapping[str, Mapping[str, float | None]]],
) -> tuple[dict[str, dict[str, float | None]], dict[str, dict[str, list[float]]]]:
    """Ratios of all repetitions, each within its own repetition: their means, and the 95 % confidence
    intervals ``[low, high]`` of those that every repetition has, both by policy and name.

    Times lower and sooner are averaged in the logarithm, shares as they are.
    """
    means: dict[str, dict[str, float | None]] = {}
    bounds: dict[str, dict[str, list[float]]] = {}
    if not comparisons:
        return means, bounds
    for policy, ratios in comparisons[0].items():
        means[policy], bounds[policy] = {}, {}
        for name in ratios:
            values = [each.get(policy, {}).get(name) for each in comparisons]
            there = [value for value in values if value is not None]
            if len(there) < len(values):
                means[policy][name] = None
            elif len(there) == 1:
                means[policy][name] = there[0]
            else:
                geometric = name.endswith("_times_lower") and min(there) > 0
                mean, low, high = (intervals.of_ratio if geometric else intervals.of_mean)(there)
                means[policy][name], bounds[policy][name] = mean, [low, high]
    return means, bounds

"""Flows that have not finished: their times are in no figure of a result. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TIMES = ("fct_ms", "slowdown")
"""Figures of the flows that have finished, beside the number of those that have not."""
_ASIDE = ("mice_left_out", "interval")
"""Flows of volleys that no figure is made of, and half-widths of confidence intervals."""


def remark(policy: Mapping[str, Any]) -> str | None:
    """A sentence on flows whose times are in no figure, because they have not finished; None without any."""
    flows = _unfinished(policy)
    return (
        f"{policy['policy']}: {flows:.3g} flows of a repetition have not finished, and no mean, percentile "
        "or maximum of times has them"
        if flows
        else None
    )


def _unfinished(figures: Mapping[str, Any]) -> float:
    own = figures.get("unfinished") or 0 if "fct_ms" in figures else 0
    groups = (each for key, each in figures.items() if isinstance(each, Mapping) and key not in _ASIDE)
    return own + sum(map(_unfinished, groups))


def matters(policy: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether the figure at ``path`` is one of times that would be another if all flows had finished: a
    percentile is known as long as no more are missing than it leaves above it.
    """
    times = next((place for place, step in enumerate(path) if step in TIMES), None)
    if times is None:
        return False
    figures: Any = policy
    for step in path[:times]:
        figures = figures[step]
    name = path[-1]
    unfinished = figures.get("unfinished") or 0
    leaves = (100 - int(name[1:])) / 100 if name[:1] == "p" and name[1:].isdigit() else 0.0
    return bool(unfinished > leaves * (figures.get("count") or 0))

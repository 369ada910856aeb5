"""Flows that have not finished: their times are in no figure of a result. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_ASIDE = "mice_left_out"
"""Flows of volleys that no figure is made of."""


def remark(policy: Mapping[str, Any]) -> str | None:
    """A sentence on flows whose times are in no figure, because they have not finished; None without any."""
    flows = _unfinished(policy)
    return (
        f"{policy['policy']}: {flows:g} flows have not finished, and no mean, percentile or maximum of times "
        "has them"
        if flows
        else None
    )


def _unfinished(figures: Mapping[str, Any]) -> float:
    own = figures.get("unfinished") or 0 if "fct_ms" in figures else 0
    groups = (each for key, each in figures.items() if isinstance(each, Mapping) and key != _ASIDE)
    return own + sum(map(_unfinished, groups))


def matters(policy: Mapping[str, Any], group: Sequence[str], name: str) -> bool:
    """Whether a figure of the times of a group of flows (its path) would be another if all had finished: a
    percentile is known as long as no more are missing than it leaves above it.
    """
    figures: Any = policy
    for step in group:
        figures = figures[step]
    unfinished = figures.get("unfinished") or 0
    leaves = (100 - int(name[1:])) / 100 if name[:1] == "p" and name[1:].isdigit() else 0.0
    return bool(unfinished > leaves * (figures.get("count") or 0))

"""The pictures of flows of published sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fairq_ryu.experiments.workloads.common import pictures as common
from fairq_ryu.experiments.workloads.common.pictures import Picture, Policy, Shown
from fairq_ryu.experiments.workloads.empirical.figures import limits_of

_NAME = "empirical"


def _slowdown(part: str, axes: Any, shown: Sequence[Shown], scenario: Mapping[str, Any]) -> None:
    """The slowdown by size, a point for the flows between two points of the published distribution."""
    for each in shown:
        parts = [one for one in each.figures[_NAME]["by_size"] if one["slowdown"]]
        axes.plot(
            [one["mean_bytes"] / 1e3 for one in parts],
            [one["slowdown"][part] for one in parts],
            marker="o",
            markersize=4,
            **each.curve,
        )
    for limit in limits_of(scenario["size_divisor"]):
        axes.axvline(limit / 1e3, color="0.5", linewidth=1)
    common.logarithmic(axes.xaxis)
    common.logarithmic(axes.yaxis)
    axes.set_xlabel("flow size [kB]; the lines are the limits of small and large flows")
    axes.set_ylabel(f"slowdown, {part}")
    common.key(axes)


def _has_sizes(policy: Policy) -> Any:
    return any(one["slowdown"] for one in (policy.get(_NAME) or {}).get("by_size", []))


PICTURES = (
    Picture("slowdown_p50", "Median slowdown by flow size", _has_sizes, partial(_slowdown, "p50")),
    Picture("slowdown_p99", "Slowdown by flow size, p99", _has_sizes, partial(_slowdown, "p99")),
    common.QUEUE,
)

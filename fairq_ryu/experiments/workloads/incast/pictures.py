"""The pictures of an incast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.workloads.common import pictures as common
from fairq_ryu.experiments.workloads.common.pictures import Picture, Policy, Shown


def _has_times(policy: Policy) -> Any:
    return policy.get("mice") and policy["mice"]["fct_ms"]


def _cdf(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Share of the mice that have finished by a time; unfinished ones keep a curve below 1."""
    for each in shown:
        times = each.figures["mice"]["fct_list_ms"]
        common.distribution(axes, each, [value for value in times if value is not None], len(times))
    common.logarithmic(axes.xaxis)
    axes.set_xlabel("completion time of mice [ms]")
    axes.set_ylabel("share of mice")
    common.key(axes)


def _p99(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """The tail of the completion times of mice, a line for each policy: names may be long."""
    values = [each.figures["mice"]["fct_ms"]["p99"] for each in shown]
    # Dots: a bar on a logarithmic axis has no true length.
    for place, (each, value) in enumerate(zip(shown, values, strict=True)):
        axes.plot(value, place, "o", markersize=6, color=each.colour)
        axes.annotate(
            f"{value:,.1f}", (value, place), (6, 0), textcoords="offset points", va="center", ha="left"
        )
    axes.set_yticks(range(len(shown)), [each.name.replace(" (", "\n(") for each in shown], fontsize="small")
    axes.set_ylim(len(shown) - 0.4, -0.6)  # the first is at the top
    axes.set_xlim(
        10 ** math.floor(math.log10(min(values) / 1.5)), 10 ** math.ceil(math.log10(max(values) * 4))
    )
    common.logarithmic(axes.xaxis)
    axes.set_xlabel("p99 completion time of mice [ms]")
    axes.grid(axis="y", visible=False)


CDF = Picture("fct_cdf", "Completion times of mice", _has_times, _cdf, counted=True)
P99 = Picture("fct_p99", "Tail of the completion times", _has_times, _p99, counted=True)
PICTURES = (CDF, P99, common.QUEUE, *common.ELEPHANTS)

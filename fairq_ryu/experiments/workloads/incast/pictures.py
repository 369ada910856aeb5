"""The pictures of an incast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from fairq_ryu.experiments.workloads.common.pictures import (
    ELEPHANTS,
    QUEUE,
    Picture,
    Policy,
    look,
    new_figure,
)


def cdf(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Share of the mice that have finished by a time; unfinished ones keep a curve below 1."""
    shown = [each for each in policies if each.get("mice") and each["mice"]["fct_ms"]]
    if not shown:
        return None
    figure, axes = new_figure()
    for each in shown:
        times = each["mice"]["fct_list_ms"]
        finished = sorted(value for value in times if value is not None)
        shares = [(rank + 1) / len(times) for rank in range(len(finished))]
        axes.step(
            finished, shares, where="post", label=each["policy"], linewidth=2, **look(policies.index(each))
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("completion time of mice [ms]")
    axes.set_ylabel("share of mice")
    axes.legend()
    return figure


def p99(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """The tail of the completion times of mice."""
    shown = [each for each in policies if each.get("mice") and each["mice"]["fct_ms"]]
    if not shown:
        return None
    figure, axes = new_figure()
    values = [each["mice"]["fct_ms"]["p99"] for each in shown]
    # Dots: a bar on a logarithmic axis has no true length.
    for place, (each, value) in enumerate(zip(shown, values, strict=True)):
        axes.plot(place, value, "o", markersize=11, color=look(policies.index(each))["color"])
        axes.annotate(
            f"{value:,.1f}", (place, value), (11, 0), textcoords="offset points", va="center", ha="left"
        )
    axes.set_xticks(range(len(shown)), [each["policy"] for each in shown])
    axes.set_xlim(-0.6, len(shown) - 0.4)
    axes.set_yscale("log")
    axes.set_ylim(
        10 ** math.floor(math.log10(min(values) / 1.5)), 10 ** math.ceil(math.log10(max(values) * 1.5))
    )
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_ylabel("p99 completion time of mice [ms]")
    axes.grid(axis="x", visible=False)
    return figure


PICTURES = (
    Picture("fct_cdf", "Completion times of mice", counted=True, draw=cdf),
    Picture("fct_p99", "Tail of the completion times", counted=True, draw=p99),
    QUEUE,
    *ELEPHANTS,
)

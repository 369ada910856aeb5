"""The pictures of a report: what is drawn of an incast, and how every picture looks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by every eye and in print; the line styles help in grey.
_COLOURS = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_LINES = ["-", "--", "-.", ":"]
_SIZE = (6.4, 4.0)  # inches
STYLE = {"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "fairq", "pdf.fonttype": 42}

Policy = Mapping[str, Any]


def new_figure() -> tuple[Figure, Any]:
    """A figure and its axes."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.add_subplot()


def look(place: int) -> dict[str, Any]:
    """Colour and line of the policy at ``place``."""
    return {"color": _COLOURS[place % len(_COLOURS)], "linestyle": _LINES[place % len(_LINES)]}


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


def queue(policies: Sequence[Policy], scenario: Mapping[str, Any]) -> Figure | None:
    """Share of the time at which the bottleneck's queue was no deeper than so many bytes."""
    shown = [each for each in policies if each["queue"]["rounds"] and each["queue"]["rounds"]["histogram"]]
    if not shown:
        return None
    figure, axes = new_figure()
    for each in shown:
        histogram = each["queue"]["rounds"]["histogram"]
        total = sum(ns for _low, _high, ns in histogram)
        depths, shares, passed = [histogram[0][0] / 1000], [0.0], 0.0
        for _low, high, ns in histogram:
            passed += ns
            depths.append(high / 1000)
            shares.append(passed / total)
        axes.plot(depths, shares, label=each["policy"], linewidth=2, **look(policies.index(each)))
    axes.axvline(scenario["buffer_bytes"] / 1000, color="0.5", linewidth=1)
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("bottleneck queue [kB]; the line is the buffer")
    axes.set_ylabel("share of time")
    axes.legend()
    return figure


def goodput(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Goodput of each elephant."""
    shown = [each for each in policies if each.get("elephants")]
    if not shown:
        return None
    figure, axes = new_figure()
    width = 0.8 / len(shown)
    for place, each in enumerate(shown):
        values = each["elephants"]["goodput_mbit"]
        axes.bar(
            [number + 1 + (place - (len(shown) - 1) / 2) * width for number in range(len(values))],
            values,
            width=width,
            color=look(policies.index(each))["color"],
            label=f"{each['policy']}: {sum(values):.1f} in sum, Jain's index {each['elephants']['jain']:.3f}",
        )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("elephant")
    axes.set_ylabel("goodput [Mbit/s]")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", fontsize="small")
    return figure

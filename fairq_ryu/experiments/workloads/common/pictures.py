"""How pictures of a report look, and the pictures that several workloads have.

Needs matplotlib, which takes a second to load: only a report imports pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

# Okabe and Ito's colours, which readers with any colour vision can distinguish; line styles help in grey.
_COLOURS = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_LINES = ["-", "--", "-.", ":"]
_SIZE = (6.4, 4.0)  # inches
STYLE = {"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "fairq", "pdf.fonttype": 42}

Policy = Mapping[str, Any]
Draw = Callable[[Sequence[Policy], Mapping[str, Any]], Figure | None]
"""Draws the figures of all policies that did not fail, from these and the scenario; None without any."""


class Picture(NamedTuple):
    """A picture of a report."""

    name: str
    """of its files"""
    caption: str
    counted: bool
    """whether it shows the counted rounds only, and not the whole phase"""
    draw: Draw


def new_figure() -> tuple[Figure, Any]:
    """A figure and its axes."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.add_subplot()


def look(place: int) -> dict[str, Any]:
    """Colour and line style of the policy with this index."""
    return {"color": _COLOURS[place % len(_COLOURS)], "linestyle": _LINES[place % len(_LINES)]}


def queue(policies: Sequence[Policy], scenario: Mapping[str, Any]) -> Figure | None:
    """Share of the time in which the bottleneck's queue was at most this deep."""
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


def phases(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Goodput of all elephants before, during and after mice or a flood."""
    names = [("before", "alone_sum_mbit"), ("during", "goodput_sum_mbit"), ("after", "after_sum_mbit")]
    shown = [each for each in policies if (each.get("elephants") or {}).get("after_sum_mbit") is not None]
    if not shown:
        return None
    figure, axes = new_figure()
    width = 0.8 / len(shown)
    for place, each in enumerate(shown):
        bars = axes.bar(
            [number + (place - (len(shown) - 1) / 2) * width for number in range(len(names))],
            [each["elephants"][key] or 0 for _name, key in names],
            width=width,
            color=look(policies.index(each))["color"],
            label=each["policy"],
        )
        axes.bar_label(bars, fmt="%.0f", padding=2)
    axes.set_xticks(range(len(names)), [name for name, _key in names])
    axes.set_ylabel("goodput of all elephants [Mbit/s]")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=len(shown), fontsize="small")
    return figure


QUEUE = Picture(
    "queue", "Time at each depth of the bottleneck's queue, during the rounds", counted=False, draw=queue
)
GOODPUT = Picture("goodput", "Goodput of the elephants", counted=False, draw=goodput)
PHASES = Picture(
    "phases", "Goodput of all elephants before, during and afterwards", counted=False, draw=phases
)
ELEPHANTS = (GOODPUT, PHASES)
"""Of the elephants of any workload."""

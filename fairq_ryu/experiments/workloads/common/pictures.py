"""How pictures of a report look, and the pictures that several workloads have.

A picture draws the policies that have its figures; without any there is no picture. Needs matplotlib, which
takes a second to load: only a report imports pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from fairq_ryu.experiments.workloads.common.naming import buffers, name

# Okabe and Ito's colours, which readers with any colour vision can distinguish; line styles help in grey.
_COLOURS = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_LINES = ["-", "--", "-.", ":"]
_SIZE, _LINES_IN_SIZE, _LINE = (3.4, 2.5), 3, 0.15
"""Inches of a picture of so many policies at most, and of a line for each further one. It is as wide as a
column of a paper, so that its letters stay as large as they are here.
"""
STYLE = {"font.size": 8, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "fairq", "pdf.fonttype": 42}
# Part of the distance between two groups of bars that the bars of a group take together.
_BARS = 0.8

_FEW = 100
"""An axis whose end is less than so many times its beginning has numbers between powers of ten, too."""

Policy = Mapping[str, Any]


class Shown(NamedTuple):
    """A policy in a picture."""

    figures: Policy
    colour: str
    line: str
    name: str
    """of the policy, with its queue law and its TCP"""

    @property
    def curve(self) -> dict[str, Any]:
        """The options of a curve of this policy."""
        return {"label": self.name, "color": self.colour, "linestyle": self.line, "linewidth": 1.5}


def shown(policies: Sequence[tuple[Policy, str]]) -> list[Shown]:
    """Figures and names of policies, with a colour and a line for each."""
    return [
        Shown(figures, _COLOURS[place % len(_COLOURS)], _LINES[place % len(_LINES)], name)
        for place, (figures, name) in enumerate(policies)
    ]


Draw = Callable[[Any, Sequence[Shown], Mapping[str, Any]], None]
"""Draws the figures of the policies on axes; the last argument is the scenario."""


class Picture(NamedTuple):
    """A picture of a report."""

    name: str
    """of its files"""
    caption: str
    shows: Callable[[Policy], Any]
    """whether a policy has the figures that it draws"""
    draw: Draw
    counted: bool = False
    """whether it shows the counted rounds only, and not the whole phase"""

    def figure(self, policies: Sequence[Policy], scenario: Mapping[str, Any]) -> Figure | None:
        """Draw the policies, none of which failed; None if none has the figures."""
        drawn = shown([(each, name(each)) for each in policies])
        drawn = [each for each in drawn if self.shows(each.figures)]
        if not drawn:
            return None
        width, height = _SIZE
        height += _LINE * max(0, len(drawn) - _LINES_IN_SIZE)
        figure = Figure(figsize=(width, height), layout="constrained")
        self.draw(figure.add_subplot(), drawn, scenario)
        return figure


def key(axes: Any) -> None:
    """The key of a picture, above it: names are long, and would cover curves."""
    axes.figure.legend(loc="outside upper center", fontsize="small")


def logarithmic(axis: Any) -> None:
    """The scale of an axis on which everything has been drawn, with numbers that do not touch each other."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < _FEW * low else (1.0,)))
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter("")


def distribution(axes: Any, policy: Shown, values: Sequence[float], total: int) -> None:
    """The share of ``total`` that is at most a value; values that are missing keep the curve below 1."""
    shares = [(rank + 1) / total for rank in range(len(values))]
    axes.step(sorted(values), shares, where="post", **policy.curve)
    axes.set_ylim(0, 1.01)


def offset(place: int, count: int) -> float:
    """Distance from the middle of a group to the bar with this index, one of ``count``."""
    return (place - (count - 1) / 2) * _BARS / count


def bars(
    axes: Any,
    shown: Sequence[Shown],
    values: Callable[[Policy], Sequence[float]],
    label: Callable[[Policy], str],
    first: int = 1,
) -> list[Any]:
    """Groups of bars at ``first`` and the numbers after it, a bar of each policy in each group; returns the
    bars of each policy.
    """
    drawn = []
    for place, each in enumerate(shown):
        heights = values(each.figures)
        drawn.append(
            axes.bar(
                [number + first + offset(place, len(shown)) for number in range(len(heights))],
                heights,
                width=_BARS / len(shown),
                color=each.colour,
                label=f"{each.name}{label(each.figures)}",
            )
        )
    axes.grid(axis="x", visible=False)
    return drawn


def _queue(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Share of the time in which the bottleneck's queue was at most this deep."""
    for each in shown:
        histogram = each.figures["queue"]["rounds"]["histogram"]
        total = sum(ns for _low, _high, ns in histogram)
        depths, shares, passed = [histogram[0][0] / 1000], [0.0], 0.0
        for _low, high, ns in histogram:
            passed += ns
            depths.append(high / 1000)
            shares.append(passed / total)
        axes.plot(depths, shares, **each.curve)
    sizes = buffers([each.figures for each in shown])
    for size in sizes:
        axes.axvline(size / 1000, color="0.5", linewidth=1)
    axes.set_ylim(0, 1.01)
    lines = "the line is the buffer" if len(sizes) == 1 else "the lines are the buffers"
    axes.set_xlabel(f"bottleneck queue [kB]; {lines}")
    axes.set_ylabel("share of time")
    key(axes)


def _goodput(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Goodput of each elephant."""

    def label(policy: Policy) -> str:
        elephants = policy["elephants"]
        return f": {sum(elephants['goodput_mbit']):.1f} in sum, Jain's index {elephants['jain']:.3f}"

    bars(axes, shown, lambda policy: policy["elephants"]["goodput_mbit"], label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("elephant")
    axes.set_ylabel("goodput [Mbit/s]")
    key(axes)


def _phases(axes: Any, shown: Sequence[Shown], _scenario: Mapping[str, Any]) -> None:
    """Goodput of all elephants before, during and after mice or a flood."""
    phases = {"before": "alone_sum_mbit", "during": "goodput_sum_mbit", "after": "after_sum_mbit"}

    def goodputs(policy: Policy) -> list[float]:
        return [policy["elephants"][key] or 0 for key in phases.values()]

    for drawn in bars(axes, shown, goodputs, lambda _policy: "", first=0):
        axes.bar_label(drawn, fmt="%.0f", padding=2, fontsize="small")
    axes.margins(y=0.12)
    axes.set_xticks(range(len(phases)), phases)
    axes.set_ylabel("goodput of\nall elephants [Mbit/s]")
    key(axes)


QUEUE = Picture(
    "queue",
    "Time at each depth of the bottleneck's queue, during the rounds",
    shows=lambda policy: policy["queue"]["rounds"] and policy["queue"]["rounds"]["histogram"],
    draw=_queue,
)
GOODPUT = Picture(
    "goodput",
    "Goodput of the elephants",
    shows=lambda policy: policy.get("elephants"),
    draw=_goodput,
)
PHASES = Picture(
    "phases",
    "Goodput of all elephants before, during and afterwards",
    shows=lambda policy: (policy.get("elephants") or {}).get("after_sum_mbit") is not None,
    draw=_phases,
)
ELEPHANTS = (GOODPUT, PHASES)
"""Of the elephants of any workload."""

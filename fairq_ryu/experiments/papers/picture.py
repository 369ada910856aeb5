"""The picture of the claims: how far our values are from what is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairq_ryu.experiments.papers.plan import Claim
from fairq_ryu.experiments.papers.verdict import AGREES, DIFFERS, UNKNOWN, Verdict

CAPTION = (
    "Our value of each claim over its bound, with the 95 % confidence interval; right of the line it is"
    " as claimed. Claims with two bounds, with a bound of 0 or with values of 0 are in the tables only."
)
_WIDTH, _HEADROOM, _LINE = 3.4, 0.9, 0.16
"""Inches."""
_MARKS = {AGREES: ("o", "#009E73"), DIFFERS: ("X", "#D55E00"), UNKNOWN: ("D", "#666666")}
"""A shape and one of Okabe and Ito's colours for each verdict."""


class _Shown(NamedTuple):
    label: str
    word: str
    times: float
    low: float
    high: float


def claims(judged: Sequence[tuple[Claim, Verdict]]) -> Figure | None:
    """The picture; None without a claim that can be drawn."""
    drawn = [shown for claim, verdict in judged if (shown := _shown(claim, verdict)) is not None]
    if not drawn:
        return None
    figure = Figure(figsize=(_WIDTH, _HEADROOM + _LINE * len(drawn)), layout="constrained")
    axes = figure.add_subplot()
    for place, each in enumerate(drawn):
        marker, colour = _MARKS[each.word]
        axes.plot([each.low, each.high], [place, place], color=colour, linewidth=1)
        axes.plot(each.times, place, marker=marker, color=colour, markersize=4, linestyle="")
    axes.axvline(1.0, color="0.3", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(drawn)), [each.label for each in drawn], fontsize="x-small")
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.set_xlabel("times the bound of the claim")
    key = [
        Line2D([], [], marker=marker, color=colour, linestyle="", markersize=4, label=word)
        for word, (marker, colour) in _MARKS.items()
    ]
    figure.legend(handles=key, loc="outside upper center", ncols=len(key), fontsize="small")
    return figure


def _shown(claim: Claim, verdict: Verdict) -> _Shown | None:
    claimed = claim.expression.claimed
    bound = claimed.low if claimed.high is None else claimed.high if claimed.low is None else None
    values = (verdict.value, verdict.low, verdict.high)
    if not bound or any(value is None or value <= 0 for value in values):
        return None
    mean, low, high = (value for value in values if value is not None)
    if claimed.low is None:
        mean, low, high = bound / mean, bound / high, bound / low
    else:
        mean, low, high = mean / bound, low / bound, high / bound
    return _Shown(f"{claim.id} {claim.short}", verdict.word, mean, low, high)

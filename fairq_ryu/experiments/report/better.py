"""Which of two policies is better in a figure, and which rivals beat our best policy. Pure functions.

A verdict is by the 95 % confidence interval of Welch's t-test over repetitions: of figures that are all above
0 it is that of their ratio, in the logarithm, of others that of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments import baselines
from fairq_ryu.experiments.measure import intervals, stats
from fairq_ryu.experiments.report import unfinished
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.rows import Headline, figure

NO_DIFFERENCE = "no difference that these repetitions can show"


class Side(NamedTuple):
    """One of the two: a policy of a result."""

    name: str
    whole: Mapping[str, Any]
    policy: str

    @property
    def figures(self) -> Mapping[str, Any]:
        """Those of all repetitions."""
        return of(self.whole["policies"], self.policy)

    def samples(self, path: Sequence[str]) -> list[float]:
        """A figure in each repetition; empty where one has none."""
        found = self._each(path)
        return [] if None in found else found

    def missing(self, path: Sequence[str]) -> tuple[int, int]:
        """How many repetitions do not have a figure, and how many there are."""
        found = self._each(path)
        return found.count(None), len(found)

    def _each(self, path: Sequence[str]) -> list[Any]:
        parts = self.whole["repetitions"] or [self.whole]
        return [figure(of(part["policies"], self.policy), path) for part in parts]


def of(policies: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The figures of a policy."""
    return next(each for each in policies if each["policy"] == name)


class Verdict(NamedTuple):
    """On a figure of two sides."""

    winner: int | None
    """0 or 1; None: these repetitions do not show one"""
    words: str
    """of a winner by how much, otherwise why there is none"""


def judge(headline: Headline, sides: tuple[Side, Side]) -> Verdict | None:
    """The verdict on a figure; None where one of the two does not have it."""
    row = headline.row
    one, other = (side.samples(row.path) for side in sides)
    if not one or not other:
        return None
    values = [_value(stats.mean(each), row.style, row.unit) for each in (one, other)]
    if min(len(one), len(other)) < 2:
        return Verdict(
            None, f"{values[0]} and {values[1]}; a single repetition shows no difference, --repeat 5 may"
        )
    ratio = min(*one, *other) > 0
    found = (intervals.of_quotient if ratio else intervals.of_difference)(one, other)
    same = 1.0 if ratio else 0.0
    if found.low <= same <= found.high:
        bounds = _times(found) if ratio else _by(found, row.style, row.unit)
        kind = "ratio" if ratio else "difference"
        return Verdict(None, f"{NO_DIFFERENCE}: {values[0]} and {values[1]}, {kind} {bounds}")
    more = found.mean > same
    winner = int(more == headline.more_is_better)
    if unfinished.matters(sides[winner].figures, row.path):
        return Verdict(None, f"cannot tell: {values[0]} and {values[1]}, of the flows that have finished")
    # Seen from the winner, so that a factor is above 1.
    seen = found if winner else (_inverse(found) if ratio else _negative(found))
    word = "higher" if headline.more_is_better else "lower"
    if ratio:
        how = f"{_times(seen if headline.more_is_better else _inverse(seen))} times {word}"
    else:
        how = f"{word} by {_by(seen if headline.more_is_better else _negative(seen), row.style, row.unit)}"
    return Verdict(winner, f"{values[winner]} instead of {values[1 - winner]}, {how}")


def rivals(whole: Mapping[str, Any]) -> str | None:
    """A sentence on the policies of a result that are not ours and better than our best one in the p99 or the
    mean of times, in missed deadlines, or else in the first headline; None without any. Of a single
    repetition the figures alone count.
    """
    headlines = registry.of_result(whole["scenario"]).table.headlines
    chosen = [each for each in headlines if each.row.path[-1] in ("p99", "mean", "missed")] or headlines[:1]
    told = [found for each in chosen if (found := _ahead(whole, each))]
    return f"Rivals win: {'; '.join(told)}." if told else None


def _ahead(whole: Mapping[str, Any], headline: Headline) -> str | None:
    """The rivals that are better than our best policy in a figure; None without any."""
    path, more = headline.row.path, headline.more_is_better
    sound = [each for each in whole["policies"] if not each["failed"] and not each["unsound"]]
    sides = [Side(each["policy"], whole, each["policy"]) for each in sound]
    sides = [side for side in sides if side.samples(path) and not unfinished.matters(side.figures, path)]
    ours = [side for side in sides if baselines.is_ours(side.policy)]
    if not ours:
        return None
    best = (max if more else min)(ours, key=lambda side: stats.mean(side.samples(path)))
    told = [
        f"{side.name} ({how})" for side in sides if side not in ours and (how := _won(headline, best, side))
    ]
    word = "higher" if more else "lower"
    than = f"{headline.row.label} is {word} than that of {best.name}, our best, under"
    return f"{than} {', '.join(told)}" if told else None


def _won(headline: Headline, best: Side, rival: Side) -> str | None:
    """By how much the figure of a rival is better than that of our best policy; None: it is not."""
    row = headline.row
    one, other = (side.samples(row.path) for side in (best, rival))
    if len(one) == 1:
        values = [_value(each[0], row.style, row.unit) for each in (other, one)]
        won = other[0] > one[0] if headline.more_is_better else other[0] < one[0]
        return f"{' instead of '.join(values)}; no interval, one repetition" if won else None
    verdict = judge(headline, (best, rival))
    return verdict.words if verdict is not None and verdict.winner == 1 else None


def _inverse(ratio: intervals.Interval) -> intervals.Interval:
    return intervals.Interval(1 / ratio.mean, 1 / ratio.high, 1 / ratio.low)


def _negative(difference: intervals.Interval) -> intervals.Interval:
    return intervals.Interval(-difference.mean, -difference.high, -difference.low)


def _times(ratio: intervals.Interval) -> str:
    mean, low, high = (f"{each:,.0f}" if each >= 100 else f"{each:.3g}" for each in ratio)
    return f"{mean} [{low}, {high}]"


def _by(difference: intervals.Interval, style: str, unit: str) -> str:
    mean, low, high = (_value(each, style, "") for each in difference)
    return f"{mean} [{low}, {high}]" + (f" {unit}" if unit else "")


def _value(value: float, style: str, unit: str) -> str:
    text = f"{value:,{'.1f' if style == 'd' else style}}"
    return f"{text} {unit}" if unit else text

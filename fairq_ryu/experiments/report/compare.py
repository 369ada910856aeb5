"""``fairq compare``: which of two is better in each headline figure, as far as their repetitions can show.

A verdict is by the 95 % confidence interval of Welch's t-test over repetitions: of figures that are all above
0 it is that of their ratio, in the logarithm, of others that of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import differences
from fairq_ryu.experiments.measure import intervals, stats
from fairq_ryu.experiments.report import result, table, unfinished
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.rows import Headline, figure
from fairq_ryu.setting import did_you_mean

NO_DIFFERENCE = "no difference that these repetitions can show"
_MAY_DIFFER = (
    *("project_version", "git_commit", "git_changes", "kernel", "machine", "cpus"),
    *("open_vswitch", "datapath"),
)
"""What is told if it differs, because it may be what is compared."""


class Side(NamedTuple):
    """One of the two: a policy of a result."""

    name: str
    whole: Mapping[str, Any]
    policy: str

    @property
    def figures(self) -> Mapping[str, Any]:
        """Those of all repetitions."""
        return _of(self.whole["policies"], self.policy)

    def samples(self, path: Sequence[str]) -> list[float]:
        """A figure in each repetition; empty where one has none."""
        parts = self.whole.get("repetitions") or [self.whole]
        found = [figure(_of(part["policies"], self.policy), path) for part in parts]
        return [] if None in found else found


def _of(policies: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next(each for each in policies if each["policy"] == name)


def main(one: str, other: str, anyway: bool = False, console: Console | None = None) -> int:
    """Print the verdicts; returns 0. ``one`` and ``other`` are DIR or DIR:POLICY; ``other`` may be :POLICY,
    of the same directory. ``UserError`` when there is no such result or policy, or, unless ``anyway``, when
    scenarios or settings differ.
    """
    console = console or Console()
    pairs = sides(one, other)
    (first, second), *_ = pairs
    if first.whole is not second.whole:
        for line in _allowed(first.whole, second.whole, anyway):
            console.out(line, highlight=False)
    for pair in pairs:
        for line in verdicts(*pair):
            console.out(line, highlight=False)
    return 0


def sides(one: str, other: str) -> list[tuple[Side, Side]]:
    """What is to be compared, at least one pair. ``UserError`` when there is nothing."""
    (directory, policy), (there, other_policy) = _parts(one), _parts(other)
    same = there in ("", directory)
    whole = result.load(Path(directory))
    second = whole if same else result.load(Path(there))
    known = [each["policy"] for each in whole["policies"]]
    if not policy and not other_policy:
        if same:
            raise UserError(
                "both are the same result", f"name two of its policies: {directory}:{known[0]} :{known[-1]}"
            )
        common = [each for each in known if each in [there["policy"] for there in second["policies"]]]
        if not common:
            raise UserError("the results have no policy in common", "name one of each, as in DIR:POLICY")
        named = [(each, each) for each in common]
    else:
        named = [(policy or other_policy, other_policy or policy)]
    if same and named[0][0] == named[0][1]:
        raise UserError("both are the same policy of the same result", "name another one")
    found = []
    for mine, theirs in named:
        pair = []
        for place, part, name in ((directory, whole, mine), (there or directory, second, theirs)):
            _check(place, part, name)
            pair.append(Side(name if same or mine != theirs else f"{place}: {name}", part, name))
        found.append((pair[0], pair[1]))
    return found


def _parts(text: str) -> tuple[str, str]:
    """Directory and policy."""
    if Path(text).is_dir():
        return text, ""
    directory, _, policy = text.partition(":")
    return directory, policy


def _check(directory: str, whole: Mapping[str, Any], policy: str) -> None:
    known = [each["policy"] for each in whole["policies"]]
    if policy not in known:
        raise UserError(f"{directory} has no policy {policy!r}", did_you_mean(policy, known))
    if why := _of(whole["policies"], policy)["failed"]:
        raise UserError(f"{policy} has failed in {directory}: {why}", "compare others, or run it again")


def _allowed(one: Mapping[str, Any], other: Mapping[str, Any], anyway: bool) -> Iterator[str]:
    """Lines about what differs beside the policies. ``UserError`` when it must not."""
    parts = [
        (
            {**each["scenario"], "title": ""},
            each["metadata"].get("settings") or {},
            {"simulator": each["metadata"].get("simulator") or {}},
        )
        for each in (one, other)
    ]
    differ = [line for pair in zip(*parts, strict=True) for line in differences.settings(*pair)]
    if differ and not anyway:
        raise UserError(
            f"scenarios or settings differ: {'; '.join(differ)}",
            "compare results of one scenario with one configuration; or add --anyway",
        )
    if differ:
        yield f"Compared although these differ: {'; '.join(differ)}."
    here, there = ({key: each["metadata"].get(key) for key in _MAY_DIFFER} for each in (one, other))
    if told := list(differences.settings(here, there)):
        yield f"Of different machines or versions: {'; '.join(told)}."


def verdicts(one: Side, other: Side) -> Iterator[str]:
    """A sentence for each headline of the traffic that both have, and how it was found."""
    yield f"{one.name} and {other.name}"
    headlines = registry.of_result(one.whole["scenario"]).table.headlines
    counts = (0, 0)
    for each in headlines:
        samples = one.samples(each.row.path), other.samples(each.row.path)
        if all(samples):
            counts = len(samples[0]), len(samples[1])
            yield f"  {each.row.label}: {_verdict(each, (one, other), samples)}"
    for side in (one, other):
        for reason in (table.unsound(side.figures), unfinished.remark(side.figures)):
            if reason:
                yield f"  {reason}"
    if min(counts) > 1:
        yield (
            f"  {counts[0]} and {counts[1]} repetitions;"
            " 95 % confidence intervals by Welch's t-test over them."
            " Of twenty figures without a difference, one would show one by chance."
        )


def _verdict(headline: Headline, sides: tuple[Side, Side], samples: tuple[list[float], list[float]]) -> str:
    row = headline.row
    values = [_value(stats.mean(each), row.style, row.unit) for each in samples]
    if min(map(len, samples)) < 2:
        return f"{values[0]} and {values[1]}; a single repetition shows no difference, --repeat 5 may"
    ratio = min(*samples[0], *samples[1]) > 0
    found = (intervals.of_quotient if ratio else intervals.of_difference)(*samples)
    same = 1.0 if ratio else 0.0
    if found.low <= same <= found.high:
        bounds = _times(found) if ratio else _by(found, row.style, row.unit)
        kind = "ratio" if ratio else "difference"
        return f"{NO_DIFFERENCE}: {values[0]} and {values[1]}, {kind} {bounds}"
    more = found.mean > same
    winner = int(more == headline.more_is_better)
    group = row.path[: row.path.index("fct_ms")] if "fct_ms" in row.path else None
    if group is not None and unfinished.matters(sides[winner].figures, group, row.path[-1]):
        return f"cannot tell: {values[0]} and {values[1]}, of the flows that have finished"
    # Seen from the winner, so that a factor is above 1.
    seen = found if winner else (_inverse(found) if ratio else _negative(found))
    word = "higher" if headline.more_is_better else "lower"
    if ratio:
        how = f"{_times(seen if headline.more_is_better else _inverse(seen))} times {word}"
    else:
        how = f"{word} by {_by(seen if headline.more_is_better else _negative(seen), row.style, row.unit)}"
    return f"{sides[winner].name} is better: {values[winner]} instead of {values[1 - winner]}, {how}"


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

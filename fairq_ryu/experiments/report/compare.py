"""``fairq compare``: which of two is better in each headline figure, as far as their repetitions can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import differences
from fairq_ryu.experiments.report import better, origin, result, table, unfinished
from fairq_ryu.experiments.report.better import Side
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.setting import did_you_mean

_MAY_DIFFER = (
    *("project_version", "git_commit", "git_changes", "kernel", "machine", "cpus"),
    *("open_vswitch", "datapath"),
)
"""What is told if it differs, because it may be what is compared."""


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
    commits = dict.fromkeys(origin.commit(each.whole["metadata"]) for each in (first, second))
    console.out(f"Of commit {' and '.join(commits)}.", highlight=False)
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
    if why := better.of(whole["policies"], policy)["failed"]:
        raise UserError(f"{policy} has failed in {directory}: {why}", "compare others, or run it again")


def _allowed(one: Mapping[str, Any], other: Mapping[str, Any], anyway: bool) -> Iterator[str]:
    """Lines about what differs beside the policies. ``UserError`` when it must not."""
    parts = [
        (
            {**each["scenario"], "title": ""},
            each["metadata"]["settings"],
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
    """A sentence for each headline of the traffic that one of them has, and how it was found."""
    yield f"{one.name} and {other.name}"
    counts = (0, 0)
    for each in registry.of_result(one.whole["scenario"]).table.headlines:
        found = better.judge(each, (one, other))
        if found is not None:
            counts = len(one.samples(each.row.path)), len(other.samples(each.row.path))
            who = "" if found.winner is None else f"{(one, other)[found.winner].name} is better: "
            yield f"  {each.row.label}: {who}{found.words}"
        elif lacks := _lacks(each.row.path, one, other):
            yield f"  {each.row.label}: not compared: missing in {lacks}"
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


def _lacks(path: Sequence[str], *sides: Side) -> str:
    """In how many repetitions a figure is missing; "" where there is none in any."""
    found = [(side, *side.missing(path)) for side in sides]
    if all(missing == count for _side, missing, count in found):
        return ""
    return " and ".join(
        f"{missing} of {count} repetitions of {side.name}" for side, missing, count in found if missing
    )

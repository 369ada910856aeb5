"""The table of a sweep: the headlines of its traffic at each point, under each policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from fairq_ryu.experiments.report import better, origin, table
from fairq_ryu.experiments.sweep.axes import Point
from fairq_ryu.experiments.sweep.store import Store
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.rows import Headline, figure

Results = Sequence[Mapping[str, Any] | None]
"""Of each point; None: it has none yet."""


def headlines(results: Results) -> list[Headline]:
    """Those of the traffic for which there are figures."""
    there = [each for each in results if each is not None]
    if not there:
        return []
    policies = [policy for each in there for policy in each["policies"]]
    found = registry.of_result(there[0]["scenario"]).table.headlines
    return [each for each in found if any(figure(policy, each.row.path) is not None for policy in policies)]


def parts(points: Sequence[Point], results: Results) -> list[list[list[str]]]:
    """A part for each headline: its name, then a line for each point, with a text for each policy."""
    found: list[list[list[str]]] = []
    for each in headlines(results):
        row = each.row
        name = f"{row.label} [{row.unit}]" if row.unit else row.label
        part = [
            [f"  {point.label}", *_texts(each, result)]
            for point, result in zip(points, results, strict=True)
            if result is not None
        ]
        found.append([[name, *[""] * (len(part[0]) - 1)], *part])
    return found


def _texts(headline: Headline, result: Mapping[str, Any]) -> list[str]:
    row = headline.row
    return [
        "failed"
        if policy["failed"]
        else table.written(figure(policy, row.path), figure(policy, ("interval", *row.path)), row.style)
        for policy in result["policies"]
    ]


def remarks(points: Sequence[Point], results: Results) -> Iterator[str]:
    """Sentences below the table."""
    there = [(point, each) for point, each in zip(points, results, strict=True) if each is not None]
    for point, each in there:
        if ahead := better.rivals(each):
            yield f"{point.label}: {ahead}"
    if len(there) < len(points):
        yield f"{len(points) - len(there)} of {len(points)} points have no result yet."
    made = sorted({each["repeat"] for _point, each in there})
    if made == [1]:
        yield "One repetition: there are no confidence intervals. --repeat 5 gives them."
    elif made:
        counted = " or ".join(map(str, made))
        yield (
            f"Means of {counted} repetitions, each with a seed of its own;"
            " \u00b1: half of the 95 % confidence interval."
        )
    told: dict[str, list[str]] = {}
    for point, each in there:
        for remark in table.policy_remarks(each):
            told.setdefault(remark, []).append(point.label)
    for remark, labels in told.items():
        yield remark if len(labels) == len(there) else f"{'; '.join(labels)}: {remark}"


def title(store: Store) -> str:
    """What the sweep is of."""
    return f"{store.description.scenario['title']}, by {' and '.join(store.description.axes)}"


def show(store: Store, results: Results, console: Console | None = None) -> None:
    """Print the table; columns of plain text where the output is no terminal."""
    console = console or Console()
    heading = ["", *store.description.policies]
    table.write(title(store), heading, parts(store.points, results), console)
    for remark in remarks(store.points, results):
        console.out(remark, highlight=False)
    console.out(f"Of commit {origin.commit(store.description.metadata)}.", highlight=False)

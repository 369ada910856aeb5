"""The report of a sweep: its table, its pictures (PNG, PDF), and one self-contained page."""

from __future__ import annotations

import html
import sys
from pathlib import Path

import matplotlib

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import origin, page
from fairq_ryu.experiments.report.report import FORMATS, PAGE, draw, explained
from fairq_ryu.experiments.sweep import pictures, table
from fairq_ryu.experiments.sweep.store import Store
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.pictures import STYLE


def main(store: Store, out: Path) -> int:
    """Print the table of a sweep, and write report.html and the pictures to ``out``. ``UserError`` when there
    is nothing to draw yet, or no place for it.
    """
    results = store.results()
    if not any(results):
        raise UserError(f"no point of {store.directory} has a result yet", "continue it with `fairq sweep`")
    remedy = "remove the result.json of its point; the next `fairq sweep` makes it again"
    with explained(out, f"a result in {store.directory} is", remedy):
        table.show(store, results)
        out.mkdir(parents=True, exist_ok=True)
        written_files = write(store, results, out)
    for path in written_files:
        print(f"report: {path}", file=sys.stderr)
    return 0


def write(store: Store, results: table.Results, directory: Path) -> list[Path]:
    """Draw everything; returns all files, the page first."""
    files: list[Path] = []
    embedded: list[tuple[str, str]] = []
    description = store.description
    there = [each for each in results if each is not None]
    repeats = {each["repeat"] for each in there}
    repeat = repeats.pop() if len(repeats) == 1 else None
    about = origin.text(description.metadata, description.policies, repeat, description.axes)
    with matplotlib.rc_context(STYLE):
        for picture in pictures.pictures(store.points, results):
            drawn, svg = draw(picture.figure, directory, picture.name, about)
            files += drawn
            embedded.append((picture.caption, svg))
    lines = [line for part in table.parts(store.points, results) for line in part]
    every = [policy for each in there for policy in each["policies"]]
    failures = any(policy["failed"] or policy["unsound"] for policy in every)
    scenario = {**store.description.scenario, **store.description.axes}
    parts = [
        f"<p>{html.escape(about)}</p>",
        page.rows_of([["", *store.description.policies], *lines]),
        *page.said(table.remarks(store.points, results), failures),
        *page.legend(registry.of_result(there[0]["scenario"]).table.terms, (line[0] for line in lines)),
        *page.drawn(embedded),
        *page.about(scenario, store.description.metadata),
    ]
    path = directory / PAGE
    path.write_text(page.document(table.title(store), parts), encoding="utf-8")
    return [path, *files]


def written(store: Store) -> list[str]:
    """The files that a report may write to its directory."""
    names = ["sweep", *(f"sweep-{number}" for number in range(2, len(store.points) + 1))]
    return [PAGE, *(f"{name}.{format}" for name in names for format in FORMATS)]

"""The report of the series: the claims on the terminal, in claims.json, as a table in Markdown, and in one
self-contained page.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from rich.console import Console

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.papers import picture, plan, verdict
from fairq_ryu.experiments.papers.plan import Claim, Experiment, Paper
from fairq_ryu.experiments.papers.verdict import AGREES, DIFFERS, UNKNOWN, Verdict
from fairq_ryu.experiments.report import flows, formats, origin, page, result, table
from fairq_ryu.experiments.report.report import FORMATS, PAGE, draw, explained, pictures
from fairq_ryu.experiments.workloads.common.pictures import STYLE

CLAIMS, TABLE, PICTURE = "claims.json", "claims.md", "claims"
WRITTEN = (PAGE, CLAIMS, TABLE, *(f"{PICTURE}.{format}" for format in FORMATS))
"""What a report writes to its directory; pictures of an experiment are in that of the experiment."""
_HEAD = ("", "the paper's words", "the paper's figure", "compared", "ours", "", "why")


class Judged(NamedTuple):
    """A claim, what it is of, and the verdict."""

    paper: Paper
    experiment: Experiment
    claim: Claim
    verdict: Verdict
    whole: Mapping[str, Any] | None
    """the result; None: there is none"""


def main(directory: Path, quick: bool, out: Path, records: bool = False) -> int:
    """Print the claims of a series, and write its report to ``out``; with ``records`` also those of single
    flows, beside each result. ``UserError`` when there is nothing to show yet, or no place for it.
    """
    papers = plan.load(quick)
    results = {each.id: _result(directory / each.id) for paper in papers for each in paper.experiments}
    if not any(results.values()):
        raise UserError(
            f"no experiment of {directory} has a result yet", "continue it with `fairq run papers`"
        )
    judged = list(judge(papers, results))
    show(judged)
    remedy = "remove the result.json of its experiment; the next `fairq run papers` makes it again"
    with explained(out, f"a result in {directory} is", remedy):
        out.mkdir(parents=True, exist_ok=True)
        files = _write(papers, results, judged, directory, out, quick)
        if records:
            places = [(whole, directory / name) for name, whole in results.items() if whole]
            files += [flows.write(whole, place, place) for whole, place in places]
    for path in files:
        print(f"report: {path}", file=sys.stderr)
    return 0


def _result(directory: Path) -> dict[str, Any] | None:
    return result.load(directory) if (directory / result.FILE_NAME).exists() else None


def judge(papers: Sequence[Paper], results: Mapping[str, Mapping[str, Any] | None]) -> Iterator[Judged]:
    """Every claim of the plan, also of experiments that --quick leaves out."""
    for paper in papers:
        for experiment in sorted((*paper.experiments, *paper.left_out), key=lambda each: each.place):
            whole = results.get(experiment.id)
            for claim in experiment.claims:
                found = verdict.judge(claim.expression, whole, results)
                if experiment in paper.left_out:
                    found = found._replace(why="--quick leaves it out")
                if found.word == DIFFERS and claim.differs:
                    found = found._replace(why=f"{found.why}; {claim.differs}")
                yield Judged(paper, experiment, claim, found, whole)


def ours(found: Verdict) -> str:
    """Our value with its interval."""
    if found.value is None:
        return "-"
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{_number(found.value)} [{_number(found.low)}, {_number(found.high)}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def counted(judged: Sequence[Judged]) -> str:
    """A sentence on all verdicts."""
    words = [each.verdict.word for each in judged if each.verdict.run]
    missing = len(judged) - len(words)
    return (
        f"{len(words)} claims: {words.count(AGREES)} agree, {words.count(DIFFERS)} do not, of"
        f" {words.count(UNKNOWN)} these repetitions cannot tell."
        + (f" {missing} more are of experiments or policies that were not run." if missing else "")
    )


def show(judged: Sequence[Judged], console: Console | None = None) -> None:
    """Print the claims of what was run: id, verdict, our value, and what is compared."""
    console = console or Console()
    for each in judged:
        if each.verdict.run:
            line = f"{each.claim.id:<6} {each.verdict.word:<12} {ours(each.verdict):<24} {each.claim.ours}"
            console.out(line, highlight=False)
    console.out(counted(judged), highlight=False)


def _line(each: Judged) -> list[str]:
    claim, found = each.claim, each.verdict
    return [claim.id, claim.words, claim.paper, claim.ours, ours(found), found.word, found.why]


def _write(
    papers: Sequence[Paper],
    results: Mapping[str, Mapping[str, Any] | None],
    judged: Sequence[Judged],
    directory: Path,
    out: Path,
    quick: bool,
) -> list[Path]:
    """All files, the page first."""
    files: list[Path] = []
    parts = [f"<p>{html.escape(text)}</p>" for text in (counted(judged), *_READING)]
    with matplotlib.rc_context(STYLE):
        drawn = picture.claims([(each.claim, each.verdict) for each in judged])
        if drawn is not None:
            made, svg = draw(drawn, out, PICTURE, _origins(results, quick))
            files += made
            parts += page.drawn([(picture.CAPTION, svg)])
    for paper in papers:
        own = [each for each in judged if each.paper is paper]
        parts += [f"<h2>{html.escape(paper.name)}</h2>", f"<p>{html.escape(paper.cite)}</p>"]
        parts.append(page.rows_of([_HEAD, *map(_line, own)], "words"))
        for experiment in paper.experiments:
            whole = results[experiment.id]
            if whole is not None:
                parts += _about(experiment, whole, directory / experiment.id if out == directory else None)
    path = out / PAGE
    path.write_text(page.document("The papers' claims, and ours", parts), encoding="utf-8")
    formats.write(out / CLAIMS, formats.Claims("fairq-claims/1", [_claim(each) for each in judged]))
    (out / TABLE).write_text(markdown(judged), encoding="utf-8")
    return [path, out / CLAIMS, out / TABLE, *files]


def markdown(judged: Sequence[Judged]) -> str:
    """The claims of what was run, with the commit, as a table for a document in Markdown."""
    there = [each for each in judged if each.verdict.run]
    lines = [_HEAD, ("---",) * len(_HEAD), *map(_line, there)]
    table = "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )
    commits = dict.fromkeys(origin.commit(each.whole["metadata"]) for each in there if each.whole)
    return f"{counted(judged)}\n\n{table}\n<sub>commit {', '.join(commits)}</sub>\n"


def _origins(results: Mapping[str, Mapping[str, Any] | None], quick: bool) -> str:
    """Of a picture of all experiments."""
    there = {name: whole for name, whole in results.items() if whole}
    command = f"command fairq run papers{' --quick' if quick else ''} --only {','.join(there)}"
    return "; ".join([command, *(f"{name}: {origin.line(whole)}" for name, whole in there.items())])


_READING = (
    "A claim agrees if the whole 95 % confidence interval of our value, over repetitions, is as claimed. It"
    " does not if none of it is. Otherwise these repetitions cannot tell. Quotients are compared in the"
    " logarithm. An order of magnitude is claimed as more than 3.16 times (the square root of 10), two orders"
    " as more than 31.6 times.",
)


def _about(experiment: Experiment, whole: Mapping[str, Any], directory: Path | None) -> list[str]:
    """Table and pictures of an experiment. ``directory``: where the pictures are written, too."""
    lines = [line for part in table.sections(whole, full=False) for line in part]
    name = html.escape(f"{experiment.id}: {whole['scenario']['title']}")
    found = [
        f"<details><summary>{name}</summary>",
        f"<p>{html.escape(origin.line(whole))}</p>",
        page.rows_of([table.heading(whole), *lines]),
    ]
    failed = any(policy["failed"] or policy["unsound"] for policy in whole["policies"])
    found += page.said(table.remarks(whole), failed)
    found += page.drawn(pictures(whole, directory)[1])
    return [*found, "</details>"]


def _claim(each: Judged) -> formats.Claim:
    """A claim in claims.json, with what its figures are of."""
    found, whole = each.verdict, each.whole
    metadata = whole["metadata"] if whole else {}
    return formats.Claim(
        id=each.claim.id,
        paper=each.paper.name,
        experiment=each.experiment.id,
        words=each.claim.words,
        paper_figure=each.claim.paper,
        compared=each.claim.ours,
        holds=each.claim.holds,
        verdict=found.word,
        value=found.value,
        interval=None if found.low is None or found.high is None else [found.low, found.high],
        why=found.why,
        scenario=metadata.get("scenario_name", Path(each.experiment.scenario).stem),
        overrides=metadata.get("overrides", dict(each.experiment.set)),
        policies=list(each.claim.expression.policies),
        repeat=whole["repeat"] if whole else 0,
        git_commit=metadata.get("git_commit"),
        git_changes=metadata.get("git_changes"),
    )

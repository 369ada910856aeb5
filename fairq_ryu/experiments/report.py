"""``fairq report``: pictures (PNG, PDF) and one self-contained page, from result.json alone."""

from __future__ import annotations

import base64
import html
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display, and none is looked for

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import pictures, pictures_flows, result, table

Policy = Mapping[str, Any]


def main(directory: Path) -> int:
    """Write ``directory``/report.html and the pictures. ``UserError`` when there is no result to draw."""
    whole = result.load(directory)
    try:
        written = write(whole, directory)
    except OSError as error:
        raise UserError(f"cannot write to {directory}: {error.strerror}", "check its permissions") from None
    except (KeyError, TypeError, IndexError) as error:
        raise UserError(
            f"{directory / result.FILE_NAME} is damaged: {error!r}", "make it again with `fairq run`"
        ) from None
    for path in written:
        print(path)
    print(f"report: {written[0]}", file=sys.stderr)
    return 0


def write(whole: Mapping[str, Any], directory: Path) -> list[Path]:
    """Draw every picture for which there are figures; returns all files, the page first."""
    policies = [policy for policy in whole["policies"] if not policy["failed"]]
    written: list[Path] = []
    embedded: list[tuple[str, str]] = []
    with matplotlib.rc_context(pictures.STYLE):
        for name, caption, of_mice, draw in _PICTURES:
            picture = draw(policies, whole["scenario"])
            if picture is None:
                continue
            for kind in ("png", "pdf"):
                path = directory / f"{name}.{kind}"
                # No date inside: the same result gives the same file.
                picture.savefig(path, dpi=200, metadata={"CreationDate": None} if kind == "pdf" else None)
                written.append(path)
            buffer = io.BytesIO()
            picture.savefig(buffer, format="svg", metadata={"Date": None})
            caption += _disturbed(policies, of_mice)
            embedded.append((caption, base64.b64encode(buffer.getvalue()).decode()))
    page = directory / "report.html"
    page.write_text(_page(whole, embedded), encoding="utf-8")
    return [page, *written]


def _disturbed(policies: Sequence[Policy], of_mice: bool) -> str:
    """What a caption adds where the host disturbed rounds: whether they are in the picture; else nothing."""
    said = []
    for policy in policies:
        rounds = policy.get("rounds")  # none without mice, and in older results
        if rounds and rounds["disturbed"]:
            kept = rounds["counted_disturbed"] if of_mice else 0
            but = f" ({kept} counted for want of better)" if kept else ""
            said.append(f"{policy['policy']} {rounds['disturbed']} of {rounds['made']}{but}")
    where = "left out" if of_mice else "included"
    return f"; rounds that the host disturbed are {where}: {', '.join(said)}" if said else ""


# Name, caption, whether it is of the counted rounds' mice or flows (or of the whole phase), what draws it.
_PICTURES = [
    ("fct_cdf", "Completion times of mice", True, pictures.cdf),
    ("fct_p99", "Tail of the completion times", True, pictures.p99),
    ("completion", "Completion times of flows with deadlines", False, pictures_flows.completion),
    ("silence", "Longest time without a byte of an endless flow", False, pictures_flows.silence),
    ("missed", "Deadlines missed", False, pictures_flows.missed),
    ("last_byte", "Last byte of each round", False, pictures_flows.last_byte),
    ("queue", "Time at each depth of the bottleneck's queue, during the rounds", False, pictures.queue),
    ("goodput", "Goodput of the elephants", False, pictures.goodput),
    ("phases", "Goodput of all elephants before, during and afterwards", False, pictures_flows.phases),
]

_CSS = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;
background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem;border-bottom:1px solid #ddd;
text-align:right}td:first-child,th:first-child{text-align:left}tr:hover td{background:#f4f6f8}
figure{margin:1.5rem 0}img{max-width:100%;height:auto}figcaption{font-weight:600}
.failed{color:#b00020}pre{white-space:pre-wrap}
"""


def _page(whole: Mapping[str, Any], pictures: Sequence[tuple[str, str]]) -> str:
    """The page, with everything inside it: no file and no address is needed to show it."""
    text = html.escape
    title = text(whole["scenario"]["title"])
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_CSS}</style></head><body>',
        f"<h1>{title}</h1>",
    ]
    for policy in whole["policies"]:
        if policy["failed"]:
            parts.append(f'<p class="failed">{text(policy["policy"])} failed: {text(policy["failed"])}</p>')
        if words := table.unsound(policy):
            parts.append(f'<p class="failed">{text(words)}</p>')
    parts.append(_html_table([table.heading(whole), *table.rows(whole)]))
    if ratios := table.ratio_rows(whole):
        parts += ["<h2>Compared</h2>", _html_table([table.heading(whole), *ratios])]
    for caption, data in pictures:
        parts.append(
            f'<figure><figcaption>{text(caption)}</figcaption><img alt="{text(caption)}" '
            f'src="data:image/svg+xml;base64,{data}"></figure>'
        )
    for name in ("scenario", "metadata"):
        listed = [[key, str(value)] for key, value in whole[name].items() if key != "policy_config"]
        parts += [f"<h2>{name.capitalize()}</h2>", _html_table([["", ""], *listed])]
    if whole["metadata"].get("policy_config"):
        parts.append(f"<h2>Configuration</h2><pre>{text(whole['metadata']['policy_config'])}</pre>")
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _html_table(lines: Sequence[Sequence[str]]) -> str:
    """The first line is the heading."""
    head, *body = lines
    out = ["<table>"]
    if any(head):
        out.append("<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>")
    out += ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in body]
    return "\n".join([*out, "</table>"])

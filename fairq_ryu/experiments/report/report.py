"""``fairq report``: pictures (PNG, PDF) and one self-contained page, from result.json alone."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display, and none is looked for

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import page as report_page
from fairq_ryu.experiments.report import pictures, pictures_flows, result

Policy = Mapping[str, Any]


def main(directory: Path, out: Path | None = None) -> int:
    """Write report.html and the pictures of ``directory``'s result to ``out`` (None: beside the result).
    ``UserError`` when there is no result to draw.
    """
    whole = result.load(directory)
    out = out or directory
    try:
        out.mkdir(parents=True, exist_ok=True)
        written = write(whole, out)
    except OSError as error:
        raise UserError(
            f"cannot write to {out}: {error.strerror}", "give another directory with --out DIR"
        ) from None
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
    page = directory / PAGE
    page.write_text(report_page.page(whole, embedded), encoding="utf-8")
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

PAGE = "report.html"
WRITTEN = (PAGE, *(f"{name}.{kind}" for name, *_ in _PICTURES for kind in ("png", "pdf")))
"""What a report makes in its directory."""

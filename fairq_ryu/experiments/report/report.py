"""``fairq report``: the table, pictures (PNG, PDF) and one self-contained page, from result.json alone; those
of traced flows from the run's logs.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

matplotlib.use("Agg")  # needs no display

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import flows, origin, result, table, tcp
from fairq_ryu.experiments.report import page as report_page
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common import rounds
from fairq_ryu.experiments.workloads.common.pictures import STYLE

Policy = Mapping[str, Any]
_Drawn = tuple[list[Path], list[tuple[str, str]]]


def main(directory: Path, out: Path | None = None, full: bool = False, records: bool = False) -> int:
    """Print the table of ``directory``'s result, short or ``full``, and write report.html and the pictures to
    ``out`` (None: beside the result); with ``records`` those of single flows, too. ``UserError`` when there
    is no result to draw, or nothing to write records with.
    """
    whole = result.load(directory)
    out = out or directory
    with explained(out, f"{directory / result.FILE_NAME} is", "make it again with `fairq run`"):
        table.show(whole, full)
        out.mkdir(parents=True, exist_ok=True)
        written = write(whole, out, directory)
        if records:
            written.append(flows.write(whole, out, directory))
    for path in written:
        print(f"report: {path}", file=sys.stderr)
    return 0


@contextmanager
def explained(out: Path, what: str, remedy: str) -> Iterator[None]:
    """:class:`UserError` for a directory that cannot be written to, or for what turns out to be damaged."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write to {out}: {error.strerror}", "give another directory with --out DIR"
        ) from None
    except (KeyError, TypeError, IndexError) as error:
        raise UserError(f"{what} damaged: {error!r}", remedy) from None


def write(whole: Mapping[str, Any], directory: Path, measured: Path) -> list[Path]:
    """Draw every picture for which there are figures, and every flow that was traced in the directory
    ``measured`` of the result; returns all files, the page first.
    """
    files, embedded = pictures(whole, directory)
    more, also = traced_flows(whole, directory, measured)
    files, embedded = files + more, embedded + also
    page = directory / PAGE
    page.write_text(report_page.page(whole, embedded), encoding="utf-8")
    return [page, *files]


def traced_flows(whole: Mapping[str, Any], directory: Path, measured: Path) -> _Drawn:
    """Draw the flows that were traced in the directory ``measured`` of a result; returns what
    :func:`pictures` does.
    """
    about = origin.line(whole)
    written: list[Path] = []
    embedded: list[tuple[str, str]] = []
    with matplotlib.rc_context(STYLE):
        for traced in tcp.pictures(measured):
            (directory / tcp.DIRECTORY).mkdir(exist_ok=True)
            files, svg = draw(traced.figure, directory / tcp.DIRECTORY, traced.name, about)
            written += files
            embedded.append((traced.caption, svg))
    return written, embedded


def pictures(whole: Mapping[str, Any], directory: Path | None) -> _Drawn:
    """Draw every picture for which there are figures into a directory (None: into no file); returns the
    files, and for a page the caption of each picture with its SVG in base64.
    """
    policies = [policy for policy in whole["policies"] if not policy["failed"]]
    about = origin.line(whole)
    written: list[Path] = []
    embedded: list[tuple[str, str]] = []
    with matplotlib.rc_context(STYLE):
        for picture in registry.of_result(whole["scenario"]).pictures():
            figure = picture.figure(policies, whole["scenario"])
            if figure is None:
                continue
            files, svg = draw(figure, directory, picture.name, about)
            written += files
            embedded.append((picture.caption + _disturbed(policies, picture.counted), svg))
    return written, embedded


def draw(figure: Figure, directory: Path | None, name: str, about: str) -> tuple[list[Path], str]:
    """Write a picture into a directory in each format (None: into no file); returns the files, and the
    picture as SVG in base64, for a page. ``about``: what it is of, which all of them contain. In `STYLE`.
    """
    # No date inside: the same result gives the same file.
    metadata: dict[str, dict[str, str | None]] = {
        ".png": {"Description": about},
        ".pdf": {"CreationDate": None, "Subject": about},
    }
    files = [] if directory is None else [directory / f"{name}.{format}" for format in FORMATS]
    for path in files:
        figure.savefig(path, dpi=300, metadata=metadata[path.suffix])
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Description": about})
    return files, base64.b64encode(buffer.getvalue()).decode()


def _disturbed(policies: Sequence[Policy], counted: bool) -> str:
    """The addition to a caption about disturbed rounds: whether they are in the picture; "" without any.
    ``counted``: the picture shows counted rounds only.
    """
    listed = []
    for policy in policies:
        made = policy.get("rounds")  # none without mice
        if made and made["disturbed"]:
            kept = made["counted_disturbed"] if counted else 0
            but = f" ({rounds.number(kept)} counted, as too few others)" if kept else ""
            shown = f"{rounds.number(made['disturbed'])} of {rounds.number(made['made'])}"
            listed.append(f"{policy['policy']} {shown}{but}")
    where = "left out" if counted else "included"
    return f"; rounds that the host disturbed are {where}: {', '.join(listed)}" if listed else ""


PAGE = "report.html"
FORMATS = ("png", "pdf")
WRITTEN = (
    PAGE,
    flows.FILE_NAME,
    tcp.DIRECTORY,
    *dict.fromkeys(
        f"{picture.name}.{format}"
        for workload in registry.WORKLOADS.values()
        for picture in workload.pictures()
        for format in FORMATS
    ),
)
"""The files that a report may write to its directory."""

"""``fairq report``: pictures (PNG, PDF) and one self-contained page, from result.json alone."""

from __future__ import annotations

import base64
import html
import io
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display, and none is looked for

from matplotlib.figure import Figure

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import result, table

# Okabe and Ito's colours, told apart by every eye and in print; the line styles help in grey.
_COLOURS = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_LINES = ["-", "--", "-.", ":"]
_SIZE = (6.4, 4.0)  # inches
_STYLE = {"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "fairq", "pdf.fonttype": 42}

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
    with matplotlib.rc_context(_STYLE):
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


def _figure() -> tuple[Figure, Any]:
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.add_subplot()


def _look(place: int) -> dict[str, Any]:
    return {"color": _COLOURS[place % len(_COLOURS)], "linestyle": _LINES[place % len(_LINES)]}


def _draw_cdf(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    """Share of the mice that have finished by a time; unfinished ones keep a curve below 1."""
    shown = [each for each in policies if each["mice"] and each["mice"]["fct_ms"]]
    if not shown:
        return None
    figure, axes = _figure()
    for each in shown:
        times = each["mice"]["fct_list_ms"]
        finished = sorted(value for value in times if value is not None)
        shares = [(rank + 1) / len(times) for rank in range(len(finished))]
        axes.step(
            finished, shares, where="post", label=each["policy"], linewidth=2, **_look(policies.index(each))
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("completion time of mice [ms]")
    axes.set_ylabel("share of mice")
    axes.legend()
    return figure


def _draw_p99(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    shown = [each for each in policies if each["mice"] and each["mice"]["fct_ms"]]
    if not shown:
        return None
    figure, axes = _figure()
    values = [each["mice"]["fct_ms"]["p99"] for each in shown]
    colours = [_look(policies.index(each))["color"] for each in shown]
    bars = axes.bar([each["policy"] for each in shown], values, color=colours, width=0.6)
    axes.bar_label(bars, labels=[f"{value:,.1f}" for value in values], padding=2)
    axes.set_yscale("log")
    axes.set_ylim(
        10 ** math.floor(math.log10(min(values) / 1.5)), 10 ** math.ceil(math.log10(max(values) * 1.5))
    )
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_ylabel("p99 completion time of mice [ms]")
    axes.grid(axis="x", visible=False)
    return figure


def _draw_queue(policies: Sequence[Policy], scenario: Mapping[str, Any]) -> Figure | None:
    """Share of the time at which the bottleneck's queue was no deeper than so many bytes."""
    shown = [each for each in policies if each["queue"]["rounds"] and each["queue"]["rounds"]["histogram"]]
    if not shown:
        return None
    figure, axes = _figure()
    for each in shown:
        histogram = each["queue"]["rounds"]["histogram"]
        total = sum(ns for _low, _high, ns in histogram)
        depths, shares, passed = [histogram[0][0] / 1000], [0.0], 0.0
        for _low, high, ns in histogram:
            passed += ns
            depths.append(high / 1000)
            shares.append(passed / total)
        axes.plot(depths, shares, label=each["policy"], linewidth=2, **_look(policies.index(each)))
    axes.axvline(scenario["buffer_bytes"] / 1000, color="0.5", linewidth=1)
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("bottleneck queue [kB]; the line is the buffer")
    axes.set_ylabel("share of time")
    axes.legend()
    return figure


def _draw_goodput(policies: Sequence[Policy], _scenario: Mapping[str, Any]) -> Figure | None:
    shown = [each for each in policies if each["elephants"]]
    if not shown:
        return None
    figure, axes = _figure()
    width = 0.8 / len(shown)
    for place, each in enumerate(shown):
        values = each["elephants"]["goodput_mbit"]
        axes.bar(
            [number + 1 + (place - (len(shown) - 1) / 2) * width for number in range(len(values))],
            values,
            width=width,
            color=_look(policies.index(each))["color"],
            label=f"{each['policy']}: {sum(values):.1f} in sum, Jain's index {each['elephants']['jain']:.3f}",
        )
    axes.set_xlabel("elephant")
    axes.set_ylabel("goodput [Mbit/s]")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", fontsize="small")
    return figure


# Name, caption, whether it is of the counted rounds' mice (or of the whole phase), what draws it.
_PICTURES = [
    ("fct_cdf", "Completion times of mice", True, _draw_cdf),
    ("fct_p99", "Tail of the completion times", True, _draw_p99),
    ("queue", "Time at each depth of the bottleneck's queue, during the rounds", False, _draw_queue),
    ("goodput", "Goodput of the elephants", False, _draw_goodput),
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

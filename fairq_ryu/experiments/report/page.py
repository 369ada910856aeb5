"""The page of a report: the tables, the pictures and the settings of one result, in a single file."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.report import origin, table
from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.rows import Term
from fairq_ryu.setting import value_text

_CSS = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;
background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem;border-bottom:1px solid #ddd;
text-align:right;vertical-align:top}td:first-child,th:first-child{text-align:left}
tr:hover td{background:#f4f6f8}.words td,.words th{text-align:left}.words td{overflow-wrap:anywhere}
figure{margin:1.5rem 0}img{width:36rem;max-width:100%;height:auto}figcaption{font-weight:600}
.failed{color:#b00020}pre{white-space:pre-wrap}summary{cursor:pointer;font-weight:600;margin:1rem 0}
dt{font-weight:600;float:left;clear:left;margin-right:.6rem}dd{margin:0 0 .3rem}
"""


def page(whole: Mapping[str, Any], pictures: Sequence[tuple[str, str]]) -> str:
    """The page of a result, self-contained: it loads no other file and no address.

    ``pictures`` are captions, each with its SVG in base64.
    """
    head, full = table.heading(whole), [line for part in table.sections(whole, full=True) for line in part]
    short = [line for part in table.sections(whole, full=False) for line in part]
    failures = any(policy["failed"] or policy["unsound"] for policy in whole["policies"])
    parts = [
        f"<p>{html.escape(origin.line(whole))}</p>",
        rows_of([head, *short]),
        *said(table.remarks(whole), failures),
    ]
    parts += [f"<details><summary>All {len(full)} rows</summary>", rows_of([head, *full]), "</details>"]
    parts += legend(registry.of_result(whole["scenario"]).table.terms, (row[0] for row in full))
    return document(
        whole["scenario"]["title"], [*parts, *drawn(pictures), *about(whole["scenario"], whole["metadata"])]
    )


def document(title: str, parts: Sequence[str]) -> str:
    """A page with this title, a text, and these parts."""
    title = html.escape(title)
    head = (
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_CSS}</style></head><body>',
        f"<h1>{title}</h1>",
    )
    return "\n".join([*head, *parts, "</body></html>\n"])


def said(remarks: Iterable[str], failures: bool) -> list[str]:
    """Sentences below a table; of ``failures`` in red."""
    listed = [f"<p>{html.escape(remark)}</p>" for remark in remarks]
    return [f'<div class="{"failed" if failures else "remarks"}">', *listed, "</div>"] if listed else []


def drawn(pictures: Iterable[tuple[str, str]]) -> list[str]:
    """Captions, each with its SVG in base64."""
    return [
        f'<figure><figcaption>{html.escape(caption)}</figcaption><img alt="{html.escape(caption)}" '
        f'src="data:image/svg+xml;base64,{data}"></figure>'
        for caption, data in pictures
    ]


def legend(terms: Iterable[Term], labels: Iterable[str]) -> list[str]:
    """The meanings of those terms that the labels of the tables contain."""
    used = "\n".join(labels)
    found = [(term.name, term.meaning) for term in terms if term.mark in used]
    if not found:
        return []
    listed = [f"<dt>{html.escape(term)}</dt><dd>{html.escape(meaning)}</dd>" for term, meaning in found]
    return ["<h2>Terms</h2>", "<dl>", *listed, "</dl>"]


def about(scenario: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[str]:
    """The scenario, the machine, the settings of controller and agents, and the configuration file."""
    metadata = dict(metadata)
    config = metadata.pop("policy_config", None)
    settings, variants = metadata.pop("settings", None), metadata.pop("variants", {})
    parts = []
    for name, values in (("Scenario", scenario), ("Metadata", metadata)):
        listed = [[key, _value(value)] for key, value in values.items()]
        parts += [f"<h2>{name}</h2>", rows_of([["setting", "value"], *listed], "words")]
    if settings:
        listed = [
            [f"[{section}]", key, _value(value)]
            for section, values in settings.items()
            for key, value in values.items()
        ]
        listed += [
            [f"[{section}]", key, f"{_value(value)} ({name})"]
            for name, own in variants.items()
            for section, values in own.items()
            for key, value in values.items()
        ]
        parts += [
            "<details><summary>Settings of controller and agents</summary>",
            rows_of([["section", "setting", "value"], *listed], "words"),
            "</details>",
        ]
    if config:
        parts.append(f"<h2>Configuration</h2><pre>{html.escape(config)}</pre>")
    return parts


def _value(value: Any) -> str:
    """A setting's value as plain text."""
    if value is None or value == "":
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return value_text(value)


def rows_of(lines: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table, whose first line is the heading."""
    head, *body = lines
    out = [f'<table class="{kind}">' if kind else "<table>"]
    out.append("<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>")
    out += ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in body]
    return "\n".join([*out, "</table>"])

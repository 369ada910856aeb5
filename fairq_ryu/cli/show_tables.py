"""The controller's answers as tables for a terminal, for ``fairq show``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairq_ryu import client
from fairq_ryu.cli.cell_text import deadline, due, endpoint, field_text, or_dash, place, port_text, size, span
from fairq_ryu.cli.columns import long, number, plain_table, word
from fairq_ryu.cli.port_table import Answer, ports_table
from fairq_ryu.errors import plain

# The maximum number of rows in one answer of the controller.
_MAX_ROWS = 1000
_IPV4_ENDPOINT = len("255.255.255.255:65535")
_GIF_HEADING = "GIF (global information of flows): flows by port and priority; # 1 is served first"


def _path(ports: list[list[Any]]) -> str:
    return " ".join(port_text(dpid, number) for dpid, number in ports) or "-"


def _footer(answer: Answer, rows: list[Any], word: str) -> str:
    total = answer["total"]
    if answer["offset"]:
        return f"showing {len(rows):,} of {total:,d}, after the first {answer['offset']:,d}"
    if len(rows) < total:
        option = "--limit" if answer["limit"] < _MAX_ROWS else "--offset"
        return f"showing {len(rows):,} of {total:,d}: use {option}"
    return f"{total:,d} {word}{'' if total == 1 else 's'}" if total else f"no {word}s"


def _flows_table(answer: Answer) -> RenderableType:
    rows = answer["flows"]
    footer = _footer(answer, rows, "flow")
    if not rows:
        return Text(footer)
    ends = [(endpoint(row["src"], row["sport"]), endpoint(row["dst"], row["dport"])) for row in rows]
    # If the terminal is narrow, paths are wrapped and addresses are not, unless they are IPv6 addresses.
    end = word if max(len(text) for pair in ends for text in pair) <= _IPV4_ENDPOINT else long
    columns = [
        end("from"),
        end("to"),
        word("state"),
        long("leaves by"),
        long("back by"),
        number("sent B"),
        number("back B"),
        number("age"),
        number("idle"),
        number("scale"),
    ]
    cells = [
        [
            *pair,
            row["state"],
            _path(row["ports"]),
            _path(row["back_ports"]),
            size(row["bytes"]),
            size(row["back_bytes"]),
            span(row["age_s"]),
            span(row["idle_s"]),
            f"{or_dash(row['wscale'])}/{or_dash(row['back_wscale'])}",
        ]
        for pair, row in zip(ends, rows, strict=True)
    ]
    if any(row["vlan"] for row in rows):
        columns.append(number("VLAN"))
        cells = [[*line, str(row["vlan"] or "-")] for line, row in zip(cells, rows, strict=True)]
    if any(row["pinned"] for row in rows):
        columns.append(word("pinned"))
        cells = [[*line, "yes" if row["pinned"] else "-"] for line, row in zip(cells, rows, strict=True)]
    return Group(plain_table(columns, cells), Text(footer))


def _gif_table(answer: Answer) -> RenderableType:
    rows = answer["gif"]
    footer = _footer(answer, rows, "row")
    if not rows:
        empty = "no gif rows: only the policies sed and rsed keep flows by priority"
        return Text(footer if answer["total"] else empty)
    numbers = [number(title) for title in ("age", "size", "left", "due in", "deadline")]
    columns = [word("port"), number("#"), long("from"), long("to"), *numbers, word("state")]
    cells = [
        [
            port_text(row["dpid"], row["port"]),
            f"{row['priority']:d}",
            endpoint(row["src"], row["sport"]),
            endpoint(row["dst"], row["dport"]),
            span(row["age_s"]),
            *("-" if row[name] is None else size(row[name]) for name in ("size_bytes", "remaining_bytes")),
            due(row["remaining_s"]),
            "-" if row["deadline_s"] is None else deadline(row["deadline_s"]),
            field_text("state", row["state"]),
        ]
        for row in rows
    ]
    return Group(Text(_GIF_HEADING), plain_table(columns, cells), Text(footer))


def _announcements_table(answer: Answer) -> RenderableType:
    rows = answer["announcements"]
    footer = Text(_footer(answer, rows, "announcement"))
    return Group(_columns(rows), footer) if rows else footer


def _paths_table(answer: Answer) -> RenderableType:
    rows = answer["paths"]
    footer = Text(_footer(answer, rows, "path"))
    if not rows:
        return footer
    columns = [long("from"), long("to"), long("leaves by"), long("back by"), word("pinned")]
    cells = [
        [
            endpoint(row["src"], row["sport"]),
            endpoint(row["dst"], row["dport"]),
            _path(row["ports"]),
            _path(row["back_ports"]),
            field_text("pinned", row["pinned"]),
        ]
        for row in rows
    ]
    if any(row["vlan"] for row in rows):
        columns.append(number("VLAN"))
        cells = [[*line, str(row["vlan"] or "-")] for line, row in zip(cells, rows, strict=True)]
    return Group(plain_table(columns, cells), footer)


def _events_table(answer: Answer) -> RenderableType:
    rows = answer["events"]
    if not rows:
        return Text("no events")
    columns = [number("#"), word("time"), word("kind"), word("at"), long("what")]
    cells = [
        [
            f"{row['id']:d}",
            time.strftime("%H:%M:%S", time.localtime(row["time"])),
            str(row["kind"]),
            "-" if row["dpid"] is None else place(row["dpid"], row["port"]),
            str(row["message"]),
        ]
        for row in rows
    ]
    return plain_table(columns, cells)


def _policy_table(answer: Answer) -> RenderableType:
    rows = answer["parameters"]
    columns = [word("parameter"), number("value"), number("default"), word("unit"), long("meaning")]
    cells = [
        [
            str(row["name"]),
            field_text("value", row["value"]),
            field_text("default", row["default"]),
            str(row["unit"]),
            str(row["help"]),
        ]
        for row in rows
    ]
    lines = [f"policy {answer['policy']}"]
    lines += [f"{rule['match']}: {rule['policy']}" for rule in answer["ports"]]
    lines.append(f"available: {', '.join(map(str, answer['available']))}")
    texts = [Text(plain(line)) for line in lines]
    return Group(texts[0], plain_table(columns, cells), *texts[1:]) if rows else Group(*texts)


def _health_table(answer: Answer) -> RenderableType:
    cells = [
        [name.replace("_", " "), _health_cell(name, value)]
        for name, value in answer.items()
        if name != "ways"
    ]
    cells += [[f"way {way}", _health_cell("agents_missing", dpids)] for way, dpids in answer["ways"].items()]
    return plain_table([word("what"), long("now")], cells)


def _health_cell(name: str, value: Any) -> str:
    if name == "agents_missing":
        return " ".join(place(dpid, None) for dpid in value) or "-"
    if name == "failing":
        return field_text(name, ", ".join(value) or None)
    return field_text(name, value)


def _other_table(kind: str, empty: str) -> Callable[[Answer], RenderableType]:
    """The table of a kind without totals (switches, hosts, links): a column for each field; ``empty`` is the
    text for no rows.
    """

    def table(answer: Answer) -> RenderableType:
        rows = answer[kind]
        if not rows:
            return Text(empty)
        return _columns(rows)

    return table


def _tenants_table(answer: Answer) -> RenderableType:
    rows = answer["tenants"]
    numbers = [number(title) for title in ("goodput", "share", "weight", "flows", "pool B", "floor broken")]
    columns = [word("tenant"), word("port"), *numbers, long("hosts")]
    cells = []
    for row in rows:
        about = [" ".join(map(str, row["hosts"])) or "-"]
        for port in row["ports"]:
            cells.append(
                [
                    str(row["name"]),
                    port_text(port["dpid"], port["port"]),
                    f"{size(port['goodput_bps'])}bit/s",
                    f"{port['share']:.1%}",
                    f"{row['weight']:d}",
                    f"{port['flows']:,d}",
                    size(port["pool_bytes"]),
                    f"{port['floor_broken']:,d}",
                    *about,
                ]
            )
            about = [""]
        if not row["ports"] and row["hosts"]:
            cells.append([str(row["name"]), "-", "-", "-", f"{row['weight']:d}", "-", "-", "-", *about])
    if not cells:
        return Text("no tenants: the policy tenants shares ports out among them")
    return plain_table(columns, cells)


def _switches_table(answer: Answer) -> RenderableType:
    rows = answer["switches"]
    if not rows:
        return Text("no switches: none has connected yet")
    # What a way cannot do is often the same for many switches: a line for each reason.
    limits: dict[str, list[str]] = {}
    for row in rows:
        for limit in row["limits"]:
            limits.setdefault(limit, []).append(place(row["dpid"], None))
    shown = [{name: value for name, value in row.items() if name != "limits"} for row in rows]
    notes = [Text(plain(f"{', '.join(dpids)}: {limit}")) for limit, dpids in limits.items()]
    return Group(_columns(shown), *notes)


def _columns(rows: list[Any]) -> Table:
    """A table with a column for each field; that of VLANs only if there are any."""
    names = [name for name in rows[0] if name != "vlan" or any(row.get("vlan") for row in rows)]
    cells = [[field_text(name, row[name]) for name in names] for row in rows]
    return plain_table([long(plain(name)) for name in names], cells)


_TABLES: Mapping[str, Callable[[Answer], RenderableType]] = {
    "ports": ports_table,
    "flows": _flows_table,
    "paths": _paths_table,
    "gif": _gif_table,
    "events": _events_table,
    "policy": _policy_table,
    "health": _health_table,
    "announcements": _announcements_table,
    "switches": _switches_table,
    "hosts": _other_table("hosts", "no hosts: none has sent anything yet"),
    "links": _other_table("links", "no links between switches"),
    "tenants": _tenants_table,
}


def unanswered(answer: Answer) -> list[str]:
    """Of several controllers that share the fabric, those that have not answered, a line each."""
    return [f"{row['controller']} has not answered: {row['reason']}" for row in answer.get("missing") or ()]


def table(kind: str, answer: Answer, url: str) -> RenderableType:
    """An answer as a table. Raises :class:`UserError` if a field is missing or has a wrong type."""
    try:
        made = _TABLES[kind](answer)
        lost = unanswered(answer)
        return Group(made, *(Text(plain(each)) for each in lost)) if lost else made
    except KeyError as error:
        raise client.not_the_controller(url, f"{kind} without {error}") from None
    except (TypeError, ValueError, OverflowError):
        raise client.not_the_controller(url, f"{kind} with fields that make no sense") from None

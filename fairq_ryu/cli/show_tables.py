"""The controller's answers as tables for a terminal, for ``fairq show``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairq_ryu import client
from fairq_ryu.cli.columns import long, number, plain_table, word
from fairq_ryu.client import plain

# The maximum number of rows in one answer of the controller.
_MAX_ROWS = 1000
_IPV4_ENDPOINT = len("255.255.255.255:65535")
_GIF_HEADING = "GIF (global information of flows): flows by port and priority; # 1 is served first"

Answer = Mapping[str, Any]


# Text for numbers


def _port(dpid: str, number: int) -> str:
    """A port of a switch: ``1:3``, the dpid without leading zeros."""
    return f"{int(dpid, 16):x}:{number:d}"


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port:d}" if ":" in address else f"{address}:{port:d}"


def _or_dash(number: int | None) -> str:
    return "-" if number is None else f"{number:d}"


def _size(count: int) -> str:
    """Bytes in at most five characters: 999, 1.2k, 34.5M (powers of 1000)."""
    if count < 1000:
        return f"{count:d}"
    value = float(count)
    for unit in "kMGTPE":
        value /= 1000
        # Not 100: 99.95 would be rounded to 100.0.
        if value < 99.95:
            return f"{value:.1f}{unit}"
        if value < 999.5:
            return f"{value:.0f}{unit}"
    return f"{value:.0f}{unit}"


def _mbit(bps: float) -> str:
    mbit = bps / 1e6
    return f"{mbit:.0f}" if mbit >= 10 else f"{mbit:.2g}"


def _span(seconds: float) -> str:
    """A duration in at most six characters: 0.3s, 59s, 12m03s, 5h07m, 12d."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d"


def _windows(row: Answer) -> str:
    """The windows installed for a port: ``pool 38747``, ``each 5840``, ``3 flows``, or two of these."""
    parts = []
    if row["pool_bytes"] is not None:
        parts.append(f"pool {row['pool_bytes']:d}")
    if row["window_bytes"] is not None:
        parts.append(f"each {row['window_bytes']:d}")
    if row["flow_windows"]:
        parts.append(f"{row['flow_windows']:d} flow{'s' if row['flow_windows'] > 1 else ''}")
    return ", ".join(parts) or "-"


# Tables


def _ports_table(answer: Answer) -> RenderableType:
    rows = answer["ports"]
    if not rows:
        return Text("no ports: no switch has connected yet")
    columns = [
        word("port"),
        long("name"),
        word("role"),
        number("flows"),
        number("active"),
        number("queue B"),
        number("peak B"),
        number("limit B"),
        number("Mbit/s"),
        number("drops"),
        long("window B"),
    ]
    cells = [
        [
            _port(row["dpid"], row["port"]),
            row["name"],
            row["role"],
            f"{row['flows']:d}",
            _or_dash(row["active"]),
            _or_dash(row["queue_bytes"]),
            _or_dash(row["peak_bytes"]),
            f"{row['limit_bytes']:d}" if row["limit_bytes"] else "-",
            _mbit(row["rate_bps"]) if row["rate_bps"] else "-",
            _or_dash(row["drops"]),
            _windows(row),
        ]
        for row in rows
    ]
    states = ["incast" if row["incast"] else row["state"] for row in rows]
    if any(state is not None for state in states):
        columns.append(word("state"))
        cells = [[*line, _cell("state", state)] for line, state in zip(cells, states, strict=True)]
    modes = [_mode(row) for row in rows]
    if any(mode != "act" for mode in modes):
        columns.append(word("mode"))
        cells = [[*line, mode] for line, mode in zip(cells, modes, strict=True)]
    policies = [str(row["policy"]) for row in rows]
    notes = [Text(plain(note)) for note in (*_fallbacks(rows), *_turns(rows), *_observed(rows))]
    if len(set(policies)) == 1:
        return Group(plain_table(columns, cells), Text(plain(f"policy {policies[0]}")), *notes)
    cells = [[*line, policy] for line, policy in zip(cells, policies, strict=True)]
    return Group(plain_table([*columns, long("policy")], cells), *notes)


def _fallbacks(rows: list[Answer]) -> list[str]:
    """The ports whose laws run in the controller although the switch should run them, one line a reason."""
    ports: dict[str, list[str]] = {}
    for row in rows:
        if row.get("law_fallback"):  # a controller of an older version does not have it
            ports.setdefault(row["law_fallback"], []).append(_port(row["dpid"], row["port"]))
    return [f"law in the controller on {', '.join(where)}: {why}" for why, where in ports.items()]


def _turns(rows: list[Answer]) -> list[str]:
    """The ports whose new connections take turns, and how many did."""
    return [
        f"turns on {_port(row['dpid'], row['port'])}: {row['turns_waiting']:,d} wait, "
        f"{row['turns_released']:,d} had room, {row['turns_overdue']:,d} waited too long, "
        f"{row['turns_overflowed']:,d} were too many"
        for row in rows
        if row.get("turns_waiting") is not None  # a controller of an older version does not have it
    ]


def _mode(row: Answer) -> str:
    """The mode of a port: ``act``, ``observe``, ``disabled``, or ``disabled 45s``."""
    left = row.get("disabled_s")
    mode = row.get("mode", "act")  # a controller of an older version does not have it
    return mode if left is None else f"{mode} {_span(left)}"


def _observed(rows: list[Answer]) -> list[str]:
    """The ports that are only observed, and what would have happened there."""
    return [
        f"observed on {_port(row['dpid'], row['port'])}: {row['would_lower']:,d} ACKs would have been lowered"
        for row in rows
        if row.get("mode") == "observe" and row["would_lower"] is not None and row["limit_bytes"]
    ]


def _path(ports: list[list[Any]]) -> str:
    return " ".join(_port(dpid, number) for dpid, number in ports) or "-"


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
    ends = [(_endpoint(row["src"], row["sport"]), _endpoint(row["dst"], row["dport"])) for row in rows]
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
            _size(row["bytes"]),
            _size(row["back_bytes"]),
            _span(row["age_s"]),
            _span(row["idle_s"]),
            f"{_or_dash(row['wscale'])}/{_or_dash(row['back_wscale'])}",
        ]
        for pair, row in zip(ends, rows, strict=True)
    ]
    if any(row.get("vlan") for row in rows):  # a controller of an older version does not have it
        columns.append(number("VLAN"))
        cells = [[*line, str(row.get("vlan") or "-")] for line, row in zip(cells, rows, strict=True)]
    if any(row["pinned"] for row in rows):
        columns.append(word("pinned"))
        cells = [[*line, "yes" if row["pinned"] else "-"] for line, row in zip(cells, rows, strict=True)]
    return Group(plain_table(columns, cells), Text(footer))


def _gif_table(answer: Answer) -> RenderableType:
    rows = answer["gif"]
    footer = _footer(answer, rows, "row")
    if not rows:
        empty = "no gif rows (flows by priority): only the policies sed and rsed keep such a table"
        return Text(footer if answer["total"] else empty)
    numbers = [number(title) for title in ("age", "size", "left", "due in", "deadline")]
    columns = [word("port"), number("#"), long("from"), long("to"), *numbers, word("state")]
    cells = [
        [
            _port(row["dpid"], row["port"]),
            f"{row['priority']:d}",
            _endpoint(row["src"], row["sport"]),
            _endpoint(row["dst"], row["dport"]),
            _span(row["age_s"]),
            *("-" if row[name] is None else _size(row[name]) for name in ("size_bytes", "remaining_bytes")),
            _due(row["remaining_s"]),
            "-" if row["deadline_s"] is None else _time(row["deadline_s"]),
            _cell("state", row["state"]),
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
            _endpoint(row["src"], row["sport"]),
            _endpoint(row["dst"], row["dport"]),
            _path(row["ports"]),
            _path(row["back_ports"]),
            _cell("pinned", row["pinned"]),
        ]
        for row in rows
    ]
    if any(row.get("vlan") for row in rows):
        columns.append(number("VLAN"))
        cells = [[*line, str(row.get("vlan") or "-")] for line, row in zip(cells, rows, strict=True)]
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
            "-" if row["dpid"] is None else _at(row["dpid"], row["port"]),
            str(row["message"]),
        ]
        for row in rows
    ]
    return plain_table(columns, cells)


def _at(dpid: str, port: int | None) -> str:
    return f"{int(dpid, 16):x}" if port is None else _port(dpid, port)


def _policy_table(answer: Answer) -> RenderableType:
    rows = answer["parameters"]
    columns = [word("parameter"), number("value"), number("default"), word("unit"), long("meaning")]
    cells = [
        [
            str(row["name"]),
            _cell("value", row["value"]),
            _cell("default", row["default"]),
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
    ways = answer.get("ways", {})  # missing in older versions, as below
    cells += [[f"way {way}", _health_cell("agents_missing", dpids)] for way, dpids in ways.items()]
    return plain_table([word("what"), long("now")], cells)


def _health_cell(name: str, value: Any) -> str:
    if name == "agents_missing":
        return " ".join(_at(dpid, None) for dpid in value) or "-"
    return _cell(name, value)


def _time(seconds: float) -> str:
    """A deadline, in ms if it is short: 0.8s, 25ms."""
    return f"{seconds * 1000:.3g}ms" if seconds < 0.1 else _span(seconds)


def _due(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"-{_span(-seconds)}" if seconds < 0 else _span(seconds)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "dpid":
        return f"{int(value, 16):x}"
    if name in ("addresses", "flows"):
        return " ".join(map(str, value)) or "-"
    if isinstance(value, list):
        return _port(*value)
    return str(value)


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


def _switches_table(answer: Answer) -> RenderableType:
    rows = answer["switches"]
    if not rows:
        return Text("no switches: none has connected yet")
    # What a way cannot do is often the same for many switches: a line for each reason.
    limits: dict[str, list[str]] = {}
    for row in rows:
        for limit in row.get("limits", ()):
            limits.setdefault(limit, []).append(_at(row["dpid"], None))
    shown = [{name: value for name, value in row.items() if name != "limits"} for row in rows]
    notes = [Text(plain(f"{', '.join(dpids)}: {limit}")) for limit, dpids in limits.items()]
    return Group(_columns(shown), *notes)


def _columns(rows: list[Any]) -> Table:
    """A table with a column for each field; that of VLANs only if there are any."""
    names = [name for name in rows[0] if name != "vlan" or any(row.get("vlan") for row in rows)]
    cells = [[_cell(name, row[name]) for name in names] for row in rows]
    return plain_table([long(plain(name)) for name in names], cells)


_TABLES: Mapping[str, Callable[[Answer], RenderableType]] = {
    "ports": _ports_table,
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
}


def table(kind: str, answer: Answer, url: str) -> RenderableType:
    """An answer as a table. Raises :class:`UserError` if a field is missing or has a wrong type."""
    try:
        return _TABLES[kind](answer)
    except KeyError as error:
        raise client.not_the_controller(url, f"{kind} without {error}") from None
    except (TypeError, ValueError, OverflowError):
        raise client.not_the_controller(url, f"{kind} with fields that make no sense") from None

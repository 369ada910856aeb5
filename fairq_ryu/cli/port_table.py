"""The table of ports, for ``fairq show``, and the notes below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from fairq_ryu.cli.cell_text import field_text, mbit, or_dash, port_text, span
from fairq_ryu.cli.columns import long, number, plain_table, word
from fairq_ryu.cli.far_notes import far_notes
from fairq_ryu.cli.queue_law_notes import queue_law_notes
from fairq_ryu.errors import plain

Answer = Mapping[str, Any]


def ports_table(answer: Answer) -> RenderableType:
    """The ports of an answer of the controller."""
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
            port_text(row["dpid"], row["port"]),
            row["name"],
            row["role"],
            f"{row['flows']:d}",
            or_dash(row["active"]),
            or_dash(row["queue_bytes"]),
            or_dash(row["peak_bytes"]),
            f"{row['limit_bytes']:d}" if row["limit_bytes"] else "-",
            mbit(row["rate_bps"]) if row["rate_bps"] else "-",
            or_dash(row["drops"]),
            _windows(row),
        ]
        for row in rows
    ]
    states = ["incast" if row["incast"] else row["state"] for row in rows]
    if any(state is not None for state in states):
        columns.append(word("state"))
        cells = [[*line, field_text("state", state)] for line, state in zip(cells, states, strict=True)]
    modes = [_mode(row) for row in rows]
    if any(mode != "act" for mode in modes):
        columns.append(word("mode"))
        cells = [[*line, mode] for line, mode in zip(cells, modes, strict=True)]
    policies = [str(row["policy"]) for row in rows]
    notes = [
        Text(plain(note))
        for note in (
            *_missing_laws(rows),
            *_turns(rows),
            *_observed(rows),
            *queue_law_notes(rows),
            *far_notes(rows),
        )
    ]
    if len(set(policies)) == 1:
        return Group(plain_table(columns, cells), Text(plain(f"policy {policies[0]}")), *notes)
    cells = [[*line, policy] for line, policy in zip(cells, policies, strict=True)]
    return Group(plain_table([*columns, long("policy")], cells), *notes)


def _missing_laws(rows: list[Answer]) -> list[str]:
    """The ports that have no windows because no switch runs their law, one line a reason."""
    ports: dict[str, list[str]] = {}
    for row in rows:
        if row["law_missing"]:
            ports.setdefault(row["law_missing"], []).append(port_text(row["dpid"], row["port"]))
    return [f"no windows on {', '.join(where)}: {why}" for why, where in ports.items()]


def _turns(rows: list[Answer]) -> list[str]:
    """The ports whose new connections take turns, and how many did."""
    return [
        f"turns on {port_text(row['dpid'], row['port'])}: {row['turns_waiting']:,d} wait, "
        f"{row['turns_released']:,d} had room, {row['turns_overdue']:,d} waited too long, "
        f"{row['turns_overflowed']:,d} were too many"
        for row in rows
        if row["turns_waiting"] is not None
    ]


def _mode(row: Answer) -> str:
    """The mode of a port: ``act``, ``observe``, ``disabled``, or ``disabled 45s``."""
    mode, left = str(row["mode"]), row["disabled_s"]
    return mode if left is None else f"{mode} {span(left)}"


def _observed(rows: list[Answer]) -> list[str]:
    """The ports that are only observed, and what would have happened there."""
    return [
        f"observed on {port_text(row['dpid'], row['port'])}: "
        f"{row['would_lower']:,d} ACKs would have been lowered"
        for row in rows
        if row["mode"] == "observe" and row["would_lower"] is not None and row["limit_bytes"]
    ]


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

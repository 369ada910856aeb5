"""Announcements, and flows by deadline, as rows for the REST interface (fields: ``docs/rest.md``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from fairq_ryu.fabric.deadlines.announcements import Entry
from fairq_ryu.model import FlowKey, PortKey, dpid_text


def announcement_row(entry: Entry, now: float) -> dict[str, Any]:
    """The row of an announcement."""
    wanted = entry.request
    return {
        "id": entry.id,
        "src": wanted.src,
        "dst": wanted.dst,
        "sport": wanted.sport,
        "dport": wanted.dport,
        "size": wanted.size,
        "deadline": wanted.deadline,
        "priority": wanted.priority,
        "left": entry.left,
        "expires_s": round(max(0.0, entry.expires - now), 3) if entry.left else None,
        "vlan": wanted.vlan,
        "flows": [flow.sport for flow in entry.flows],
    }


class GifTableRow(Protocol):
    """A flow in the table of a port. Times by the clock of ``now``; ``remaining_time`` is negative after the
    deadline.
    """

    @property
    def flow(self) -> FlowKey: ...
    @property
    def start(self) -> float: ...
    @property
    def deadline(self) -> float | None: ...
    @property
    def size(self) -> int | None: ...
    @property
    def remaining_time(self) -> float | None: ...
    @property
    def remaining_size(self) -> int | None: ...
    @property
    def priority(self) -> int: ...


def gif_rows(port: PortKey, table: Iterable[GifTableRow], now: float) -> Iterator[dict[str, Any]]:
    """The rows of ``/v1/gif`` for the table of a port; each is made when it is consumed."""
    return (
        {
            "dpid": dpid_text(port.dpid),
            "port": port.port,
            "priority": row.priority,
            "src": row.flow.src,
            "dst": row.flow.dst,
            "sport": row.flow.sport,
            "dport": row.flow.dport,
            "age_s": round(max(0.0, now - row.start), 3),
            "size_bytes": row.size,
            "remaining_bytes": row.remaining_size,
            "deadline_s": None if row.deadline is None else round(row.deadline - row.start, 3),
            "remaining_s": None if row.remaining_time is None else round(row.remaining_time, 3),
            "state": _state(row),
        }
        for row in table
    )


def _state(row: GifTableRow) -> str | None:
    """The state of the deadline. The table has no completion time, so a flow that has ended may have met or
    missed a deadline that has passed.
    """
    if row.remaining_time is None:
        return None
    if row.remaining_size == 0:
        return "met" if row.remaining_time >= 0 else "ended"
    return "open" if row.remaining_time > 0 else "missed"

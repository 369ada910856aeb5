"""Lines of ``fairq show`` about the queue laws of ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def queue_law_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the law of each port has done, or why the agent does not run it."""
    for row in rows:
        law = row["queue_law"]
        if law is None:
            continue
        port = f"{int(row['dpid'], 16):x}:{row['port']:d}"
        if row["queue_law_missing"]:
            yield f"no queue law on {port}: {law}: {row['queue_law_missing']}"
        elif row["judged"] is None:
            yield f"queue law {law} on {port}: no report yet"
        else:
            yield f"queue law {law} on {port}: {', '.join(_figures(row))}"


def _figures(row: Mapping[str, Any]) -> Iterator[str]:
    yield f"{row['judged']:,d} judged"
    yield f"{row['judged_dropped']:,d} dropped"
    yield f"{row['judged_marked']:,d} marked"
    yield f"{row['judged_not_ect']:,d} not ECN-capable"
    if row["fair_share_flows"] is not None:
        share = "not known" if row["fair_share"] is None else f"{row['fair_share']:.0f} samples"
        yield f"fair share {share} of {row['fair_share_flows']:,d} flows"
    yield f"delay {row['queue_delay_s'] * 1000:.1f} ms"
    if row["delay_target_s"] is not None:
        target, interval = row["delay_target_s"] * 1000, row["delay_interval_s"] * 1000
        yield f"target {target:g} ms, interval {interval:g} ms"
    if row["queue_law_limits"] != "nothing":
        yield f"limits by {row['queue_law_limits']}"

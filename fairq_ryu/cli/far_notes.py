"""What agents have inferred about hidden queues, a line for each far queue below the table of ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairq_ryu.cli.cell_text import mbit, port_text

_WHY = {
    "blind": "the share of its line, no round trips are seen",
    "share": "the share of its line",
    "raised": "more than the share, hardly anything stands",
    "full": "its line is full",
    "others": "what other traffic leaves",
}


def far_notes(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The lines for these rows of ``/v1/ports``."""
    for row in rows:
        why = row["virtual_rate_why"]
        if why is None:
            continue
        place = f"far queue {port_text(row['dpid'], row['port'])}"
        rate = rate_text(why, row["line_bps"], row["virtual_rate_bps"])
        delay = row["hidden_delay_s"]
        stands = "not measured" if delay is None else f"{delay * 1e3:.3g} ms"
        yield f"{place}: {rate}" + (f", delay above {stands}" if row["line_bps"] else "")


def rate_text(why: str, line: float, rate: float) -> str:
    """Why a virtual queue drains at its rate; rates in bit/s, 0 for a line whose rate is not known."""
    if not line:
        return "the rate of its line is not known yet; it is found when the queue above fills"
    return f"rate {mbit(rate)} of {mbit(line)} Mbit/s ({_WHY.get(why, why)})"

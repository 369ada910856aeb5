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
        if not row["line_bps"]:
            yield f"{place}: the rate of its line is not known yet; it is found when the queue above fills"
            continue
        delay = row["hidden_delay_s"]
        stands = "not measured" if delay is None else f"{delay * 1e3:.3g} ms"
        yield (
            f"{place}: rate {mbit(row['virtual_rate_bps'])} of {mbit(row['line_bps'])} Mbit/s "
            f"({_WHY.get(why, why)}), delay above {stands}"
        )

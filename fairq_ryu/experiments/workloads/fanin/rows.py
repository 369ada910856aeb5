"""The rows of a fan-in: of all numbers of flows together, and of each."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import (
    Figures,
    Headline,
    Ratio,
    Row,
    RowGroup,
    Shown,
    Table,
    Term,
    counts,
    share,
)


def _least_times_lower(first: Figures, other: Figures) -> float | None:
    """How many times sooner the last byte of a median round arrived: the least over the numbers of flows."""
    sweeps = [(each.get("fanin") or {}).get("sweep", ()) for each in (first, other)]
    medians = [(a["last_byte_ms"]["p50"], b["last_byte_ms"]["p50"]) for a, b in zip(*sweeps, strict=False)]
    return min((a / b for a, b in medians if b), default=None)


_MISSED = Row("all n: deadlines missed", "", ("fanin", "missed"), "d", Shown.SHORT)
_GOODPUT = Row("all n: goodput", "Mbit/s", ("fanin", "goodput_mbit"), ".1f")
_LAST_BYTE = Row("all n: last byte p99", "ms", ("fanin", "last_byte_ms", "p99"), ".1f")

TABLE = Table(
    rows=(
        *counts(
            "fanin",
            {
                "flows": "all n: flows",
                "unfinished": ("all n: flows unfinished", Shown.NONZERO),
                "deadlines": "all n: flows with a deadline",
                "announced": "all n: flows announced",
            },
        ),
        _MISSED,
        _GOODPUT,
        _LAST_BYTE,
        *common.timeouts("all n: RTO timeouts", "all n: flows", ("fanin",), Shown.SHORT),
        *common.BOTTLENECK,
        *common.INTEGRITY,
    ),
    groups=(
        RowGroup(
            ("fanin", "sweep"),
            lambda figures: f"n = {figures['n']}: ",
            (
                Row("flows", "", ("flows",), "d"),
                Row("deadlines missed", "", ("missed",), "d"),
                Row("goodput", "Mbit/s", ("goodput_mbit",), ".1f"),
                Row("last byte p50", "ms", ("last_byte_ms", "p50"), ".1f"),
                Row("last byte p99", "ms", ("last_byte_ms", "p99"), ".1f", Shown.SHORT),
                Row("physical limit", "ms", ("distance", "limit_ms"), ".1f"),
                Row("last byte p50 / physical limit", "", ("distance", "limit_times"), ".2f", Shown.SHORT),
                Row("last byte p50 alone, ample buffer", "ms", ("distance", "floor_ms"), ".1f"),
                Row("last byte p50 / alone", "", ("distance", "floor_times"), ".2f"),
                *common.timeouts("RTO timeouts", "flows", ()),
                Row("retransmissions", "", ("retransmissions",), "d"),
                Row("drops at the bottleneck", "", ("qdisc_drops",), "d"),
            ),
        ),
    ),
    headlines=(
        Headline(_GOODPUT, more_is_better=True, drawn=True),
        Headline(_LAST_BYTE, more_is_better=False, drawn=True, logarithmic=True),
        common.timeout_headline("all n: flows", ("fanin",)),
        Headline(_MISSED, more_is_better=False),
        common.QUEUE_HEADLINE,
    ),
    ratios=(
        *common.BOTTLENECK_RATIOS,
        share("fanin_missed_share", ("fanin", "missed"), "all n: deadlines missed"),
        share("fanin_rto_share", ("fanin", "rto_timeouts"), "all n: RTO timeouts"),
        Ratio(
            "last_byte_times_lower", _least_times_lower, "last byte p50, times sooner, worst n", style=".1f"
        ),
    ),
    terms=(
        common.RTO,
        Term("n", "n = ", "The number of flows of each application that begin together."),
        common.ACKS_REWRITTEN,
    ),
)

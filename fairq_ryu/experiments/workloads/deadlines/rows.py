"""The rows of flows with deadlines: of all runs, and of each flow."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import (
    Figures,
    Headline,
    Row,
    RowGroup,
    Shown,
    Table,
    counts,
    share,
)


def _flow(figures: Figures) -> str:
    deadline = figures["deadline_s"]
    size = f"{figures['size_bytes'] / 1e6:g} MB"
    return f"{size} in {deadline:g} s: " if deadline else f"{size}: "


_MISSED = Row("deadlines missed", "", ("deadlines", "missed"), "d", Shown.SHORT)
_ENDLESS = Row("endless flows goodput", "Mbit/s", ("deadlines", "endless_goodput_mbit"), ".1f", Shown.SHORT)

TABLE = Table(
    rows=(
        Row("flows with a deadline", "", ("deadlines", "deadlines"), "d"),
        _MISSED,
        *counts(
            "deadlines",
            {
                "impossible": "deadlines that the link cannot meet",
                "runs_with_missed": "runs with a missed deadline",
                "unfinished": ("flows unfinished", Shown.NONZERO),
                "retransmissions": "flows retransmissions",
                "announced": "flows announced",
            },
        ),
        *common.timeouts("flows RTO timeouts", "flows", ("deadlines",), Shown.SHORT),
        _ENDLESS,
        Row("endless flows longest silence", "ms", ("deadlines", "endless_longest_gap_ms"), ".0f"),
        *common.BOTTLENECK,
        *common.INTEGRITY,
    ),
    groups=(
        RowGroup(
            ("deadlines", "by_flow"),
            _flow,
            (
                Row("mean", "ms", ("ms", "mean"), ".0f"),
                Row("max", "ms", ("ms", "max"), ".0f", Shown.SHORT),
                Row("missed", "", ("missed",), "d"),
            ),
        ),
    ),
    headlines=(
        Headline(_MISSED, more_is_better=False, drawn=True),
        common.timeout_headline("flows", ("deadlines",)),
        Headline(_ENDLESS, more_is_better=True, drawn=True),
        common.QUEUE_HEADLINE,
    ),
    ratios=(
        *common.BOTTLENECK_RATIOS,
        share("deadlines_missed_share", ("deadlines", "missed"), "deadlines missed"),
        share("endless_goodput_share", ("deadlines", "endless_goodput_mbit"), "endless flows goodput"),
    ),
    terms=(common.RTO, common.ACKS_REWRITTEN),
)

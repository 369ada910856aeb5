"""The rows of flows with deadlines: of all runs, and of each flow."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import Figures, Row, RowGroup, Table, share


def _flow(figures: Figures) -> str:
    deadline = figures["deadline_s"]
    size = f"{figures['size_bytes'] / 1e6:g} MB"
    return f"{size} in {deadline:g} s: " if deadline else f"{size}: "


TABLE = Table(
    rows=(
        Row("flows with a deadline", "", ("deadlines", "deadlines"), "d"),
        Row("deadlines missed", "", ("deadlines", "missed"), "d"),
        Row("deadlines that the link cannot meet", "", ("deadlines", "impossible"), "d"),
        Row("runs with a missed deadline", "", ("deadlines", "runs_with_missed"), "d"),
        Row("flows unfinished", "", ("deadlines", "unfinished"), "d"),
        Row("flows retransmissions", "", ("deadlines", "retransmissions"), "d"),
        Row("flows RTO timeouts", "", ("deadlines", "rto_timeouts"), "d"),
        Row("flows announced", "", ("deadlines", "announced"), "d"),
        Row("endless flows goodput", "Mbit/s", ("deadlines", "endless_goodput_mbit"), ".1f"),
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
                Row("max", "ms", ("ms", "max"), ".0f"),
                Row("missed", "", ("missed",), "d"),
            ),
        ),
    ),
    ratios=(
        *common.BOTTLENECK_RATIOS,
        share("deadlines_missed_share", ("deadlines", "missed"), "deadlines missed"),
        share("endless_goodput_share", ("deadlines", "endless_goodput_mbit"), "endless flows goodput"),
    ),
    terms=(common.RTO, common.ACKS_REWRITTEN),
)

"""The rows of messages beside elephants."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import Row, Table, Term, counts, lower

_MESSAGES = (
    *counts("messages", {"sent": "messages", "unanswered": "messages unanswered"}),
    *(
        Row(f"messages' latency {part}", "ms", ("messages", "latency_ms", part), ".1f")
        for part in ("mean", "p50", "p95", "p99", "max")
    ),
)

TABLE = Table(
    rows=(
        *_MESSAGES,
        *common.ELEPHANTS_GOODPUT,
        *common.ELEPHANTS_FAIRNESS,
        *common.BOTTLENECK,
        *common.ELEPHANTS_ALONE,
        Row("beside messages / alone: goodput", "", ("messages", "beside_share"), ".1%"),
        *common.INTEGRITY,
    ),
    ratios=(
        lower("latency_p99_times_lower", ("messages", "latency_ms", "p99"), "latency p99, times lower"),
        *common.GOODPUT_RATIOS,
        *common.BOTTLENECK_RATIOS,
    ),
    terms=(
        Term(
            "latency",
            "latency",
            "Of a message: from when it was due to the receiver's answer. p50, p95, p99: 50, 95 and"
            " 99 of 100 messages were answered no later.",
        ),
        common.ELEPHANT,
        common.RTO,
        common.JAIN,
        common.ALONE,
        common.ACKS_REWRITTEN,
    ),
)

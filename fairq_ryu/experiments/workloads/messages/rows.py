"""The rows of messages beside elephants."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import (
    Headline,
    Row,
    Shown,
    Table,
    Term,
    counts,
    lower,
    times,
)

_MEAN, _P99 = times("messages' latency", ("messages", "latency_ms"), ("mean", "p99"))
_MESSAGES = (
    *counts("messages", {"sent": "messages", "unanswered": ("messages unanswered", Shown.NONZERO)}),
    *times("messages' latency", ("messages", "latency_ms"), ("mean", "p50", "p95", "p99", "max")),
    *common.timeouts("messages RTO timeouts", "messages' connections", ("messages",), Shown.NONZERO),
)

TABLE = Table(
    rows=(
        *_MESSAGES,
        *common.ELEPHANTS_GOODPUT,
        *common.ELEPHANTS_FAIRNESS,
        *common.BOTTLENECK,
        *common.ELEPHANTS_ALONE,
        Row("beside messages / alone: goodput", "", ("messages", "beside_share"), ".1%", Shown.SHORT),
        *common.INTEGRITY,
    ),
    headlines=(
        Headline(_P99, more_is_better=False, drawn=True, logarithmic=True),
        common.timeout_headline("messages' connections", ("messages",)),
        Headline(_MEAN, more_is_better=False),
        common.ELEPHANTS_HEADLINE._replace(drawn=True),
        common.QUEUE_HEADLINE,
    ),
    ratios=(
        lower(
            "latency_p99_times_lower",
            ("messages", "latency_ms", "p99"),
            "latency p99, times lower",
            Shown.SHORT,
        ),
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

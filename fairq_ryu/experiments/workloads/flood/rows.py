"""The rows of a flood of SYNs."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import Row, Shown, Table

TABLE = Table(
    rows=(
        *common.ELEPHANTS_GOODPUT,
        Row("SYNs a second", "1/s", ("flood", "syn_rate"), ".0f", Shown.SHORT),
        *common.ELEPHANTS_FAIRNESS,
        *common.BOTTLENECK,
        *common.ELEPHANTS_ALONE,
        Row("during / before the flood: goodput", "", ("flood", "during_share"), ".1%", Shown.SHORT),
        *common.INTEGRITY,
    ),
    headlines=(common.ELEPHANTS_HEADLINE._replace(drawn=True), common.QUEUE_HEADLINE),
    ratios=common.ELEPHANT_RATIOS,
    terms=(
        common.ELEPHANT,
        common.RTO,
        common.JAIN,
        common.ALONE,
        common.AFTERWARDS,
        common.ACKS_REWRITTEN,
    ),
)

"""The rows of an incast."""

from __future__ import annotations

from collections.abc import Iterator

from fairq_ryu.experiments.workloads.common import rounds
from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import (
    Figures,
    Headline,
    Row,
    Shown,
    Table,
    Term,
    counts,
    figure,
    lower,
    share,
    times,
)

_ROUNDS = counts(
    "rounds",
    {
        "made": "rounds made",
        "disturbed": "rounds disturbed (host took CPU)",
        "counted_disturbed": "disturbed rounds kept",
    },
)
_GOODPUT = Row("goodput of volleys", "Mbit/s", ("mice", "goodput_mbit"), ".1f")
_MEAN, _P99 = times("mice FCT", ("mice", "fct_ms"), ("mean", "p99"))
_MICE = (
    *counts("mice", {"count": "mice", "unfinished": ("mice unfinished", Shown.NONZERO)}),
    *times("mice FCT", ("mice", "fct_ms"), ("mean", "sd", "p50", "p95", "p99", "max")),
    Row("a volley's physical limit", "ms", ("distance", "limit_ms"), ".1f"),
    Row("mice FCT p99 / physical limit", "", ("distance", "limit_times"), ".2f", Shown.SHORT),
    Row("a volley alone, idle link: FCT p99", "ms", ("distance", "floor_ms"), ".1f"),
    Row("mice FCT p99 / volley alone", "", ("distance", "floor_times"), ".2f"),
    _GOODPUT,
    *common.timeouts("mice RTO timeouts", "mice", ("mice",), Shown.SHORT),
    *counts(
        "mice",
        {
            "segments_dropped": "mice segments dropped",
            "retransmissions": "mice retransmissions",
        },
    ),
)
_LEFT_OUT = (
    Row("left out: mice", "", ("mice_left_out", "count"), "d"),
    Row("left out: mice unfinished", "", ("mice_left_out", "unfinished"), "d"),
    Row("left out: mice FCT p99", "ms", ("mice_left_out", "fct_ms", "p99"), ".1f"),
    Row("left out: mice RTO timeouts", "", ("mice_left_out", "rto_timeouts"), "d"),
)
_RATIOS = (
    lower("fct_mean_times_lower", ("mice", "fct_ms", "mean")),
    lower("fct_p99_times_lower", ("mice", "fct_ms", "p99"), "FCT p99, times lower", Shown.SHORT),
    lower("fct_sd_times_lower", ("mice", "fct_ms", "sd"), "FCT sd, times lower"),
    lower("fct_max_times_lower", ("mice", "fct_ms", "max")),
    share("mice_rto_share", ("mice", "rto_timeouts"), "mice RTO timeouts"),
    share("mice_drops_share", ("mice", "segments_dropped"), "mice segments dropped"),
)


def _remarks(policy: Figures) -> Iterator[str]:
    if kept := figure(policy, ("rounds", "counted_disturbed")):
        counted = rounds.number(policy["rounds"]["wanted"])
        yield (
            f"{policy['policy']}: the host took CPU away in {rounds.number(kept)} of the {counted}"
            " rounds counted; its mice are not those of an undisturbed machine"
        )


TABLE = Table(
    rows=(
        *_ROUNDS,
        *_MICE,
        *common.ELEPHANTS_GOODPUT,
        *common.ELEPHANTS_FAIRNESS,
        *common.BOTTLENECK,
        *common.ELEPHANTS_ALONE,
        *common.INTEGRITY,
        *_LEFT_OUT,
    ),
    ratios=(*_RATIOS, *common.ELEPHANT_RATIOS),
    headlines=(
        Headline(_GOODPUT, more_is_better=True, drawn=True),
        Headline(_P99, more_is_better=False, drawn=True, logarithmic=True, limit=("distance", "limit_ms")),
        common.timeout_headline("mice", ("mice",)),
        Headline(_MEAN, more_is_better=False),
        common.ELEPHANTS_HEADLINE,
        common.QUEUE_HEADLINE,
    ),
    terms=(
        Term("mouse, mice", "mice", "A short transfer on a new connection, such as one answer of a server."),
        common.ELEPHANT,
        Term(
            "FCT",
            "FCT",
            "Flow completion time: from opening the connection to the last byte. sd: standard deviation;"
            " p50, p95, p99: 50, 95 and 99 of 100 flows were no slower.",
        ),
        common.RTO,
        common.JAIN,
        common.ALONE,
        common.AFTERWARDS,
        Term(
            "round",
            "round",
            "A volley: transfers that begin at one moment, as when many servers answer together.",
        ),
        Term(
            "disturbed",
            "disturbed",
            "The hypervisor of this virtual machine took CPU time away during the round; it was made again.",
        ),
        Term("left out", "left out:", "Rounds that were disturbed and are not in the figures above."),
        common.ACKS_REWRITTEN,
    ),
    remarks=_remarks,
)

"""The rows of heterogeneous flows."""

from __future__ import annotations

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import (
    Figures,
    Headline,
    Row,
    RowGroup,
    Shown,
    Table,
    Term,
    lower,
    share,
    times,
)

_NAME = "heterogeneous"


def _group(group: Figures) -> str:
    start = f" from {group['start_s']:g} s" if group["start_s"] else ""
    return f"{group['flows']} x {group['kind']}{start}: "


def _stage(stage: Figures) -> str:
    flows = f"{stage['flows']:.0f} flow" + ("" if stage["flows"] == 1 else "s")
    return f"from {stage['from_s']:.0f} s, {flows}: "


_GOODPUT = Row("goodput of long flows", "Mbit/s", (_NAME, "goodput_sum_mbit"), ".1f", Shown.SHORT)
_JAIN = Row("Jain's index, all long flows", "", (_NAME, "jain"), ".4f", Shown.SHORT)
_DELAY = times("queueing delay", (_NAME, "delay_ms"), ("mean", "p50", "p99", "max"), ".2f")
_FLOWS = (
    _GOODPUT,
    Row("Jain's index, TCP flows", "", (_NAME, "jain_tcp"), ".4f"),
    _JAIN,
    Row("link utilisation", "", (_NAME, "utilisation"), ".1%", Shown.SHORT),
    *_DELAY,
    Row("short flows", "", (_NAME, "short", "count"), "d"),
    Row("short flows unfinished", "", (_NAME, "short", "unfinished"), "d", Shown.NONZERO),
    *times("short flows FCT", (_NAME, "short", "fct_ms"), ("mean", "p50", "p99")),
    *common.timeout_flows("short flows", (_NAME, "short")),
)
_GROUP = (
    Row("goodput", "Mbit/s", ("goodput_sum_mbit",), ".1f", Shown.SHORT),
    Row("share of the link", "", ("link_share",), ".1%"),
    Row("flow with least", "Mbit/s", ("least_mbit",), ".2f"),
    Row("flow with most", "Mbit/s", ("most_mbit",), ".2f"),
    Row("retransmissions", "", ("retransmissions",), "d"),
    *common.timeouts("RTO timeouts", "flows", ()),
    Row("sent", "Mbit/s", ("sent_mbit",), ".1f"),
    Row("lost", "", ("lost_share",), ".1%"),
)
_STAGE = (
    Row("goodput", "Mbit/s", ("goodput_sum_mbit",), ".1f"),
    Row("Jain's index", "", ("jain",), ".4f"),
)

TABLE = Table(
    rows=(*_FLOWS, *common.BOTTLENECK, *common.INTEGRITY),
    groups=(
        RowGroup((_NAME, "groups"), _group, _GROUP),
        RowGroup((_NAME, "stages"), _stage, _STAGE),
    ),
    headlines=(
        Headline(_GOODPUT, more_is_better=True, drawn=True),
        Headline(_JAIN, more_is_better=True, drawn=True),
        Headline(_DELAY[2], more_is_better=False, drawn=True),
        common.QUEUE_HEADLINE,
    ),
    ratios=(
        share("long_goodput_share", (_NAME, "goodput_sum_mbit"), "goodput of long flows"),
        share("long_jain_share", (_NAME, "jain"), "Jain's index, all long flows"),
        lower("delay_p99_times_lower", (_NAME, "delay_ms", "p99"), "queueing delay p99, times lower"),
        *common.BOTTLENECK_RATIOS,
    ),
    terms=(
        Term(
            "queueing delay",
            "queueing delay",
            "What the bottleneck's queue holds, over its rate: how long a packet that arrives then waits."
            " p50, p99: 50 and 99 of 100 ms it was no longer.",
        ),
        Term(
            "link utilisation",
            "link utilisation",
            "Bytes that left the bottleneck, headers included, over what its rate carries.",
        ),
        Term(
            "Jain's index",
            "Jain",
            "Fairness of the long flows' goodputs: 1 when all are equal, 1/n when one of n has everything.",
        ),
        Term("queue law", "queue law", "What the switch does to a packet before it enters the queue."),
        Term("lost", "lost", "The part of what UDP flows have sent that has not arrived."),
        Term("FCT", "FCT", "Of a short flow: from opening the connection to the last byte."),
        common.RTO,
        common.ACKS_REWRITTEN,
    ),
)

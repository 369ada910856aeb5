"""The rows of tenants."""

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

_NAME = "tenants"


def _member(member: Figures) -> str:
    flows = f"{member['flows']:.0f} flow" + ("" if member["flows"] == 1 else "s")
    return f"{member['name']}, {flows}: "


def _stage(stage: Figures) -> str:
    return f"from {stage['from_s']:g} s, {' + '.join(f'{count:.0f}' for count in stage['flows'])} flows: "


_JAIN = Row("Jain's index over tenants", "", (_NAME, "jain"), ".4f", Shown.SHORT)
_GOODPUT = Row("goodput of all tenants", "Mbit/s", (_NAME, "goodput_sum_mbit"), ".2f", Shown.SHORT)
_LOST = Row("packets lost at the bottleneck", "", (_NAME, "lost_share"), ".2%", Shown.SHORT)

TABLE = Table(
    rows=(
        _JAIN,
        Row("Jain's index over flows", "", (_NAME, "jain_flows"), ".4f"),
        _GOODPUT,
        _LOST,
        Row("short flows", "", (_NAME, "short", "count"), "d"),
        Row("short flows unfinished", "", (_NAME, "short", "unfinished"), "d", Shown.NONZERO),
        *times("short flows FCT", (_NAME, "short", "fct_ms"), ("mean", "p50", "p99")),
        *common.timeout_flows("short flows", (_NAME, "short")),
        Row("flows of volleys", "", (_NAME, "volleys", "count"), "d"),
        Row("flows of volleys unfinished", "", (_NAME, "volleys", "unfinished"), "d", Shown.NONZERO),
        *times("flows of volleys FCT", (_NAME, "volleys", "fct_ms"), ("mean", "p50", "p99")),
        *common.timeout_flows("flows of volleys", (_NAME, "volleys")),
        *common.BOTTLENECK,
        *common.INTEGRITY,
    ),
    groups=(
        RowGroup(
            (_NAME, "members"),
            _member,
            (
                Row("goodput", "Mbit/s", ("goodput_mbit",), ".2f", Shown.SHORT),
                Row("share", "", ("share",), ".1%"),
                Row("retransmissions", "", ("retransmissions",), "d"),
                *common.timeouts("RTO timeouts", "flows", ()),
            ),
        ),
        RowGroup(
            (_NAME, "stages"),
            _stage,
            (
                Row("goodput", "Mbit/s", ("goodput_sum_mbit",), ".2f"),
                Row("Jain's index over tenants", "", ("jain",), ".4f", Shown.SHORT),
            ),
        ),
    ),
    headlines=(
        Headline(_GOODPUT, more_is_better=True, drawn=True),
        Headline(_JAIN, more_is_better=True, drawn=True),
        Headline(_LOST, more_is_better=False, drawn=True),
        common.QUEUE_HEADLINE,
    ),
    ratios=(
        share("tenants_goodput_share", (_NAME, "goodput_sum_mbit"), "goodput of all tenants"),
        share("tenants_jain_share", (_NAME, "jain"), "Jain's index over tenants"),
        lower("lost_times_lower", (_NAME, "lost_share"), "packets lost, times lower"),
        *common.BOTTLENECK_RATIOS,
    ),
    terms=(
        Term(
            "Jain's index",
            "Jain",
            "Fairness of goodputs: 1 when all are equal, 1/n when one of n has everything; without a time, in"
            " the last stage, in which all flows run.",
        ),
        Term(
            "FCT",
            "FCT",
            "Of a short flow: from opening the connection to the last byte. Of a flow of a volley: from the"
            " common start.",
        ),
        common.RTO,
        common.ACKS_REWRITTEN,
    ),
)

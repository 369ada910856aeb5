"""The rows of pairs: of all rates together, and of each."""

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
    quotient,
)

_NAME = "pairs"


def _least(kind: str) -> Ratio:
    """How many times lower the mean completion time is: the least over the rates."""

    def of(first: Figures, other: Figures) -> float | None:
        rates = [(each.get(_NAME) or {}).get("rates", ()) for each in (first, other)]
        found = [
            quotient(a[kind]["fct_ms"]["mean"], b[kind]["fct_ms"]["mean"])
            for a, b in zip(*rates, strict=False)
        ]
        return min((each for each in found if each is not None), default=None)

    return Ratio(
        f"{kind}_fct_times_lower", of, f"{kind} flows FCT mean, times lower, worst rate", ".2f", Shown.SHORT
    )


TABLE = Table(
    rows=(
        *counts(
            _NAME,
            {
                "pairs": "pairs of flows",
                "unfinished": ("flows unfinished", Shown.NONZERO),
                "retransmissions": "retransmissions",
            },
        ),
        *common.timeouts("RTO timeouts", "flows", (_NAME,), Shown.NONZERO),
        *common.BOTTLENECK,
        *common.INTEGRITY,
    ),
    groups=(
        RowGroup(
            (_NAME, "rates"),
            lambda figures: f"{figures['rate_mbit']:g} Mbit/s: ",
            (
                Row("short flows FCT mean", "ms", ("short", "fct_ms", "mean"), ".0f", Shown.SHORT),
                Row("short flows FCT sd", "ms", ("short", "fct_ms", "sd"), ".0f"),
                Row("short flows FCT max", "ms", ("short", "fct_ms", "max"), ".0f"),
                *common.timeout_flows("short flows", ("short",)),
                Row("long flows FCT mean", "ms", ("long", "fct_ms", "mean"), ".0f", Shown.SHORT),
                Row("long flows FCT sd", "ms", ("long", "fct_ms", "sd"), ".0f"),
                *common.timeout_flows("long flows", ("long",)),
                Row("drops at the bottleneck", "", ("qdisc_drops",), "d"),
                Row("queue mean", "bytes", ("queue_mean_bytes",), ".0f"),
            ),
        ),
    ),
    headlines=(
        *(
            Headline(
                Row(f"{kind} flows FCT mean", "ms", (_NAME, f"{kind}_mean_ms"), ".0f"),
                more_is_better=False,
                drawn=True,
            )
            for kind in ("short", "long")
        ),
        common.timeout_headline("flows", (_NAME,)),
        common.QUEUE_HEADLINE,
    ),
    ratios=(*common.BOTTLENECK_RATIOS, _least("short"), _least("long")),
    terms=(
        Term(
            "FCT",
            "FCT",
            "From the start of a flow to its last byte; an unfinished flow counts as the time limit.",
        ),
        Term("queue, CPU", "queue mean", "Without a rate: those of the highest rate."),
        common.RTO,
        common.ACKS_REWRITTEN,
    ),
)

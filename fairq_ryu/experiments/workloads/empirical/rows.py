"""The rows of flows of published sizes."""

from __future__ import annotations

from collections.abc import Iterator

from fairq_ryu.experiments.workloads.common import rows as common
from fairq_ryu.experiments.workloads.common.rows import (
    Figures,
    Headline,
    Row,
    Shown,
    Table,
    Term,
    lower,
    times,
)
from fairq_ryu.experiments.workloads.empirical import sizes
from fairq_ryu.experiments.workloads.empirical.figures import limits_of

_NAME = "empirical"
_IN_SHORT = {
    ("small", "p50"),
    ("small", "p99"),
    ("medium", "p99"),
    ("large", "p99"),
    ("all", "mean"),
    ("all", "p99"),
}


def _slowdown(which: str) -> tuple[Row, ...]:
    return tuple(
        Row(
            f"{which} flows slowdown {part}",
            "",
            (_NAME, which, "slowdown", part),
            ".2f",
            Shown.SHORT if (which, part) in _IN_SHORT else Shown.FULL,
        )
        for part in ("mean", "p50", "p99", "max")
    )


def _of(which: str) -> tuple[Row, ...]:
    path = (_NAME, which)
    return (
        Row(f"{which} flows", "", (*path, "count"), "d"),
        *_slowdown(which),
        *(
            row._replace(shown=Shown.FULL)
            for row in times(f"{which} flows FCT", (*path, "fct_ms"), ("mean", "p50", "p99", "max"))
        ),
        Row(
            f"{which} flows unfinished",
            "",
            (*path, "unfinished"),
            "d",
            Shown.NONZERO if which == "all" else Shown.FULL,
        ),
        *common.timeouts(f"{which} flows RTO timeouts", f"{which} flows", path),
    )


_PARTS = ("small", "medium", "large", "all")
_FLOWS = tuple(row for which in _PARTS for row in _of(which))
_TIMEOUTS = "all flows with RTO timeouts"
_SMALL_P99 = _slowdown("small")[2]
_ALL_MEAN = _slowdown("all")[0]
_LARGE_MEAN = _slowdown("large")[0]


def _about(scenario: Figures) -> Iterator[str]:
    """What the flows are made of."""
    name, divisor, cap = (scenario[key] for key in ("sizes", "size_divisor", "size_cap_bytes"))
    published, own = sizes.read(name), sizes.read(name, divisor, cap)
    changed = [f"divided by k = {divisor:g}"] if divisor != 1 else []
    changed += [f"at most {cap:,}"] if cap else []
    how = f", {' and '.join(changed)}: mean {own.mean:,.0f} bytes" if changed else ""
    small, large = limits_of(divisor)
    yield (
        f"Flow sizes: {name} ({sizes.SOURCES[name]}), mean {published.mean:,.0f} bytes{how}. Small: less than"
        f" {small:,.0f} bytes; large: more than {large:,.0f}."
    )


TABLE = Table(
    rows=(
        *(row._replace(shown=Shown.SHORT) if row.label == _TIMEOUTS else row for row in _FLOWS),
        Row("load, as drawn", "", (_NAME, "load"), ".1%"),
        Row("mean size, as drawn", "bytes", (_NAME, "mean_bytes"), ".0f"),
        Row("link utilisation", "", (_NAME, "utilisation"), ".1%", Shown.SHORT),
        Row("empty network, one segment: FCT p50", "ms", (_NAME, "probe_ms"), ".2f"),
        Row("the same without a controller", "ms", (_NAME, "alone_probe_ms"), ".2f"),
        Row("flows started late, p99", "ms", (_NAME, "late_ms"), ".2f"),
        *common.BOTTLENECK,
        *common.INTEGRITY,
    ),
    headlines=(
        Headline(_SMALL_P99, more_is_better=False, drawn=True, logarithmic=True),
        Headline(_LARGE_MEAN, more_is_better=False, drawn=True, logarithmic=True),
        Headline(_ALL_MEAN, more_is_better=False),
        common.timeout_headline("all flows", (_NAME, "all")),
        common.QUEUE_HEADLINE,
    ),
    ratios=(
        lower(
            "small_slowdown_p99_times_lower",
            (_NAME, "small", "slowdown", "p99"),
            "small flows slowdown p99, times lower",
            Shown.SHORT,
        ),
        lower("slowdown_mean_times_lower", (_NAME, "all", "slowdown", "mean"), "slowdown mean, times lower"),
        *common.BOTTLENECK_RATIOS,
    ),
    terms=(
        Term(
            "slowdown",
            "slowdown",
            "A flow's completion time over what the same flow takes alone on the empty network: 1 is the"
            " best. p50, p99: 50 and 99 of 100 flows had no more.",
        ),
        Term("FCT", "FCT", "Flow completion time: from opening the connection to the last byte."),
        Term(
            "link utilisation",
            "link utilisation",
            "Bytes that left the bottleneck, headers included, over what its rate carries.",
        ),
        common.RTO,
        common.ACKS_REWRITTEN,
    ),
    about=_about,
)

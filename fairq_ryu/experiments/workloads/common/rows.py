"""How a workload describes its part of the tables, and the rows that several workloads have.

A `Row` is one figure of a policy, a `Ratio` compares two policies, a `Term` is explained below a report. Each
row and ratio says itself whether the short table has it: about ten rows that answer whether the policy
helped, what it cost, and whether the figures can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

Figures = Mapping[str, Any]
"""The figures of one policy, or a part of them, as in a result."""


def figure(figures: Figures, path: Sequence[str]) -> Any:
    """The figure at ``path``; None where there is none."""
    value: Any = figures
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


class Shown(Enum):
    """Which tables have a row."""

    FULL = auto()
    """the full table only"""
    SHORT = auto()
    """the short one, too"""
    NONZERO = auto()
    """the short one only if the figure of at least one policy is not 0: what should not happen"""


class Row(NamedTuple):
    """A row of the table, for policies that have the figure."""

    label: str
    unit: str
    path: tuple[str, ...]
    """where the figure is in a policy's figures"""
    style: str
    """its format specification"""
    shown: Shown = Shown.FULL


class Headline(NamedTuple):
    """A figure that tells policies apart: sweeps show it at each point, and verdicts are about it."""

    row: Row
    more_is_better: bool
    drawn: bool = False
    """whether the picture of a sweep has it"""
    logarithmic: bool = False
    """whether that picture has it on a logarithmic scale"""
    limit: tuple[str, ...] = ()
    """where what no policy can beat is in a policy's figures; (): it is not known"""


class RowGroup(NamedTuple):
    """Rows that are repeated for each member of a list of figures, which is alike in all policies."""

    path: tuple[str, ...]
    """where the list is in a policy's figures"""
    prefix: Callable[[Figures], str]
    """text before each label, from the member"""
    rows: tuple[Row, ...]
    """their paths start at the member"""


class Ratio(NamedTuple):
    """A figure of a policy compared with the same figure of the first policy."""

    name: str
    """as in the result; names end in ``_times_lower`` where more is better, otherwise in ``_share``"""
    of: Callable[[Figures, Figures], float | None]
    """the ratio, from the figures of the first policy and of the other; None where it has no value"""
    label: str = ""
    """in the table; without a label it has no row"""
    style: str = ".1%"
    shown: Shown = Shown.FULL


class Term(NamedTuple):
    """A term that a report explains if ``mark`` is in a label of its tables."""

    name: str
    mark: str
    meaning: str


def _no_remarks(_policy: Figures) -> Iterator[str]:
    return iter(())


def _nothing_about(_scenario: Figures) -> Iterator[str]:
    return iter(())


class Table(NamedTuple):
    """A workload's part of the tables, in the order in which it is printed."""

    rows: tuple[Row, ...]
    groups: tuple[RowGroup, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    terms: tuple[Term, ...] = ()
    headlines: tuple[Headline, ...] = ()
    remarks: Callable[[Figures], Iterator[str]] = _no_remarks
    """sentences below the table on the figures of one policy"""
    about: Callable[[Figures], Iterator[str]] = _nothing_about
    """sentences below the table on the scenario"""


def counts(section: str, labels: Mapping[str, str | tuple[str, Shown]]) -> tuple[Row, ...]:
    """Rows of whole numbers: of each field of a section of a policy's figures the label, or label and
    :class:`Shown`.
    """
    listed = [
        (field, (given, Shown.FULL) if isinstance(given, str) else given) for field, given in labels.items()
    ]
    return tuple(Row(label, "", (section, field), "d", shown) for field, (label, shown) in listed)


def timeouts(label: str, flows: str, path: tuple[str, ...], shown: Shown = Shown.FULL) -> tuple[Row, ...]:
    """Rows of retransmission timeouts: all, with this label, and the flows that had one or more."""
    return (Row(label, "", (*path, "rto_timeouts"), "d", shown), *timeout_flows(flows, path))


def timeout_flows(flows: str, path: tuple[str, ...]) -> tuple[Row, ...]:
    """The flows with one retransmission timeout or more, as number and share."""
    return (
        Row(f"{flows} with RTO timeouts", "", (*path, "timeout_flows"), "d"),
        Row(f"{flows} with RTO timeouts, share", "", (*path, "timeout_share"), ".1%"),
    )


def timeout_headline(flows: str, path: tuple[str, ...]) -> Headline:
    """The share of the flows that had a retransmission timeout."""
    return Headline(timeout_flows(flows, path)[1], more_is_better=False, drawn=True)


_SHOWN_PARTS = dict.fromkeys(("p50", "p99", "max"), Shown.SHORT)


def times(label: str, path: tuple[str, ...], parts: Sequence[str], style: str = ".1f") -> tuple[Row, ...]:
    """Rows of the parts of a distribution of times, in ms; median, p99 and maximum are in the short table."""
    return tuple(
        Row(f"{label} {part}", "ms", (*path, part), style, _SHOWN_PARTS.get(part, Shown.FULL))
        for part in parts
    )


def quotient(over: float | None, under: float | None) -> float | None:
    """``over / under``; None where one is not known, or ``under`` is 0."""
    return None if over is None or not under else over / under


def lower(name: str, path: tuple[str, ...], label: str = "", shown: Shown = Shown.FULL) -> Ratio:
    """How many times lower the figure is than that of the first policy."""

    def of(first: Figures, other: Figures) -> float | None:
        return quotient(figure(first, path), figure(other, path))

    return Ratio(name, of, label, ".1f", shown)


def share(name: str, path: tuple[str, ...], label: str = "") -> Ratio:
    """The figure as a share of that of the first policy."""

    def of(first: Figures, other: Figures) -> float | None:
        return quotient(figure(other, path), figure(first, path))

    return Ratio(name, of, label)


def _drops_share(first: Figures, other: Figures) -> float | None:
    """Of the drops in each round: a policy that had more rounds disturbed was measured for longer."""
    drops = [
        quotient(figure(each, ("queue", "qdisc_drops")), figure(each, ("rounds", "made")) or 1.0)
        for each in (other, first)
    ]
    return quotient(*drops)


QUEUE_MEAN = Row("queue mean", "bytes", ("queue", "rounds", "mean_bytes"), ".0f", Shown.SHORT)
BOTTLENECK = (
    *counts(
        "senders",
        {"retransmissions": "senders retransmissions", "rto_timeouts": "senders RTO timeouts"},
    ),
    Row("drops at the bottleneck", "", ("queue", "qdisc_drops"), "d", Shown.SHORT),
    Row("dropped by the queue law", "", ("queue", "rounds", "law", "dropped"), "d", Shown.SHORT),
    Row("marked by the queue law", "", ("queue", "rounds", "law", "marked"), "d"),
    QUEUE_MEAN,
    Row("queue p99", "bytes", ("queue", "rounds", "p99_bytes"), ".0f"),
    Row("ACKs rewritten", "", ("queue", "rounds", "acks_rewritten"), "d"),
    Row("switch's thread, of one CPU", "%", ("cpu", "switch_thread_percent"), ".0f", Shown.SHORT),
    Row("switch's thread during volleys", "%", ("cpu", "switch_thread_volleys_percent"), ".0f", Shown.SHORT),
    Row("CPU idle", "%", ("cpu", "idle_percent"), ".0f"),
    Row("CPU stolen by the host", "%", ("cpu", "stolen_percent"), ".1f"),
)
"""Senders, bottleneck port and processors during the phase that is measured."""

INTEGRITY = (
    Row("flows compared byte for byte", "", ("integrity", "flows"), "d"),
    *counts(
        "capture",
        {
            "acks": "captured ACKs at senders",
            "beyond": ("captured: ACKs beyond the receiver's", Shown.NONZERO),
            "bad_checksums": ("captured: wrong TCP checksums", Shown.NONZERO),
            "missed": "packets not captured",
        },
    ),
)
"""Whether what arrived is what was sent."""

BOTTLENECK_RATIOS = (
    share("queue_mean_share", ("queue", "rounds", "mean_bytes")),
    Ratio("drops_share", _drops_share),
)

RTO = Term("RTO timeout", "RTO", "A sender stopped waiting for an ACK and sent again, after 200 ms or more.")
ACKS_REWRITTEN = Term(
    "ACKs rewritten", "ACKs rewritten", "ACKs in which the switch lowered the receive window."
)
ELEPHANT = Term("elephant", "elephants", "A bulk transfer that runs all the time and fills the queue.")
JAIN = Term(
    "Jain's index",
    "Jain",
    "Fairness of the elephants' rates: 1 when all are equal, 1/n when one of n has everything.",
)

QUEUE_HEADLINE = Headline(QUEUE_MEAN, more_is_better=False)

ELEPHANTS_GOODPUT = (
    Row("elephants goodput", "Mbit/s", ("elephants", "goodput_sum_mbit"), ".1f", Shown.SHORT),
)
ELEPHANTS_HEADLINE = Headline(ELEPHANTS_GOODPUT[0], more_is_better=True)
ELEPHANTS_FAIRNESS = (
    Row("elephants Jain's index", "", ("elephants", "jain"), ".4f"),
    *timeouts("elephants RTO timeouts", "elephants", ("elephants",), Shown.NONZERO),
)
ELEPHANTS_ALONE = (
    Row("alone: goodput", "Mbit/s", ("elephants", "alone_sum_mbit"), ".1f"),
    Row("alone: queue mean", "bytes", ("queue", "alone", "mean_bytes"), ".0f"),
    Row("alone: queue p99", "bytes", ("queue", "alone", "p99_bytes"), ".0f"),
    Row("alone: drops", "", ("queue", "alone", "drops"), "d"),
    Row("alone: dropped by the queue law", "", ("queue", "alone", "law", "dropped"), "d"),
    Row("alone: marked by the queue law", "", ("queue", "alone", "law", "marked"), "d"),
    Row("afterwards: goodput", "Mbit/s", ("elephants", "after_sum_mbit"), ".1f"),
    Row("afterwards / alone: goodput", "", ("elephants", "after_share"), ".1%"),
)
"""The phases in which only the elephants run."""

GOODPUT_RATIOS = (
    share("goodput_share", ("elephants", "goodput_sum_mbit"), "elephants goodput"),
    share("jain_share", ("elephants", "jain"), "Jain's index"),
)
AFTER_RATIO = share("after_share", ("elephants", "after_sum_mbit"), "elephants goodput afterwards")
ELEPHANT_RATIOS = (*GOODPUT_RATIOS, *BOTTLENECK_RATIOS, AFTER_RATIO)
"""Of the elephants and of their bottleneck."""

ALONE = Term("alone", "alone:", "The phase before the rounds, in which only the elephants run.")
AFTERWARDS = Term("afterwards", "afterwards", "The phase after the rounds, in which only the elephants run.")

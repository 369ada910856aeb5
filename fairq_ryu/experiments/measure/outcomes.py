"""Flows that started at one moment: what each was to be, what came of it, and what many add up to. Pure."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairq_ryu.experiments.report import result


@dataclass(frozen=True)
class Flow:
    """One flow to be sent: ``source`` and ``sink`` are places in the lists of senders and of receivers."""

    source: int
    sink: int
    size: int
    """bytes; 0: without end"""
    seed: int
    deadline: float | None = None
    """s after the common start"""


class Outcome(NamedTuple):
    """What came of a flow."""

    flow: Flow
    ms: float | None
    """from the common start to the last byte; None: unfinished"""
    bytes: int
    """of payload that have come"""
    error: str | None
    """why it is unfinished"""
    retransmissions: int
    rto_timeouts: int | None
    """None where the kernel does not tell"""
    series: Sequence[tuple[int, int]] = ()
    """of an endless flow, (moment in ns of the monotonic clock, bytes so far)"""

    @property
    def met(self) -> bool | None:
        """Whether the deadline was met; None without one."""
        if self.flow.deadline is None:
            return None
        return self.ms is not None and self.ms <= self.flow.deadline * 1000


def flow_figures(outcome: Outcome) -> dict[str, Any]:
    """One flow, as the result has it."""
    return {
        "size_bytes": outcome.flow.size,
        "deadline_s": outcome.flow.deadline,
        "ms": outcome.ms,
        "met": outcome.met,
        "error": outcome.error,
        "retransmissions": outcome.retransmissions,
        "rto_timeouts": outcome.rto_timeouts,
    }


def beside_others(series: Sequence[tuple[int, int]], start_ns: int, end_ns: int) -> dict[str, float]:
    """An endless flow from ``start_ns`` to ``end_ns``: goodput in Mbit/s, and the longest time without a byte
    of it, ms. ``series`` is (moment, bytes so far), in order.
    """
    within = [each for each in series if start_ns < each[0] <= end_ns]
    earlier = [count for at, count in series if at <= start_ns]
    first = earlier[-1] if earlier else 0
    last = within[-1][1] if within else first
    moments = [start_ns, *(at for at, _count in within), end_ns]
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    return {
        "goodput_mbit": (last - first) * 8e3 / max(end_ns - start_ns, 1),
        "longest_gap_ms": max(gaps) / 1e6,
    }


def last_ms(outcomes: Sequence[Outcome], timeout_s: float) -> float:
    """From the common start to the last byte of all; of an unfinished flow, to when it was given up."""
    return max(timeout_s * 1000 if each.ms is None else each.ms for each in outcomes)


def rounds_figures(
    rounds: Sequence[Sequence[Outcome]], namespace_timeouts: int, timeout_s: float
) -> dict[str, Any]:
    """All flows of several rounds. ``namespace_timeouts`` stands in for the sockets' own counter on kernels
    that have none; ``timeout_s`` is when unfinished flows were given up.
    """
    flows = [each for outcomes in rounds for each in outcomes]
    last = [last_ms(outcomes, timeout_s) for outcomes in rounds]
    met = [each.met for each in flows if each.met is not None]
    exact = all(each.rto_timeouts is not None for each in flows)
    return {
        "flows": len(flows),
        "unfinished": sum(each.ms is None for each in flows),
        "errors": dict(Counter(each.error for each in flows if each.error)),
        "deadlines": len(met),
        "missed": met.count(False),
        "goodput_mbit": sum(each.bytes for each in flows) * 8e-3 / sum(last),
        "last_byte_ms": result.fct_summary(last),
        "last_byte_list_ms": last,
        "fct_ms": result.fct_summary([each.ms for each in flows if each.ms is not None]),
        "rto_timeouts": sum(each.rto_timeouts or 0 for each in flows) if exact else namespace_timeouts,
        "rto_source": "tcp_info" if exact else "namespace",
        "retransmissions": sum(each.retransmissions for each in flows),
    }


def fanin_figures(sweep: Sequence[Mapping[str, Any]], announced: int) -> dict[str, Any]:
    """The figures of each number of flows, and the sums of all."""
    keys = ("flows", "unfinished", "deadlines", "missed", "rto_timeouts", "retransmissions", "qdisc_drops")
    return {
        "announced": announced,
        **{key: sum(each[key] for each in sweep) for key in keys},
        "sweep": list(sweep),
    }


def deadlines_figures(runs: Sequence[Mapping[str, Any]], announced: int) -> dict[str, Any]:
    """All runs, each as `deadlines` has it, and what they add up to."""
    flows = [each for run in runs for each in run["flows"]]
    endless = [each for run in runs for each in run["endless"]]
    timeouts = [each["rto_timeouts"] for each in flows]
    return {
        "announced": announced,
        "deadlines": sum(each["met"] is not None for each in flows),
        "missed": sum(each["met"] is False for each in flows),
        "runs_with_missed": sum(any(each["met"] is False for each in run["flows"]) for run in runs),
        "unfinished": sum(each["ms"] is None for each in flows),
        "retransmissions": sum(each["retransmissions"] for each in flows),
        "rto_timeouts": None if None in timeouts else sum(timeouts),
        "endless_goodput_mbit": sum(each["goodput_mbit"] for each in endless) / len(runs)
        if endless
        else None,
        "endless_longest_gap_ms": max((each["longest_gap_ms"] for each in endless), default=None),
        "by_flow": [_across(each) for each in zip(*(run["flows"] for run in runs), strict=True)],
        "runs": list(runs),
    }


def _across(same: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One flow of the scenario in all runs."""
    return {
        "size_bytes": same[0]["size_bytes"],
        "deadline_s": same[0]["deadline_s"],
        "missed": sum(each["met"] is False for each in same),
        "ms": result.fct_summary([each["ms"] for each in same if each["ms"] is not None]),
    }

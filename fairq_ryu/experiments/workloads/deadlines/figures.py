"""The figures of flows with deadlines, in the ``deadlines`` object of a policy in the result. Pure.

In every run all flows of the scenario start together, and the object has:

    announced       announcements that the controller accepted, 0 under a policy that accepts none
    deadlines       flows with a deadline, of all runs
    missed          of these, not complete by their deadline
    impossible      deadlines that the link cannot meet, whichever flow it carries first
    runs_with_missed, unfinished, retransmissions, rto_timeouts   the last two of the senders' sockets;
                    timeouts null before Linux 6.7
    timeout_flows, timeout_share   flows of all runs with at least one timeout, see `common.timeouts`
    endless_goodput_mbit   sum of all endless flows, mean of the runs, from the common start to the last byte
                    of the other flows; null without endless flows
    endless_longest_gap_ms   the longest time in that period in which one of them delivered no byte; null
                    without endless flows
    by_flow         each flow of the scenario in all runs: size_bytes, deadline_s, missed, ms (as fct_ms),
                    timeout_flows, timeout_share: of its runs
    runs            one object for each run
      flows           size_bytes, deadline_s, ms from the common start to the last byte, met, error,
                      retransmissions, rto_timeouts
      endless         goodput_mbit, longest_gap_ms
      seconds         to the last byte
      qdisc_drops, queue_mean_bytes, queue_p99_bytes, stolen_percent
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure.stats import fct_summary
from fairq_ryu.experiments.workloads.common.outcomes import Outcome
from fairq_ryu.experiments.workloads.common.timeouts import timed_out


def flow_figures(outcome: Outcome) -> dict[str, Any]:
    """One flow of a run."""
    return {
        "size_bytes": outcome.flow.size,
        "deadline_s": outcome.flow.deadline,
        "ms": outcome.ms,
        "met": outcome.met,
        "error": outcome.error,
        "retransmissions": outcome.retransmissions,
        "rto_timeouts": outcome.rto_timeouts,
    }


def endless_figures(series: Sequence[tuple[int, int]], start_ns: int, end_ns: int) -> dict[str, float]:
    """An endless flow from ``start_ns`` to ``end_ns``: goodput in Mbit/s, and the longest time without a byte
    of it, ms. ``series`` is (time, bytes so far), in order.
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


def deadlines_figures(runs: Sequence[Mapping[str, Any]], announced: int) -> dict[str, Any]:
    """All runs, and their sums."""
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
        **timed_out(timeouts),
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
        "ms": fct_summary([each["ms"] for each in same if each["ms"] is not None]),
        **timed_out([each["rto_timeouts"] for each in same]),
    }

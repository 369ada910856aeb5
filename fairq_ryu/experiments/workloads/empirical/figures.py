"""The figures of flows of published sizes, in the object ``empirical`` of a policy in the result. Pure
functions.

    probe_ms        median completion time of flows of one segment on the empty network of this policy, before
                    the others start, ms
    alone_probe_ms  the same on an empty network without a controller (the floor), or probe_ms where that was
                    not measured. It is the reference of all slowdowns, see `limits.alone_ms`
    load            payload of the flows that were due in the measured phase, over its time at the rate of the
                    bottleneck: as drawn, while the scenario has what is expected
    mean_bytes      mean size of these flows, as drawn
    utilisation     bytes with Ethernet headers that left the bottleneck in the measured phase, over what its
                    rate carries
    late_ms         p99 of the time from when a flow was due until the machine started it
    all, small, medium, large   of all these flows, and by their size, see `limits_of`
      count           flows due in the measured phase
      unfinished      of these, without all bytes finish_s after it
      fct_ms          count, mean, sd, p50, p95, p99, max of the completion times in ms, from connect() to the
                      last byte at the receiver, of flows that have finished; null without any
      slowdown        the same of the completion times over those of each flow alone on the empty network
      rto_timeouts    retransmission timeouts of the senders' sockets (null before 6.7)
      timeout_flows, timeout_share   flows with at least one timeout, see `common.timeouts`
    by_size         a list: the same of the flows between two points of the published distribution, and
                    low_bytes, high_bytes (the size is above the first and no more than the second; the first
                    part has the least size, too) and mean_bytes (null without flows)

Each flow is in logs/POLICY/flows.csv (`RECORD`).
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments.measure.stats import fct_summary, mean
from fairq_ryu.experiments.workloads.common.timeouts import timed_out
from fairq_ryu.experiments.workloads.empirical.settings import EmpiricalScenario

RECORD = ("number", "sender", "size_bytes", "due_s", "start_s", "fct_ms", "timeouts")
"""The columns of flows.csv: of each flow that was due in the measured phase. Times are since the first flow
of the warm-up may start; fct_ms is empty if it has not finished, timeouts where the kernel does not count
them.
"""
RECORDS = "flows.csv"
"""The name of the file."""
_SMALL_BYTES, _LARGE_BYTES = 100_000, 10_000_000


class Flow(NamedTuple):
    """A flow that was due in the measured phase."""

    size: int
    fct_ms: float | None
    """None: it has not finished"""
    timeouts: int | None
    """retransmission timeouts of its sender; None: not counted by this kernel"""


def limits_of(divisor: float) -> tuple[float, float]:
    """Flows of fewer bytes than the first are small, those of more than the second large: 100 kB and 10 MB of
    the published sizes, divided as they are.
    """
    return _SMALL_BYTES / divisor, _LARGE_BYTES / divisor


def by_size(scenario: EmpiricalScenario, flows: Sequence[Flow], alone_ms: Sequence[float]) -> dict[str, Any]:
    """``all``, ``small``, ``medium``, ``large`` and ``by_size``; ``alone_ms``: what each flow takes alone."""
    pairs = list(zip(flows, alone_ms, strict=True))
    small, large = limits_of(scenario.size_divisor)
    return {
        "all": group(pairs),
        "small": group([each for each in pairs if each[0].size < small]),
        "medium": group([each for each in pairs if small <= each[0].size <= large]),
        "large": group([each for each in pairs if each[0].size > large]),
        "by_size": _parts(scenario.distribution.steps, pairs),
    }


def group(pairs: Sequence[tuple[Flow, float]]) -> dict[str, Any]:
    """The figures of some flows, each with what it takes alone in ms."""
    finished = [(flow.fct_ms, alone) for flow, alone in pairs if flow.fct_ms is not None]
    timeouts = [flow.timeouts for flow, _alone in pairs]
    known = [each for each in timeouts if each is not None]
    return {
        "count": len(pairs),
        "unfinished": len(pairs) - len(finished),
        "fct_ms": fct_summary([fct for fct, _alone in finished]),
        "slowdown": fct_summary([fct / alone for fct, alone in finished]),
        "rto_timeouts": sum(known) if len(known) == len(timeouts) else None,
        **timed_out(timeouts),
    }


def _parts(steps: Sequence[float], pairs: Sequence[tuple[Flow, float]]) -> list[dict[str, Any]]:
    """Of the flows between two steps; the first part are those of the least size, because many have it."""
    members: list[list[tuple[Flow, float]]] = [[] for _ in steps]
    highest = [round(step) for step in steps]
    for each in pairs:
        members[min(bisect.bisect_left(highest, each[0].size), len(steps) - 1)].append(each)
    return [
        {
            "low_bytes": steps[max(0, place - 1)],
            "high_bytes": steps[place],
            "mean_bytes": mean([flow.size for flow, _alone in own]) if own else None,
            **group(own),
        }
        for place, own in enumerate(members)
    ]

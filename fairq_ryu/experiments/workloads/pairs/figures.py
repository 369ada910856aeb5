"""The figures of pairs, in the object ``pairs`` of a policy in the result. Pure functions.

pairs, unfinished, retransmissions, rto_timeouts, timeout_flows, timeout_share, qdisc_drops    over all rates;
                unfinished: flows
short_mean_ms, long_mean_ms    mean completion time of all pairs
rates           of each rate:
  rate_mbit, buffer_bytes
  pairs           number of them
  long, short     of the long and of the short flows:
    unfinished
    fct_ms          count, mean, ... of the times in ms from the start, before the SYN, to the last byte;
                    an unfinished flow counts as round_timeout_s. fct_list_ms: each
    retransmissions, rto_timeouts (null before 6.7)
    timeout_flows, timeout_share   with at least one timeout, see `common.timeouts`
  qdisc_drops, queue_mean_bytes (null without an agent)    from the start of the first pair to the end of
                  the last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.measure.stats import fct_summary
from fairq_ryu.experiments.workloads.common.outcomes import Outcome, last_ms
from fairq_ryu.experiments.workloads.common.timeouts import timed_out, together

_KINDS = ("long", "short")
_SUMS = ("retransmissions", "rto_timeouts")


def flows_figures(outcomes: Sequence[Outcome], timeout_s: float) -> dict[str, Any]:
    """The long flows, or the short ones; ``timeout_s`` is the time limit of a flow."""
    times = [last_ms([each], timeout_s) for each in outcomes]
    exact = all(each.rto_timeouts is not None for each in outcomes)
    return {
        "unfinished": sum(each.ms is None for each in outcomes),
        "fct_ms": fct_summary(times),
        "fct_list_ms": times,
        "retransmissions": sum(each.retransmissions for each in outcomes),
        "rto_timeouts": sum(each.rto_timeouts or 0 for each in outcomes) if exact else None,
        **timed_out([each.rto_timeouts for each in outcomes]),
    }


def pairs_figures(rates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All rates."""
    kinds = [each[kind] for each in rates for kind in _KINDS]
    return {
        "pairs": sum(each["pairs"] for each in rates),
        "unfinished": sum(each["unfinished"] for each in kinds),
        **{key: _sum([each[key] for each in kinds]) for key in _SUMS},
        **together([{**rate[kind], "flows": rate["pairs"]} for rate in rates for kind in _KINDS], "flows"),
        **{f"{kind}_mean_ms": _mean_of_all(rates, kind) for kind in _KINDS},
        "qdisc_drops": sum(each["qdisc_drops"] for each in rates),
        "rates": list(rates),
    }


def _mean_of_all(rates: Sequence[Mapping[str, Any]], kind: str) -> float:
    return stats.mean([ms for each in rates for ms in each[kind]["fct_list_ms"]])


def joined(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of one policy from those at each rate. Those of the queue and of the processors have no
    mean over rates: those of the highest rate stand for them, but drops are those of all.
    """
    if len(steps) == 1:
        return dict(steps[0])
    rates = [rate for step in steps for rate in step["pairs"]["rates"]]
    fastest = max(steps, key=lambda step: step["pairs"]["rates"][0]["rate_mbit"])
    added = {
        name: {key: _sum([step[name][key] for step in steps]) for key in steps[0][name]}
        for name in ("senders", "losses", "integrity", "tcp_left_out")
    }
    captured = steps[0]["capture"]
    return {
        **fastest,
        **added,
        "unsound": "; ".join(dict.fromkeys(step["unsound"] for step in steps if step["unsound"])) or None,
        "capture": captured and {key: sum(step["capture"][key] for step in steps) for key in captured},
        "queue": {
            **fastest["queue"],
            **{key: sum(step["queue"][key] for step in steps) for key in ("qdisc_drops", "refused")},
        },
        "pairs": pairs_figures(rates),
        "seconds": sum(step["seconds"] for step in steps),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None where one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None

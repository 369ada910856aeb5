"""The figures of a fan-in, in the ``fanin`` object of a policy in the result. Pure.

``announced``; ``goodput_mbit`` and ``last_byte_ms`` as below, of all rounds; and
the sums of what is in each entry of ``sweep``, which has one for each number of flows:

    n               flows of each application
    rounds          as of an incast, see `incast.figures`
    distance        limit_ms, the time that a volley takes on the wire alone, floor_ms, the last byte of the
                    same volley alone with an ample buffer on this machine (null: not known, or it lost
                    segments), and the last byte of the median round over each, limit_times and floor_times
    flows, unfinished, errors, deadlines, missed   of the counted rounds, as are all but the last three
    goodput_mbit    payload of all rounds in the time to the last byte of each
    last_byte_ms    count, mean, ... of the times from a round's start to its last byte; an unfinished flow
                    counts as round_timeout_s. last_byte_list_ms: each
    fct_ms          of the finished flows. fct_list_ms: each flow, by round, in the order of `round_flows`
                    (null: unfinished)
    rto_timeouts, rto_source, retransmissions   of the senders
    timeout_flows, timeout_share   flows with at least one timeout, see `common.timeouts`
    qdisc_drops, queue, stolen_percent    of all rounds with this n, disturbed ones too; queue as queue.rounds
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure.stats import fct_summary
from fairq_ryu.experiments.workloads.common.outcomes import Outcome, last_ms
from fairq_ryu.experiments.workloads.common.timeouts import timed_out, together


def round_flows(
    sizes_bytes: Sequence[int], deadlines_s: Sequence[float], number: int
) -> list[tuple[int, float | None]]:
    """Size in bytes and deadline in s (None: none) of each flow of a round with ``number`` flows of each
    application, one application after the other.
    """
    applications = zip(sizes_bytes, deadlines_s, strict=True)
    return [(size, deadline or None) for size, deadline in applications for _copy in range(number)]


def rounds_figures(
    rounds: Sequence[Sequence[Outcome]], namespace_timeouts: int, timeout_s: float
) -> dict[str, Any]:
    """All flows of several rounds. ``namespace_timeouts`` replaces the sockets' own counter on kernels that
    have none; ``timeout_s`` is the time limit of a flow.
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
        "last_byte_ms": fct_summary(last),
        "last_byte_list_ms": last,
        "fct_ms": fct_summary([each.ms for each in flows if each.ms is not None]),
        "fct_list_ms": [each.ms for each in flows],
        "rto_timeouts": sum(each.rto_timeouts or 0 for each in flows) if exact else namespace_timeouts,
        "rto_source": "tcp_info" if exact else "namespace",
        **timed_out([each.rto_timeouts for each in flows]),
        "retransmissions": sum(each.retransmissions for each in flows),
    }


def fanin_figures(sweep: Sequence[Mapping[str, Any]], announced: int) -> dict[str, Any]:
    """The figures of each number of flows, and the sums of all."""
    keys = ("flows", "unfinished", "deadlines", "missed", "rto_timeouts", "retransmissions", "qdisc_drops")
    last = [each for entry in sweep for each in entry["last_byte_list_ms"]]
    carried = sum(entry["goodput_mbit"] * sum(entry["last_byte_list_ms"]) for entry in sweep)
    return {
        "announced": announced,
        **{key: sum(each[key] for each in sweep) for key in keys},
        **together(sweep, "flows"),
        "goodput_mbit": carried / sum(last),
        "last_byte_ms": fct_summary(last),
        "sweep": list(sweep),
    }

"""The figures of heterogeneous flows, in the object ``heterogeneous`` of a policy in the result.
Pure functions.

    goodput_mbit    payload at the receiver in the measured phase, Mbit/s, one number for each long flow, in
                    the order of the groups; goodput_sum_mbit is their sum
    jain            Jain's index over all long flows, UDP included
    jain_tcp        over the TCP flows; null with fewer than two
    utilisation     bytes with Ethernet headers that left the bottleneck port, over what its rate carries;
                    short flows and handshakes included
    delay_ms        mean, p50, p99, max of the queueing delay: of the time, by the backlog of the bottleneck's
                    queue over its rate. mean is exact; the others are from the histogram of time at each
                    depth, whose ranges are 1/16 octave: max is the upper end of the highest range that was
                    reached, and no more than the buffer. null without an agent
    groups          in the order of the scenario, of each:
      kind            its congestion control, or udp
      flows, start_s
      goodput_sum_mbit, and of several flows least_mbit and most_mbit
      link_share      goodput_sum_mbit over the rate of the bottleneck
      jain
      retransmissions, rto_timeouts    of its sockets (timeouts null before 6.7); null for udp
      timeout_flows, timeout_share     its flows with at least one timeout, see `common.timeouts`
      sent_mbit, lost_share   of udp: payload that it has sent, and the part of it that has not arrived;
                      else null
    stages          null, or where groups start within the measured phase: of each part between two starts
                    from_s (as planned, since the first flow may start), seconds (as measured), and of the
                    flows that have started:
                    flows, goodput_sum_mbit, jain
    short           null without short flows, or of those that were due in the measured phase, as planned:
                    count, unfinished, and fct_ms: count, mean, sd, p50, p95, p99, max of the completion times
                    in ms, from connect() to the last byte, finished flows only; null when none finished;
                    timeout_flows, timeout_share: those with at least one timeout, of the senders' sockets
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.workloads.common.counts import Counts, more, rates
from fairq_ryu.experiments.workloads.common.timeouts import timed_out
from fairq_ryu.experiments.workloads.heterogeneous.settings import Group


class Mark(NamedTuple):
    """What has arrived of each flow until one moment."""

    at_s: float
    """as planned, since the first flow may start: the reading itself is a little later"""
    tcp: Counts
    udp: Counts | None
    """None without UDP flows"""


class Sockets(NamedTuple):
    """Counters of the long flows' sockets at one moment."""

    tcp: Mapping[str, Mapping[str, Any]]
    """TCP_INFO by the number of the flow as text"""
    udp: Counts | None
    """bytes sent; None without UDP flows"""


def goodputs(before: Mark, after: Mark, groups: Sequence[Group]) -> list[list[float]]:
    """Mbit/s of each flow of each group between two marks."""
    found = []
    for group in groups:
        first, last = (before.udp, after.udp) if group.udp else (before.tcp, after.tcp)
        assert first is not None and last is not None
        found.append(rates(first, last, group.numbers))
    return found


def long_flows(
    groups: Sequence[Group], marks: Sequence[Mark], sockets: tuple[Sockets, Sockets], rate_mbit: float
) -> dict[str, Any]:
    """The figures of the long flows from the marks of the measured phase, the first at its begin and the last
    at its end, and from the counters at both.
    """
    each = goodputs(marks[0], marks[-1], groups)
    all_flows = [flow for group in each for flow in group]
    tcp = [flow for group, own in zip(groups, each, strict=True) if not group.udp for flow in own]
    return {
        "goodput_mbit": all_flows,
        "goodput_sum_mbit": sum(all_flows),
        "jain": stats.jain(all_flows),
        "jain_tcp": stats.jain(tcp) if len(tcp) > 1 else None,
        "groups": [
            {
                "kind": group.kind,
                "flows": len(group.numbers),
                "start_s": group.start_s,
                "goodput_sum_mbit": sum(own),
                "least_mbit": min(own) if len(own) > 1 else None,
                "most_mbit": max(own) if len(own) > 1 else None,
                "link_share": sum(own) / rate_mbit,
                "jain": stats.jain(own),
                **(_sent(group, sum(own), sockets) if group.udp else _losses(group, sockets)),
            }
            for group, own in zip(groups, each, strict=True)
        ],
        "stages": _stages(groups, marks) if len(marks) > 2 else None,
    }


def _losses(group: Group, sockets: tuple[Sockets, Sockets]) -> dict[str, Any]:
    before, after = (reading.tcp for reading in sockets)
    return {
        "retransmissions": more(before, after, "total_retrans", group.numbers),
        "rto_timeouts": more(before, after, "total_rto", group.numbers),
        **timed_out([more(before, after, "total_rto", [number]) for number in group.numbers]),
        "sent_mbit": None,
        "lost_share": None,
    }


def _sent(group: Group, arrived_mbit: float, sockets: tuple[Sockets, Sockets]) -> dict[str, Any]:
    before, after = sockets[0].udp, sockets[1].udp
    assert before is not None and after is not None
    sent = sum(rates(before, after, group.numbers))
    return {
        "retransmissions": None,
        "rto_timeouts": None,
        **timed_out([None]),
        "sent_mbit": sent,
        # What was under way before may arrive in the phase.
        "lost_share": max(0.0, 1 - arrived_mbit / sent) if sent else None,
    }


def _stages(groups: Sequence[Group], marks: Sequence[Mark]) -> list[dict[str, Any]]:
    found = []
    for before, after in itertools.pairwise(marks):
        started = [group for group in groups if group.start_s <= before.at_s]
        flows = [flow for group in goodputs(before, after, started) for flow in group]
        found.append(
            {
                "from_s": before.at_s,
                "seconds": (after.tcp["clock_ns"] - before.tcp["clock_ns"]) / 1e9,
                "flows": len(flows),
                "goodput_sum_mbit": sum(flows),
                "jain": stats.jain(flows) if flows else None,
            }
        )
    return found


def delay_ms(queue: Mapping[str, Any] | None, limit_bytes: int, rate_mbit: float) -> dict[str, float] | None:
    """The queueing delay by the ``queue.rounds`` object of a result; None without an agent."""
    if queue is None or not queue["histogram"]:
        return None
    histogram = [(low, min(high, limit_bytes), ns) for low, high, ns in queue["histogram"]]
    depths = {
        "mean": queue["mean_bytes"],
        "p50": stats.time_percentile(histogram, 0.5) or 0.0,
        "p99": stats.time_percentile(histogram, 0.99) or 0.0,
        "max": max(high for _low, high, _ns in histogram),
    }
    return {name: depth * 8 / (rate_mbit * 1e3) for name, depth in depths.items()}


def utilisation(sent_bytes: int, seconds: float, rate_mbit: float) -> float:
    """The part of what the link carries in ``seconds`` that has left by it."""
    return sent_bytes * 8e-6 / (rate_mbit * seconds)

"""The figures of an incast, in the objects ``rounds``, ``mice``, ``mice_left_out`` and ``distance`` of a
policy in the result. Pure. Those of its elephants are in `common.elephants`.

    rounds          null without mice
      wanted          rounds that the scenario asks for; their mice are in `mice`
      made            rounds made: one more for each disturbed one, at most twice `wanted`
      disturbed       of these, rounds in whose volley the host took CPU time away, see `rounds.disturbed`
      counted_disturbed  of these, rounds that had to be counted because the undisturbed ones were too few:
                      the least disturbed
    mice            of the counted rounds; null without mice, otherwise
      count           connections opened, or to be opened
      unfinished      of these, without all bytes at round_timeout_s, ended by an error, or not begun
                      because those before them had not ended
      errors          {reason: count} of the unfinished
      fct_ms          count, mean, sd (of the sample), p50, p95, p99, max of the completion times in ms,
                      from connect() to the last byte, finished mice only; null when none finished
      fct_list_ms     each completion time, by round and then in the order of opening; null: unfinished
      goodput_mbit    payload of all rounds in the time to the last byte of each; an unfinished mouse counts
                      as round_timeout_s
      rto_timeouts    retransmission timeouts of mice, both ends, handshake included
      rto_source      "tcp_info" (exact), or "namespace": all timeouts of the senders in these rounds, each
                      from the end of the one before, elephants' included, because the kernel is older
                      than 6.7
      timeout_flows, timeout_share   mice with at least one timeout, see `common.timeouts`
      segments_dropped   data segments sent by the servers less those that reached the client
      client_retransmissions  what clients sent again: a SYN, a SYN-ACK, a request or its ACK was lost
      retransmissions    segments sent again, both ends
    mice_left_out   the same of the mice of all other rounds, so that one can see what was left out; null
                    when every round counts
    distance        limit_ms, the time that a volley takes on the wire alone, floor_ms, the p99 of the same
                    volley alone on this machine (null: not known, or it lost segments), and the mice's p99
                    over each, limit_times and floor_times
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments.measure.stats import fct_summary
from fairq_ryu.experiments.traffic.mice import NOT_BEGUN
from fairq_ryu.experiments.workloads.common.timeouts import timed_out


class Round(NamedTuple):
    """One volley of mice and its reports."""

    mice: list[dict[str, Any]]
    """reports of the client's end"""
    sender_timeouts: int
    """retransmission timeouts in the senders' namespaces since the end of the round before, elephants' too"""
    stolen_percent: float
    """of all CPU time during the volley"""


def mice_of(
    chosen: Sequence[Round], servers: Sequence[Mapping[str, Any]], timeout_s: float
) -> dict[str, Any] | None:
    """The mice of the chosen rounds alone, at both ends; None without any. ``timeout_s``: the time limit of
    a mouse.
    """
    if not chosen:
        return None
    client = [mouse for each in chosen for mouse in each.mice]
    ids = {mouse["id"] for mouse in client}
    summary = mice_summary(
        client,
        [mouse for mouse in servers if mouse["id"] in ids],
        sum(each.sender_timeouts for each in chosen),
    )
    return {**summary, "goodput_mbit": _goodput(chosen, timeout_s)}


def _goodput(chosen: Sequence[Round], timeout_s: float) -> float:
    last_ns = [
        max(timeout_s * 1e9 if mouse["last_ns"] is None else mouse["last_ns"] for mouse in each.mice)
        for each in chosen
    ]
    carried: int = sum(mouse["bytes"] for each in chosen for mouse in each.mice)
    return carried * 8e3 / sum(last_ns)


def mice_summary(
    client: Sequence[Mapping[str, Any]], servers: Sequence[Mapping[str, Any]], namespace_timeouts: int
) -> dict[str, Any]:
    """Mice from the reports of both ends, which are matched by id. ``servers`` has no others than the
    client's. ``namespace_timeouts`` replaces the sockets' own counter on kernels that have none.
    """
    by_id = {each["id"]: each for each in servers}
    begun = [each for each in client if each["error"] != NOT_BEGUN]
    both = [(each, by_id[each["id"]]) for each in begun if each["id"] in by_id]
    ends = [*begun, *servers]
    exact = all(each["total_rto"] is not None for each in ends)
    times = [each["fct_ns"] / 1e6 if each["fct_ns"] is not None else None for each in client]
    finished = [each for each in times if each is not None]
    timeouts = {each["id"]: each["total_rto"] for each in begun}
    for there in servers if exact else ():
        timeouts[there["id"]] += there["total_rto"]
    return {
        "count": len(client),
        "unfinished": len(client) - len(finished),
        "errors": dict(Counter(each["error"] for each in client if each["error"])),
        "fct_ms": fct_summary(finished),
        "fct_list_ms": times,
        "rto_timeouts": sum(each["total_rto"] for each in ends) if exact else namespace_timeouts,
        "rto_source": "tcp_info" if exact else "namespace",
        **timed_out(list(timeouts.values()) if exact else [None]),
        "segments_dropped": sum(there["data_segs_out"] - here["data_segs_in"] for here, there in both),
        "client_retransmissions": sum(each["total_retrans"] for each in begun),
        "retransmissions": sum(each["total_retrans"] for each in ends),
    }

"""The result of a run: one JSON object, documented here, written by `save` and read by `load`.

    schema      "fairq-result/3"; another number when a reader of this one would be misled. /2 has no
                repetitions, floor, distance and losses, and its drops are what the queue refused, while Open
                vSwitch lost more. /1 is the same
                without what is only there for traffic other than incast, `integrity`, `capture`, and the
                elephants' after_* figures
    scenario    every setting of the scenario as it was run (`settings.Scenario`)
    metadata    what it takes to repeat it (`machine.metadata`)
    policies    one object a policy, in the order in which they ran:
      policy          its name
      failed          null, or why there are no figures (then nothing below but `unsound` is present)
      unsound         null, or why the figures are not those of the policy: it failed, or was changed, while
                      they were taken. Results from before this was looked at have no such key
      deadlines, fanin, flood   of the traffic of that name, see below; otherwise not present, as are rounds,
                      mice and elephants where the traffic has none
      rounds          null without mice; results from before rounds were made again have no such key
        wanted          rounds that the scenario asks for; the mice of so many are in `mice`
        made            rounds made: one more for each disturbed one, at most twice `wanted`
        disturbed       of these, rounds in whose volley the host took CPU time away, see `rounds.disturbed`
        counted_disturbed  of these, rounds that had to be counted because the undisturbed ones were too few:
                        the least disturbed
      mice            of the counted rounds; null without mice, otherwise
        count           connections opened
        unfinished      of these, without all bytes at round_timeout_s, or ended by an error
        errors          {why: how many} of the unfinished
        fct_ms          count, mean, sd (of the sample), p50, p95, p99, max of the completion times in ms,
                        from connect() to the last byte, finished mice only; null when none finished
        fct_list_ms     each completion time, by round and then in the order of opening; null: unfinished
        rto_timeouts    retransmission timeouts of mice, both ends, handshake included
        rto_source      "tcp_info" (exact), or "namespace": all timeouts of the senders in these rounds, each
                        from the end of the one before, elephants' included, because the kernel is older
                        than 6.7
        segments_dropped   data segments sent by the servers less those that reached the client
        client_retransmissions  what clients sent again: a SYN, a SYN-ACK, a request or its ACK was lost
        retransmissions    segments sent again, both ends
      mice_left_out   the same of the mice of all other rounds, so that one can see what was left out; null
                      when every round counts. All that follows is of the whole phase, these rounds included.
      elephants       null without elephants, otherwise
        goodput_mbit    payload at the receiver during the rounds, Mbit/s, one number an elephant
        goodput_sum_mbit, jain
        alone_sum_mbit  the sum in the phase before, without mice or SYNs; null without that phase
        after_sum_mbit  the sum in the phase afterwards, likewise
        after_share     after_sum_mbit / alone_sum_mbit; null where there is one of them only
        retransmissions, rto_timeouts    of the elephants' sockets in the rounds (timeouts null before 6.7)
      senders         retransmissions, rto_timeouts: of the senders' namespaces during the rounds
      queue           of the bottleneck port
        port, limit_bytes
        qdisc_drops     packets dropped during the rounds for want of room, as tc counts them
        refused         of these, refused by the queue itself: then Open vSwitch may have lost others, too
        rounds, alone   figures of the agent for the rounds and for the phase without mice (or null):
                        seconds, mean_bytes, p99_bytes (of time), drops, packets, acks_rewritten, histogram
                        ([[lower bytes, upper bytes, ns], ...])
      cpu             idle_percent and stolen_percent of the machine's CPU time during the rounds: with none
                      idle or much stolen, the machine was measured and not the network;
                      switch_thread_percent: of one CPU, used by the thread of Open vSwitch that forwards
      distance        of incast: limit_ms, the time that a volley takes on the wire alone, floor_ms, the p99
                      of the same volley alone on this machine (null: not known), and the mice's p99 over
                      each, limit_times and floor_times
      losses          of the whole run at the bottleneck port, counted when all is quiet: packets refused by
                      the queue and taken before it could refuse them, both as tc counts them, and program,
                      what the program of `taildrop` counted (null with batch_loss)
      seconds         of the rounds
      integrity       flows (every one, probes of the network too), and of these mismatched: what came was not
                      what was sent. Such a run has failed, so this is 0
      capture         null, or of the ACKs that reached senders: acks, beyond (more than the receiver had
                      acknowledged by then), bad_checksums; missed: packets that were not caught, and not
                      judged
    comparison  {policy: ratios to the first policy}, see `compare`; of several repetitions their means, of
                times lower in the logarithm
    comparison_interval   {policy: {ratio: [low, high]}}: 95 % confidence intervals; empty for one repetition
    floor       the figures of the same volleys alone on an idle link with an ample buffer; null without
                volleys, or where that run failed
    repeat      repetitions
    repetitions each one: order (of the policies), floor, policies, comparison; null for a single one. Then
                every number in `policies` is a mean over repetitions, counts too, `interval` has half of its
                95 % confidence interval in the same shape, and lists of samples hold those of all

deadlines:

    announced       announcements that the controller took, 0 under a policy that takes none
    deadlines       flows with a deadline, of all runs; missed: of these, not complete by then
    impossible      deadlines that the link cannot meet, whatever it carries first
    runs_with_missed, unfinished, retransmissions, rto_timeouts (of the senders' sockets; null before 6.7)
    endless_goodput_mbit   of all endless flows in sum, mean of the runs, from the common start to the last
                    byte of the others; endless_longest_gap_ms: the longest time therein without a byte of
                    one. Null without any
    by_flow         each flow of the scenario in all runs: size_bytes, deadline_s, missed, ms (as fct_ms)
    runs            each run: flows (size_bytes, deadline_s, ms from the common start to the last byte, met,
                    error, retransmissions, rto_timeouts), endless (goodput_mbit, longest_gap_ms), seconds (to
                    the last byte), qdisc_drops, queue_mean_bytes, queue_p99_bytes, stolen_percent

fanin: announced, and sums of what is in each entry of sweep, one for each number of flows:

    n               flows of each application
    rounds          as above
    distance        as above, of the median round's last byte
    flows, unfinished, errors, deadlines, missed   of the counted rounds, as are all but the last three
    goodput_mbit    payload of all rounds in the time to the last byte of each
    last_byte_ms    count, mean, ... of the times from a round's start to its last byte; an unfinished flow
                    counts as round_timeout_s. last_byte_list_ms: each
    fct_ms          of the finished flows
    rto_timeouts, rto_source, retransmissions   of the senders
    qdisc_drops, queue, stolen_percent    of all rounds with this n, disturbed ones too; queue as queue.rounds

flood: syns sent in seconds, syn_rate (per s, as achieved), during_share (elephants' goodput during the flood
/ before it), after_queue (as queue.alone). elephants is of the time of the flood, and so is all else.

"During the rounds" and "of the rounds" mean the whole phase, from before the first round to the end of the
last, all that were made. Totals of policies that made different numbers of rounds (retransmissions, timeouts,
drops) are to be compared by the round.

Rates are 10**6 bit/s of TCP payload, as the receiver took it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.report import repetitions

SCHEMA = "fairq-result/3"
READABLE = (SCHEMA, "fairq-result/2", "fairq-result/1")
"""Schemas that `load` takes. Results of /1 are of incast and have none of the keys that came later."""
FILE_NAME = "result.json"


def fct_summary(times_ms: Sequence[float]) -> dict[str, float] | None:
    """Count, mean, sd, p50, p95, p99, max of completion times; None without any."""
    if not times_ms:
        return None
    return {
        "count": len(times_ms),
        "mean": stats.mean(times_ms),
        "sd": stats.deviation(times_ms),
        "p50": stats.percentile(times_ms, 0.50),
        "p95": stats.percentile(times_ms, 0.95),
        "p99": stats.percentile(times_ms, 0.99),
        "max": max(times_ms),
    }


def mice_summary(
    client: Sequence[Mapping[str, Any]], servers: Sequence[Mapping[str, Any]], namespace_timeouts: int
) -> dict[str, Any]:
    """The mice of a run, from the reports of both ends, which are matched by id.

    ``servers`` has no mice but the client's. ``namespace_timeouts`` stands in for the sockets' own counter on
    kernels that have none.
    """
    by_id = {each["id"]: each for each in servers}
    both = [(each, by_id[each["id"]]) for each in client if each["id"] in by_id]
    ends = [*client, *servers]
    exact = all(each["total_rto"] is not None for each in ends)
    times = [each["fct_ns"] / 1e6 if each["fct_ns"] is not None else None for each in client]
    finished = [each for each in times if each is not None]
    return {
        "count": len(client),
        "unfinished": len(client) - len(finished),
        "errors": dict(Counter(each["error"] for each in client if each["error"])),
        "fct_ms": fct_summary(finished),
        "fct_list_ms": times,
        "rto_timeouts": sum(each["total_rto"] for each in ends) if exact else namespace_timeouts,
        "rto_source": "tcp_info" if exact else "namespace",
        "segments_dropped": sum(there["data_segs_out"] - here["data_segs_in"] for here, there in both),
        "client_retransmissions": sum(each["total_retrans"] for each in client),
        "retransmissions": sum(each["total_retrans"] for each in ends),
    }


def elephants_summary(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    info_before: Mapping[str, Mapping[str, Any]],
    info_after: Mapping[str, Mapping[str, Any]],
    alone_sum_mbit: float | None,
    after_sum_mbit: float | None = None,
) -> dict[str, Any]:
    """The elephants between two marks of the sink and two readings of their sockets."""
    goodput = goodputs(before, after)
    timeouts: int | None = None
    if all(each["total_rto"] is not None for each in info_after.values()):
        timeouts = sum(info_after[i]["total_rto"] - info_before[i]["total_rto"] for i in info_after)
    return {
        "goodput_mbit": goodput,
        "goodput_sum_mbit": sum(goodput),
        "jain": stats.jain(goodput),
        "alone_sum_mbit": alone_sum_mbit,
        "after_sum_mbit": after_sum_mbit,
        "after_share": after_sum_mbit / alone_sum_mbit
        if after_sum_mbit is not None and alone_sum_mbit
        else None,
        "retransmissions": sum(
            info_after[i]["total_retrans"] - info_before[i]["total_retrans"] for i in info_after
        ),
        "rto_timeouts": timeouts,
    }


def goodputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[float]:
    """Mbit/s of each elephant between two marks of the sink, in the order of their numbers."""
    elapsed = (after["clock_ns"] - before["clock_ns"]) / 1e9
    return [
        (after["bytes"][index] - before["bytes"].get(index, 0)) * 8e-6 / elapsed
        for index in sorted(after["bytes"], key=int)
    ]


def compare(policies: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Ratios of each later policy to the first; null where either has no figure or the divisor is 0.

    ``*_times_lower`` is first / this (more is better); ``*_share`` is this / first. ``drops_share`` is of the
    drops in each round made: the one that had more rounds disturbed was measured for longer.
    """
    if not policies:
        return {}
    first, *others = policies
    return {other["policy"]: _ratios(first, other) for other in others}


def _ratios(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float | None]:
    def figure(result: Mapping[str, Any], *path: str) -> float | None:
        value: Any = result
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return None if value is None else float(value)

    def ratio(over: float | None, under: float | None) -> float | None:
        return None if over is None or not under else over / under

    def drops(result: Mapping[str, Any]) -> float | None:
        return ratio(figure(result, "queue", "qdisc_drops"), figure(result, "rounds", "made") or 1.0)

    def lower(*path: str) -> float | None:
        return ratio(figure(first, *path), figure(other, *path))

    def share(*path: str) -> float | None:
        return ratio(figure(other, *path), figure(first, *path))

    return {
        "fct_mean_times_lower": lower("mice", "fct_ms", "mean"),
        "fct_sd_times_lower": lower("mice", "fct_ms", "sd"),
        "fct_p99_times_lower": lower("mice", "fct_ms", "p99"),
        "fct_max_times_lower": lower("mice", "fct_ms", "max"),
        "mice_rto_share": share("mice", "rto_timeouts"),
        "mice_drops_share": share("mice", "segments_dropped"),
        "goodput_share": share("elephants", "goodput_sum_mbit"),
        "jain_share": share("elephants", "jain"),
        "queue_mean_share": share("queue", "rounds", "mean_bytes"),
        "drops_share": ratio(drops(other), drops(first)),
        "after_share": share("elephants", "after_sum_mbit"),
        "deadlines_missed_share": share("deadlines", "missed"),
        "endless_goodput_share": share("deadlines", "endless_goodput_mbit"),
        "fanin_missed_share": share("fanin", "missed"),
        "fanin_rto_share": share("fanin", "rto_timeouts"),
        "last_byte_times_lower": _least_times_lower(first, other),
    }


def _least_times_lower(first: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    """How many times sooner the last byte of a median round came; of several numbers of flows the worst."""
    sweeps = [(each.get("fanin") or {}).get("sweep", ()) for each in (first, other)]
    medians = [(a["last_byte_ms"]["p50"], b["last_byte_ms"]["p50"]) for a, b in zip(*sweeps, strict=False)]
    return min((a / b for a, b in medians if b), default=None)


def assemble(
    scenario: Mapping[str, Any], metadata: Mapping[str, Any], measured: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The whole object, of one or more repetitions: of each its ``order``, ``floor`` and ``policies``."""
    each = [{**one, "comparison": compare(_worked(one["policies"]))} for one in measured]
    policies = [repetitions.merge(same) for same in zip(*(one["policies"] for one in each), strict=True)]
    worked = {policy["policy"] for policy in _worked(policies)}
    comparison, interval = repetitions.compared(
        [compare([policy for policy in one["policies"] if policy["policy"] in worked]) for one in each]
    )
    floors = [one["floor"] for one in each]
    return {
        "schema": SCHEMA,
        "scenario": dict(scenario),
        "metadata": dict(metadata),
        "policies": policies,
        "comparison": comparison,
        "comparison_interval": interval,
        "floor": repetitions.merge(floors) if all(floors) else None,
        "repeat": len(each),
        "repetitions": each if len(each) > 1 else None,
    }


def _worked(policies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in policies if not each["failed"]]


def save(result: Mapping[str, Any], directory: Path) -> Path:
    """Write ``directory``/result.json, whole or not at all, and return its path."""
    path = directory / FILE_NAME
    draft = directory / f".{FILE_NAME}.{os.getpid()}"
    draft.write_text(json.dumps(result, indent=1) + "\n")
    draft.replace(path)
    return path


def load(directory: Path) -> dict[str, Any]:
    """Read a result. ``UserError`` when there is none or it is not one."""
    path = directory / FILE_NAME
    remedy = "make one with `fairq run incast --policy droptail,fairq --out DIR`"
    try:
        result = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"there is no {path}", remedy) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "check its permissions") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", remedy) from None
    if not isinstance(result, dict) or result.get("schema") not in READABLE:
        raise UserError(f"{path} is not a {SCHEMA} file", remedy)
    missing = [key for key in ("scenario", "metadata", "policies", "comparison") if key not in result]
    if missing:
        raise UserError(f"{path} lacks {missing[0]!r}", remedy)
    return result

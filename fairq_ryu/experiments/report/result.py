"""The result of a run: one JSON object, documented here, written by `save` and read by `load`.

    schema      "fairq-result/3", of which result.schema.json is the JSON Schema; another number when a
                reader of this one would be misled; `load` refuses others
    scenario    every setting of the scenario as it was run (`settings.Scenario`)
    metadata    what is needed to repeat it (`machine.metadata`); `simulator` of a simulated run: ns3, its
                release, link_mbit and ack_every as of `simulator.order.Hosts`, and round_trip_ms. Such a run
                has no cpu, losses and integrity (null)
    policies    one object for each policy, in the order in which they ran:
      policy          its name
      failed          null, or why there are no figures (then no other key but `unsound` is present)
      unsound         null, or why the figures are not those of the policy: it failed, or was changed, while
                      they were taken
      tcp             the congestion controls of the hosts, or of heterogeneous flows: for each name in
                      the scenario, its name in the kernel and whether it is the kernel's or was loaded for
                      the run
      tcp_left_out    for each of these that was loaded, how many windows the kernel has reduced without
                      asking it: 0, unless the kernel leaves out eBPF programs
      rounds, mice, mice_left_out, distance   of an incast, see `workloads.incast.figures`
      elephants       of an incast, a flood and messages, see `workloads.common.elephants`
      deadlines       see `workloads.deadlines.figures`
      fanin           see `workloads.fanin.figures`
      empirical       see `workloads.empirical.figures`
      flood           see `workloads.flood.measurement`
      messages        see `workloads.messages.measurement`
      heterogeneous   see `workloads.heterogeneous.figures`
      tenants         see `workloads.tenants.figures`
      pairs           see `workloads.pairs.figures`; of several rates, senders, losses, integrity, seconds and
                      the drops of queue are sums over them, and all else of queue and cpu is of the highest
      senders         retransmissions, rto_timeouts: of the senders' namespaces during the rounds
      queue           of the bottleneck port
        port, limit_bytes
        qdisc           the qdisc of the kernel that held its packets, with its options; "": a FIFO
        law             the queue law that judged its packets, with its variant if it has several; "": none;
                        or the kind of that qdisc
        qdisc_drops     packets dropped during the rounds for want of room, as tc counts them
        refused         of these, refused by the queue itself: then Open vSwitch may have lost others, too
        rounds, alone   figures of the agent for the rounds and for the phase without mice (or null):
                        seconds, mean_bytes, p99_bytes (of time), drops, packets, acks_rewritten, law (packets
                        judged, dropped and marked by the queue law, or by the qdisc of the kernel, which are
                        not in drops; null: no law),
                        histogram ([[lower bytes, upper bytes, ns], ...])
      cpu             idle_percent and stolen_percent of the machine's CPU time during the rounds: with none
                      idle or much stolen, the machine was measured and not the network;
                      switch_thread_percent: of one CPU, used by the thread of Open vSwitch that forwards;
                      switch_thread_volleys_percent: the same, only from the start of each volley to its last
                      byte (null without volleys)
      losses          of the whole run at the bottleneck port, counted after all traffic has ended: packets
                      refused by the queue, and taken by a filter before the queue could refuse them, both as
                      tc counts them, program, as the program of `taildrop` counts them (null with
                      batch_loss, and with the kernel's datapath), and law, those that the queue laws of the
                      port, or its qdisc of the kernel, have dropped (null without one). taken is the sum of
                      program and law, and with turns of handshakes that have waited; a qdisc of the kernel
                      drops by itself, behind the filters
      seconds         of the rounds
      integrity       flows (every one, probes of the network too), and of these mismatched: other bytes
                      arrived than were sent. Such a run has failed, so this is 0
      capture         null, or of the ACKs that reached senders: acks, beyond (more than the receiver had
                      acknowledged by then), bad_checksums; missed: packets that were not captured, and so not
                      checked
    comparison  {policy: ratios to the first policy}, see `compare`; of several repetitions their means, of
                times lower in the logarithm
    comparison_interval   {policy: {ratio: [low, high]}}: 95 % confidence intervals; empty for one repetition
    floor       the figures of the same volleys alone on an idle link with an ample buffer; null without
                volleys, or where that run failed
    repeat      repetitions
    repetitions each one: order (of the policies), floor, policies, comparison; null for a single one. Then
                every number in `policies` is a mean over repetitions, counts too, `interval` has half of its
                95 % confidence interval in the same shape, and lists of samples contain those of all

Figures of one workload are present only in results of that workload. "During the rounds" and "of the rounds"
mean the whole phase, from before the first round to the end of the last, including rounds that are not
counted. Totals of policies that made different numbers of rounds (retransmissions, timeouts, drops) are to be
compared by the round.

Rates are 10**6 bit/s of TCP payload that the receiver took.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.report import repetitions
from fairq_ryu.experiments.workloads import registry

SCHEMA = "fairq-result/3"
FILE_NAME = "result.json"
_KEYS = (
    *("scenario", "metadata", "policies", "comparison", "comparison_interval"),
    *("floor", "repeat", "repetitions"),
)


def compare(policies: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Ratios of each later policy to the first; null where either has no figure or the divisor is 0.

    ``*_times_lower`` is first / this (more is better); ``*_share`` is this / first. The ratios of all
    workloads are included.
    """
    if not policies:
        return {}
    first, *others = policies
    ratios = registry.ratios()
    return {other["policy"]: {each.name: each.of(first, other) for each in ratios} for other in others}


def assemble(
    scenario: Mapping[str, Any], metadata: Mapping[str, Any], measured: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The whole object, of one or more repetitions: of each its ``order``, ``floor`` and ``policies``."""
    each = [{**one, "comparison": compare(_succeeded(one["policies"]))} for one in measured]
    policies = [repetitions.merge(same) for same in zip(*(one["policies"] for one in each), strict=True)]
    succeeded = {policy["policy"] for policy in _succeeded(policies)}
    comparison, interval = repetitions.compared(
        [compare([policy for policy in one["policies"] if policy["policy"] in succeeded]) for one in each]
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


def _succeeded(policies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in policies if not each["failed"]]


def save(result: Mapping[str, Any], directory: Path) -> Path:
    """Write ``directory``/result.json, whole or not at all, and return its path. ``OSError``, and no draft is
    left, if there is no room.
    """
    path = directory / FILE_NAME
    write_whole(path, result)
    return path


def write_whole(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object as JSON, whole or not at all. ``OSError``, and no draft is left, if there is no
    room.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(content, indent=1) + "\n")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def saved(assembled: Mapping[str, Any], out: Path) -> Path:
    """Save the result to ``out``, or else to the machine's directory for temporary files, because a run may
    have taken hours. ``UserError``, which names the place, if it is not in ``out``.
    """
    try:
        return save(assembled, out)
    except OSError as error:
        failed = f"the result cannot be written to {out}: {error.strerror}"
    try:
        place = Path(tempfile.mkdtemp(prefix="fairq-result-"))
        try:
            spare = save(assembled, place)
        except OSError:
            place.rmdir()
            raise
    except OSError:
        raise UserError(f"{failed}; nothing but the table is left", "make room, and run it again") from None
    raise UserError(f"{failed}; it is in {spare}", f"make room, and move it to {out / FILE_NAME}")


def load(directory: Path) -> dict[str, Any]:
    """Read a result; `series`, which no file has, is the command that makes it if it is a part of a series.
    ``UserError`` when there is none, it is not one, or it is of another schema.
    """
    path = directory / FILE_NAME
    remedy = "make one with `fairq run incast --policy droptail,droptail-rto5,fairq --out DIR`"
    try:
        result = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"there is no {path}", remedy) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "check its permissions") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", remedy) from None
    if not isinstance(result, dict) or "schema" not in result:
        raise UserError(f"{path} is not a result", remedy)
    if result["schema"] != SCHEMA:
        raise UserError(
            f"{path} is of schema {result['schema']!r}, and this version of fairq_ryu reads only {SCHEMA!r}",
            "repeat the run with this version, or use the version that made the result",
        )
    missing = [key for key in _KEYS if key not in result]
    if missing:
        raise UserError(f"{path} lacks {missing[0]!r}", remedy)
    if (directory / "sweep.json").exists() and (command := _series(directory.resolve())):
        result["series"] = command
    return result


def _series(directory: Path) -> str | None:
    """The command that makes the experiment of a series, beside which papers.json is; None: it is of none."""
    try:
        quick = json.loads((directory.parent / "papers.json").read_text())["quick"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return f"fairq run papers{' --quick' if quick else ''} --only {directory.name}"

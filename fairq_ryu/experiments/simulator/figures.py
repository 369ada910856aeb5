"""The figures of a simulated policy, in the objects that ``report.result`` documents. Pure.

``answer`` is what the simulator has written: ``marks``, readings of all counters at the beginning of each
phase, by ``name`` (``warm``, ``begin``, ``end``, ``after``), and ``rounds``, the mice of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.workloads.common import rounds
from fairq_ryu.experiments.workloads.common.elephants import elephants_summary, goodputs
from fairq_ryu.experiments.workloads.incast.figures import mice_summary
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario

FRAME = 1514
"""The histogram of the queue is by multiples of a full frame, bytes."""
_NO_LAW = {"judged": 0, "dropped": 0, "marked": 0}


def figures_of(answer: Mapping[str, Any], scenario: IncastScenario, queue_law: str | None) -> dict[str, Any]:
    """One policy's figures; ``queue_law`` by name, None: it has none."""
    marks = {each["name"]: each for each in answer["marks"]}
    begin, end = marks["begin"], marks["end"]
    made = answer["rounds"] if scenario.mice_per_sender else []
    client = list(_ends(made, "asking", scenario))
    law = queue_law is not None
    return {
        "rounds": rounds.figures([0.0] * len(made), scenario.rounds) if made else None,
        "mice": mice_summary(client, list(_ends(made, "answering", scenario)), 0) if made else None,
        "mice_left_out": None,
        "elephants": _elephants(marks, scenario) if scenario.elephants else None,
        "senders": {
            "retransmissions": _spent(begin, end, "senders", "retransmissions"),
            "rto_timeouts": _spent(begin, end, "senders", "timeouts"),
        },
        "queue": {
            "port": " to ".join(scenario.plan.bottleneck),
            "limit_bytes": scenario.buffer_bytes,
            "qdisc": "",
            "law": queue_law or "",
            "qdisc_drops": _spent(begin, end, "queue", "drops"),
            "refused": _spent(begin, end, "queue", "drops"),
            "rounds": between(begin, end, law),
            "alone": between(marks["warm"], begin, law) if scenario.elephants_only_s else None,
        },
        "cpu": None,
        "seconds": (end["clock_ns"] - begin["clock_ns"]) / 1e9,
        "losses": None,
        "integrity": None,
        "capture": None,
    }


def between(before: Mapping[str, Any], after: Mapping[str, Any], law: bool) -> dict[str, Any] | None:
    """The bottleneck's queue between two marks; None if they are at one time."""
    elapsed = after["clock_ns"] - before["clock_ns"]
    if not elapsed:
        return None
    depths = stats.histogram_difference(_histogram(before), _histogram(after))
    return {
        "seconds": elapsed / 1e9,
        "mean_bytes": _spent(before, after, "queue", "byte_ns") / elapsed,
        "p99_bytes": stats.time_percentile(depths, 0.99),
        "drops": _spent(before, after, "queue", "drops"),
        "packets": _spent(before, after, "queue", "packets"),
        "acks_rewritten": _spent(before, after, "queue", "lowered"),
        "law": {name: _spent(before, after, "queue", name) for name in _NO_LAW} if law else None,
        "histogram": [[low, high, ns] for low, high, ns in depths if ns > 0],
    }


def _histogram(mark: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    return [(low, low + FRAME, ns) for low, ns in mark["queue"]["depth_ns"]]


def _spent(before: Mapping[str, Any], after: Mapping[str, Any], group: str, name: str) -> int:
    return int(after[group][name] - before[group][name])


def _ends(
    made: Sequence[Sequence[Mapping[str, Any]]], end: str, scenario: IncastScenario
) -> Iterator[dict[str, Any]]:
    """The reports of the mice's ends, as the generators of the bench write them."""
    for number, mouse in enumerate(mouse for each in made for mouse in each):
        counts, took = mouse[end], mouse["fct_ns"]
        in_time = took is not None and took <= scenario.round_timeout_s * 1e9
        yield {
            "id": number,
            "fct_ns": took if in_time else None,
            "error": None if in_time else "timeout",
            "total_rto": counts["timeouts"],
            "total_retrans": counts["retransmissions"],
            "data_segs_in": counts["data_in"],
            "data_segs_out": counts["data_out"],
        }


def _elephants(marks: Mapping[str, Mapping[str, Any]], scenario: IncastScenario) -> dict[str, Any]:
    sinks = {name: _sink(mark) for name, mark in marks.items()}
    infos = {name: _info(mark) for name, mark in marks.items()}
    alone = sum(goodputs(sinks["warm"], sinks["begin"])) if scenario.elephants_only_s else None
    after = sum(goodputs(sinks["end"], sinks["after"])) if scenario.after_s else None
    return elephants_summary(sinks["begin"], sinks["end"], infos["begin"], infos["end"], alone, after)


def _sink(mark: Mapping[str, Any]) -> dict[str, Any]:
    arrived = {str(number): each["received"] for number, each in enumerate(mark["elephants"])}
    return {"clock_ns": mark["clock_ns"], "bytes": arrived}


def _info(mark: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(number): {
            "total_rto": each["counts"]["timeouts"],
            "total_retrans": each["counts"]["retransmissions"],
        }
        for number, each in enumerate(mark["elephants"])
    }

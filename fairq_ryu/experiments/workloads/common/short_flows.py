"""Short flows that start at random times, with sizes of a Pareto distribution."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure.stats import fct_summary
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.flow_sender import HEADER
from fairq_ryu.experiments.traffic.payload import checksum
from fairq_ryu.experiments.traffic.workers import Worker
from fairq_ryu.experiments.workloads.common.measurement import START_S, Measurement
from fairq_ryu.experiments.workloads.common.settings import ShortScenario
from fairq_ryu.experiments.workloads.common.timeouts import timed_out

LINGER_S = 10.0
"""Short flows have this long to finish after the measured phase."""


class ShortFlows:
    """Short flows from ``senders`` in turn to the receiver."""

    def __init__(
        self, measurement: Measurement[Any], testbed: Testbed, scenario: ShortScenario, senders: Sequence[str]
    ) -> None:
        """Start the generators; nothing is sent yet."""
        self._scenario = scenario
        self._source = testbed.local_worker("arrivals")
        self._source.receive("ready", START_S)
        receiver = scenario.plan.receiver
        self._collector, port = measurement.start_worker(receiver, "collector")
        pids = [testbed.host(name).pid for name in senders]
        self._to = {"address": testbed.host(receiver).IP(), "port": port, "pids": pids}

    def begin(self, at_ns: int) -> None:
        """Start flows from ``at_ns`` on."""
        scenario = self._scenario
        self._source.ask(
            "arrive",
            at_ns=at_ns,
            per_s=scenario.short_rate,
            seed=scenario.seed,
            least=max(HEADER.size + 1, scenario.short_least_bytes),
            most=scenario.short_most_bytes,
            shape=scenario.short_shape,
            **self._to,
        )

    def finish(self, measurement: Measurement[Any]) -> list[dict[str, Any]]:
        """Start no more; the flows, each with ``done_ns``, when its last byte has arrived (None: it has not),
        and ``total_rto``, its sender's timeouts. What arrived is compared with what was sent.
        """
        started: list[dict[str, Any]] = self._source.ask("cease")["flows"]
        return arrived_and_compared(measurement, self._source, self._collector, started, LINGER_S)


def arrived_and_compared(
    measurement: Measurement[Any],
    source: Worker,
    collector: Worker,
    started: Sequence[Mapping[str, Any]],
    within_s: float,
) -> list[dict[str, Any]]:
    """Flows that ``source`` has started, each with what `ShortFlows.finish` says, once all have ended or
    ``within_s`` have passed. What arrived is compared with what was sent.
    """
    ids = [flow["id"] for flow in started]
    until_ns = time.monotonic_ns() + int(within_s * 1e9)
    arrived = collector.ask("await", within_s + 20.0, ids=ids, until_ns=until_ns)["flows"]
    sent = source.ask("report", 30.0, ids=ids, timeout_s=1.0)["flows"]
    for flow, here, there in zip(started, arrived, sent, strict=True):
        whole = here["done_ns"] is None or here["bytes"] == flow["size"] - HEADER.size
        same = here["crc"] == checksum(flow["seed"], here["bytes"])
        measurement.integrity.flow(whole and same and here["bytes"] <= there["sent"])
    return [
        {**flow, "done_ns": here["done_ns"], "total_rto": there.get("total_rto")}
        for flow, here, there in zip(started, arrived, sent, strict=True)
    ]


def short_figures(flows: Sequence[Mapping[str, Any]], phase_ns: tuple[int, int]) -> dict[str, Any]:
    """The short flows that were due in the phase, its end excluded: what `flow_figures` has of their
    times from connect() to the last byte. ``flows`` as `ShortFlows.finish` returns them.
    """
    # By when they were due: a flow that the machine starts late, or that ends late, belongs to its phase.
    begin, end = phase_ns
    counted = [flow for flow in flows if begin <= flow["due_ns"] < end]
    times = [
        None if flow["done_ns"] is None else (flow["done_ns"] - flow["start_ns"]) / 1e6 for flow in counted
    ]
    return flow_figures(times, [flow["total_rto"] for flow in counted])


def flow_figures(times_ms: Sequence[float | None], timeouts: Sequence[int | None]) -> dict[str, Any]:
    """Of flows with these times (None: unfinished) and timeouts: ``count``, ``unfinished``, ``fct_ms``, the
    summary of the times of those that have finished (None: none), and what `timed_out` has.
    """
    finished = [each for each in times_ms if each is not None]
    return {
        "count": len(times_ms),
        "unfinished": len(times_ms) - len(finished),
        "fct_ms": fct_summary(finished),
        **timed_out(timeouts),
    }

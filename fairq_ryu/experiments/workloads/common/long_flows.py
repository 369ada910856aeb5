"""Long TCP flows, each from its sender to its receiver, with its congestion control and its start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import RunError, ask_all
from fairq_ryu.experiments.workloads.common.counts import Counts
from fairq_ryu.experiments.workloads.common.measurement import Measurement
from fairq_ryu.experiments.workloads.common.transfers import finish_transfers


class LongFlow(NamedTuple):
    """A flow without end; ``sender`` and ``receiver`` are hosts."""

    number: int
    sender: str
    receiver: str
    control: str
    """its congestion control, as the scenario names it"""
    start_s: float
    """after the first flow may start"""


class LongFlows:
    """The generators of long flows: started in the hosts, marked while they run, compared at the end."""

    def __init__(
        self, measurement: Measurement[Any], testbed: Testbed, flows: Sequence[LongFlow], seed: int
    ) -> None:
        """Start the generators; nothing is sent yet."""
        self._testbed = testbed
        self._seed = seed
        self._flows = flows
        self._sinks = {
            name: measurement.start_worker(name, "sink")[0]
            for name in dict.fromkeys(flow.receiver for flow in flows)
        }
        hosts = list(dict.fromkeys(flow.sender for flow in flows))
        workers = measurement.start_workers(hosts, "longflows")
        self._workers = {name: worker for name, (worker, _port) in zip(hosts, workers, strict=True)}

    def begin(self, at_ns: int) -> None:
        """Order all flows to start; ``at_ns``: when those start whose start is 0."""
        # Receivers, too: where packets are marked, both ends of a flow need a control that echoes marks.
        ends = dict.fromkeys((flow.receiver, flow.control) for flow in self._flows)
        ports = {
            (receiver, control): self._sinks[receiver].ask("listen", cc=self._name(control))["port"]
            for receiver, control in ends
        }
        for sender, worker in self._workers.items():
            orders = [
                {
                    "index": flow.number,
                    "address": self._testbed.host(flow.receiver).IP(),
                    "port": ports[flow.receiver, flow.control],
                    "cc": self._name(flow.control),
                    "at_ns": at_ns + int(flow.start_s * 1e9),
                }
                for flow in self._flows
                if flow.sender == sender
            ]
            worker.ask("begin", flows=orders, seed=self._seed)

    def _name(self, control: str) -> str:
        return self._testbed.tcp.name_of(control)

    def mark(self) -> Counts:
        """What has arrived until now."""
        seen = ask_all(list(self._sinks.values()), "mark")
        arrived = {number: count for each in seen for number, count in each["bytes"].items()}
        return {"clock_ns": seen[0]["clock_ns"] if seen else time.monotonic_ns(), "bytes": arrived}

    def sockets(self) -> dict[str, Any]:
        """TCP_INFO of the sockets that send, by the number of the flow as text."""
        found: dict[str, Any] = {}
        for answer in ask_all(list(self._workers.values()), "info"):
            found.update(answer["flows"])
        return found

    def check_controls(self) -> None:
        """`RunError` unless the sockets at both ends of each flow that has a connection use its congestion
        control.
        """
        wanted = {str(flow.number): self._name(flow.control) for flow in self._flows}
        for end, workers in (("sender", self._workers), ("receiver", self._sinks)):
            for answer in ask_all(list(workers.values()), "controls"):
                for number, name in answer["flows"].items():
                    if name != wanted[number]:
                        raise RunError(
                            f"the {end}'s socket of flow {number} uses the congestion control {name} and not"
                            f" {wanted[number]}"
                        )

    def finish(self, measurement: Measurement[Any]) -> None:
        """End all flows, and compare what arrived of each with what was sent."""
        finish_transfers(measurement, list(self._workers.values()), *self._sinks.values())

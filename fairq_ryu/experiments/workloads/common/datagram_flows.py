"""UDP flows at a constant rate, beside other traffic: they never slow down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import Worker, ask_all
from fairq_ryu.experiments.workloads.common.measurement import Measurement


class DatagramFlow(NamedTuple):
    """A flow: its number, the host that sends it, and when it begins after the common start, s."""

    number: int
    host: str
    start_s: float


class DatagramFlows:
    """Flows to one receiver, each of ``mbit`` Mbit/s of payload; their generators start immediately."""

    def __init__(
        self,
        measurement: Measurement[Any],
        testbed: Testbed,
        flows: Sequence[DatagramFlow],
        receiver: str,
        mbit: float,
        seed: int,
    ) -> None:
        self._seed = seed
        by_host: dict[str, list[DatagramFlow]] = {}
        for flow in flows:
            by_host.setdefault(flow.host, []).append(flow)
        started = measurement.start_workers(list(by_host), "udp")
        self._sink, port = measurement.start_worker(receiver, "datagrams")
        self._sink.ask("expect", seed=seed)
        self._to = {"address": testbed.host(receiver).IP(), "port": port, "mbit": mbit}
        self._sources: list[tuple[Worker, list[DatagramFlow]]] = [
            (worker, own) for (worker, _port), own in zip(started, by_host.values(), strict=True)
        ]

    def begin(self, at_ns: int) -> None:
        """Order all flows to start, from ``at_ns`` of the monotonic clock on."""
        for worker, own in self._sources:
            orders = [
                {"index": flow.number, "at_ns": at_ns + int(flow.start_s * 1e9), **self._to} for flow in own
            ]
            worker.ask("begin", flows=orders, seed=self._seed)

    def ask_mark(self) -> None:
        """Ask what has arrived; `mark` answers."""
        self._sink.send("mark")

    def mark(self) -> dict[str, Any]:
        """The bytes of each flow that had arrived when `ask_mark` was called, with the time."""
        return self._sink.receive("mark", 10.0)

    def sent(self, command: str = "mark") -> dict[str, Any]:
        """The bytes that each flow has sent, with the time."""
        answers = ask_all([worker for worker, _own in self._sources], command)
        sent = {number: count for each in answers for number, count in each["bytes"].items()}
        return {"clock_ns": answers[0]["clock_ns"], "bytes": sent}

    def finish(self, measurement: Measurement[Any]) -> None:
        """End all flows; what has arrived is what was sent, and no more."""
        sent = self.sent("finish")["bytes"]
        arrived = self._sink.ask("mark")
        for number, count in sent.items():
            measurement.integrity.flow(arrived["bytes"].get(number, 0) <= count and not arrived["altered"])

"""The elephants of a measurement: started together, counted at the receiver, and checked at the end.

Their figures, in the ``elephants`` object of a policy in the result, which is null without elephants:

    goodput_mbit    payload at the receiver during the rounds, Mbit/s, one number for each elephant
    goodput_sum_mbit, jain
    alone_sum_mbit  the sum in the phase before, without mice or SYNs; null without that phase
    after_sum_mbit  the sum in the phase afterwards, likewise
    after_share     after_sum_mbit / alone_sum_mbit; null where one of them is null
    retransmissions, rto_timeouts    of the elephants' sockets in the rounds (timeouts null before 6.7)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.traffic.workers import ask_all
from fairq_ryu.experiments.workloads.common.measurement import Measurement, queue_between
from fairq_ryu.experiments.workloads.common.transfers import finish_transfers


class ElephantGroup:
    """``count`` elephants from ``hosts`` to ``receivers``, both in turn; their workers start immediately."""

    def __init__(
        self,
        measurement: Measurement[Any],
        receivers: Sequence[str],
        hosts: Sequence[str],
        count: int,
        seed: int,
    ) -> None:
        self.count = count
        self._seed = seed
        sinks = measurement.start_workers(list(receivers), "sink")
        self._sinks = [worker for worker, _port in sinks]
        self.ports = [port for _worker, port in sinks]
        """of the receivers, in their order"""
        self._workers = [
            worker for worker, _port in measurement.start_workers(list(hosts[:count]), "elephants")
        ]

    def start(self, *addresses: str) -> None:
        """All elephants start to send to the receivers' ``addresses``."""
        to = [{"address": address, "port": port} for address, port in zip(addresses, self.ports, strict=True)]
        for place, worker in enumerate(self._workers):
            numbers = range(place, self.count, len(self._workers))
            flows = [{"index": number, **to[number % len(to)]} for number in numbers]
            worker.send("start", flows=flows, seed=self._seed)
        for worker in self._workers:
            worker.receive("start", 30.0)

    def mark(self) -> dict[str, Any]:
        """The bytes of each elephant that have arrived, with the time. A sink only knows those that have
        sent some.
        """
        seen = ask_all(self._sinks, "mark")
        there = {number: count for each in seen for number, count in each["bytes"].items()}
        arrived = {str(number): there.get(str(number), 0) for number in range(self.count)}
        return {**seen[0], "bytes": arrived}

    def measure_alone(
        self, measurement: Measurement[Any], step: str, duration: float, before: float
    ) -> tuple[float | None, dict[str, Any] | None]:
        """Sum of the goodputs over ``duration`` s without other traffic, Mbit/s, and the figures of the queue
        meanwhile; None without elephants or duration. ``before`` is the planned time before this phase, s.
        """
        if not self.count or not duration:
            return None, None
        queue_before, lost_before, mark_before = (
            measurement.read_queue(),
            measurement.read_losses(),
            self.mark(),
        )
        measurement.sleep(step, duration, before)
        mark_after, queue_after = self.mark(), measurement.read_queue()
        lost = measurement.read_losses().since(lost_before)
        return sum(goodputs(mark_before, mark_after)), queue_between(queue_before, queue_after, lost)

    def info(self) -> dict[str, Any]:
        """The counters of each elephant's socket."""
        flows: dict[str, Any] = {}
        for answer in ask_all(self._workers, "info"):
            flows.update(answer["flows"])
        return flows

    def finish(self, measurement: Measurement[Any]) -> None:
        """End the elephants, and compare what arrived of each with what was sent."""
        if self._workers:
            finish_transfers(measurement, self._workers, *self._sinks)


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
        (after["bytes"][index] - before["bytes"][index]) * 8e-6 / elapsed
        for index in sorted(after["bytes"], key=int)
    ]

"""The elephants of a measurement: started together, counted at the receiver, and checked at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairq_ryu.experiments.measure.measurement import Measurement, queue_between
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.traffic.workers import ask_all

FINISH_S = 30.0
"""Elephants get so long to bring what their hosts had taken in; what has come by then is compared."""


class Herd:
    """``count`` elephants from ``hosts`` in turn to the receiver; their workers start at once."""

    def __init__(
        self, owner: Measurement, receiver: str, hosts: Sequence[str], count: int, seed: int
    ) -> None:
        self.count = count
        self._seed = seed
        self._sink, self.port = owner.start_worker(receiver, "sink")
        self._workers = [worker for worker, _port in owner.start_workers(list(hosts[:count]), "elephants")]

    def start(self, address: str) -> None:
        """All begin to send to the receiver's ``address``."""
        for place, worker in enumerate(self._workers):
            indices = list(range(place, self.count, len(self._workers)))
            worker.send("start", indices=indices, address=address, port=self.port, seed=self._seed)
        for worker in self._workers:
            worker.receive("start", 30.0)

    def mark(self) -> dict[str, Any]:
        """What has arrived of each by now."""
        return self._sink.ask("mark")

    def alone(
        self, owner: Measurement, what: str, duration: float, before: float
    ) -> tuple[float | None, dict[str, Any] | None]:
        """Goodput of all for ``duration`` s without anything else, Mbit/s, and the queue meanwhile; None
        where there is no such phase. ``before`` s of the plan are over.
        """
        if not self.count or not duration:
            return None, None
        queue_before, lost_before, mark_before = owner.read_queue(), owner.read_losses(), self.mark()
        owner.sleep(what, duration, before)
        mark_after, queue_after = self.mark(), owner.read_queue()
        lost = owner.read_losses().since(lost_before)
        return sum(result.goodputs(mark_before, mark_after)), queue_between(queue_before, queue_after, lost)

    def info(self) -> dict[str, Any]:
        """The counters of each one's socket."""
        flows: dict[str, Any] = {}
        for answer in ask_all(self._workers, "info"):
            flows.update(answer["flows"])
        return flows

    def finish(self, owner: Measurement) -> None:
        """End them, and compare what came of each with what was sent."""
        if not self._workers:
            return
        sent: dict[str, int] = {}
        where: dict[str, Any] = {}
        for worker in self._workers:
            worker.send("finish", timeout_s=FINISH_S)
        for worker in self._workers:
            answer = worker.receive("finish", FINISH_S + 10.0)
            sent.update(answer["sent"])
            where.update(dict.fromkeys(answer["sent"], worker))
        came = self._sink.ask("sums")["flows"]
        for index, worker in where.items():
            size, crc = came.get(index, (0, 0))
            wanted = worker.ask("checksum", 60.0, bytes={index: size})["crc"][index]
            owner.integrity.flow(size <= sent[index] and crc == wanted)

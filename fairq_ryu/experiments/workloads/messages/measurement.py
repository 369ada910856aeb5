"""Messages: elephants alone, then beside connections on which short messages are sent.

The ``messages`` object of a policy in the result:

    sent            messages sent
    unanswered      of these, without an answer message_timeout_s after the last one was due
    latency_ms      count, mean, sd, p50, p95, p99, max of the time from when a message was due to its answer,
                    in ms; null when none was answered
    rto_timeouts    of the sockets that send messages (null before 6.7)
    timeout_flows, timeout_share   connections with at least one timeout, see `common.timeouts`
    beside_share    elephants' goodput beside the messages / alone; null without that phase

``elephants`` and all other figures are of the phase with messages.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.experiments.measure.stats import fct_summary
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.messages import CONNECT_S
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads.common.elephants import ElephantGroup, elephants_summary
from fairq_ryu.experiments.workloads.common.measurement import Measurement, Progress
from fairq_ryu.experiments.workloads.common.timeouts import timed_out
from fairq_ryu.experiments.workloads.messages.settings import MessagesScenario


class MessagesMeasurement(Measurement[MessagesScenario]):
    """Every sender sends messages; the elephants are on the first ones."""

    def __init__(self, testbed: Testbed, scenario: MessagesScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._expected_s = scenario.warmup_s + scenario.elephants_only_s + scenario.messages_s
        self._elephants = ElephantGroup(
            self, [self._receiver], self._senders, scenario.elephants, scenario.seed
        )
        self._echo, self._port_of_echo = self.start_worker(self._receiver, "echo")
        hosts = self._senders[: scenario.connections]
        self._talkers = [worker for worker, _port in self.start_workers(hosts, "talkers")]

    def measure(self) -> dict[str, Any]:
        """Alone, then beside messages."""
        scenario, address = self._scenario, self._testbed.host(self._receiver).IP()
        self._echo.ask("expect", size=scenario.message_bytes)
        self._open(address)
        if scenario.elephants:
            self._elephants.start(address)
        self.sleep("elephants warm up", scenario.warmup_s, 0.0)
        alone, alone_queue = self._elephants.measure_alone(
            self, "elephants alone", scenario.elephants_only_s, scenario.warmup_s
        )
        before, info_before, mark_before = self.reading(), self._elephants.info(), self._elephants.mark()
        for place, worker in enumerate(self._talkers):
            worker.send(
                "talk",
                size=scenario.message_bytes,
                interval_s=scenario.message_interval_s,
                seconds=scenario.messages_s,
                timeout_s=scenario.message_timeout_s,
                seed=scenario.seed + place,
            )
        self.sleep("messages", scenario.messages_s, scenario.warmup_s + scenario.elephants_only_s)
        mark_after, info_after = self._elephants.mark(), self._elephants.info()
        phase = self.since(before, alone_queue)
        talked = [worker.receive("talk", scenario.message_timeout_s + 20.0) for worker in self._talkers]
        self._progress("comparing what arrived with what was sent", 1.0)
        self._elephants.finish(self)
        elephants = None
        if scenario.elephants:
            elephants = elephants_summary(mark_before, mark_after, info_before, info_after, alone, None)
        return {"elephants": elephants, "messages": _messages(talked, elephants), **phase}

    def _open(self, address: str) -> None:
        """Open all connections. `RunError` when the network does not carry them."""
        workers, count = len(self._talkers), self._scenario.connections
        for place, worker in enumerate(self._talkers):
            wanted = len(range(place, count, workers))
            worker.send("open", connections=wanted, address=address, port=self._port_of_echo)
        for worker in self._talkers:
            worker.receive("open", CONNECT_S * -(-count // workers))


def _messages(talked: list[dict[str, Any]], elephants: dict[str, Any] | None) -> dict[str, Any]:
    if errors := sum(each["errors"] for each in talked):
        raise RunError(f"{errors} connections with messages were closed by the receiver or reset")
    times = [ns / 1e6 for each in talked for ns in each["times_ns"]]
    timeouts = [count for each in talked for count in each["timeouts"]]
    sent, alone = sum(each["sent"] for each in talked), elephants and elephants["alone_sum_mbit"]
    return {
        "sent": sent,
        "unanswered": sent - len(times),
        "latency_ms": fct_summary(times),
        "rto_timeouts": None if None in timeouts else sum(timeouts),
        **timed_out(timeouts),
        "beside_share": elephants["goodput_sum_mbit"] / alone if elephants and alone else None,
    }


MEASUREMENT = MessagesMeasurement

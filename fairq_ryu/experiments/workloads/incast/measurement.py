"""An incast: warm-up, elephants alone, rounds of mice beside elephants, elephants alone again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import RunError, ask_all
from fairq_ryu.experiments.workloads.common import rounds
from fairq_ryu.experiments.workloads.common.datagram_flows import DatagramFlow, DatagramFlows
from fairq_ryu.experiments.workloads.common.elephants import ElephantGroup, elephants_summary
from fairq_ryu.experiments.workloads.common.measurement import (
    PROBE_BYTES,
    Measurement,
    Progress,
    stolen_during,
    unreached,
)
from fairq_ryu.experiments.workloads.incast.figures import Round, mice_of
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario


class IncastMeasurement(Measurement[IncastScenario]):
    """Mice in barrier rounds beside elephants."""

    def __init__(self, testbed: Testbed, scenario: IncastScenario, progress: Progress) -> None:
        super().__init__(testbed, scenario, progress)
        self._expected_s = (
            scenario.warmup_s
            + scenario.elephants_only_s
            + scenario.rounds * scenario.whole_interval_s
            + scenario.after_s
        )
        self._receivers = scenario.plan.receivers
        self._elephants = ElephantGroup(
            self, self._receivers, self._senders, scenario.elephants, scenario.seed
        )
        self._datagrams = None
        if scenario.udp_mbit:
            flow = DatagramFlow(0, self._senders[-1], 0.0)
            to = (self._receiver, scenario.udp_mbit, scenario.seed)
            self._datagrams = DatagramFlows(self, testbed, [flow], *to)
        self._clients = [worker for worker, _port in self.start_workers(list(self._receivers), "client")]
        servers = self.start_workers(self._senders, "server")
        self._servers = [worker for worker, _port in servers]
        self._targets = [
            {"address": testbed.host(name).IP(), "port": port}
            for name, (_worker, port) in zip(self._senders, servers, strict=True)
        ]

    def measure(self) -> dict[str, Any]:
        """All phases, in order."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._reach_every_sender()
        self._elephants.start(*(self._testbed.host(name).IP() for name in self._receivers))
        if self._datagrams is not None:
            self._datagrams.begin(time.monotonic_ns())
        self.sleep("elephants warm up", scenario.warmup_s, 0.0)
        alone_sum, alone_queue = self._elephants.measure_alone(
            self, "elephants alone", scenario.elephants_only_s, scenario.warmup_s
        )

        before = self.reading()
        info_before, sink_before = self._elephants.info(), self._elephants.mark()
        made = self._rounds() if scenario.mice_per_sender else self._no_rounds()
        sink_after, info_after = self._elephants.mark(), self._elephants.info()
        phase = self.since(before, alone_queue)

        after_sum, _queue = self._elephants.measure_alone(
            self, "elephants afterwards", scenario.after_s, self._expected_s - scenario.after_s
        )
        servers = [mouse for each in ask_all(self._servers, "report") for mouse in each["mice"]]
        self._progress("comparing what arrived with what was sent", 1.0)
        if self._datagrams is not None:
            self._datagrams.finish(self)
        self._elephants.finish(self)
        for mouse in (mouse for each in made for mouse in each.mice):
            self.integrity.flow(mouse["intact"])
        stolen = [each.stolen_percent for each in made]
        counted = rounds.counted(stolen, scenario.rounds)
        left_out = [number for number in range(len(made)) if number not in counted]
        return {
            "rounds": rounds.figures(stolen, scenario.rounds) if made else None,
            "mice": mice_of([made[number] for number in counted], servers, scenario.round_timeout_s),
            "mice_left_out": mice_of(
                [made[number] for number in left_out], servers, scenario.round_timeout_s
            ),
            "elephants": elephants_summary(
                sink_before, sink_after, info_before, info_after, alone_sum, after_sum
            )
            if self._elephants.count
            else None,
            **phase,
        }

    # Traffic

    def _reach_every_sender(self) -> None:
        """Fetch a few bytes from each sender, so that hosts know each other's addresses. `RunError` when the
        network does not carry them.
        """

        def failed_fetches() -> list[dict[str, Any]]:
            mice = [
                self._mouse(sender, place, PROBE_BYTES)
                for place in range(len(self._receivers))
                for sender in range(len(self._servers))
            ]
            return [each for each in self._volley(mice, 5.0) if each["error"]]

        failed = unreached(failed_fetches)
        if failed:
            name = self._senders[failed[0]["id"] % len(self._senders)]
            reason = failed[0]["error"]
            raise RunError(f"a receiver cannot fetch from {name} through the network: {reason}")
        ask_all(self._servers, "report")  # forget the probes

    def _rounds(self) -> list[Round]:
        """All rounds of mice, including those that replace disturbed ones."""
        scenario = self._scenario
        timeouts = self.read_counters()["rto_timeouts"]

        def make(number: int) -> Round:
            nonlocal timeouts
            mice = [
                self._mouse(
                    sender, number * scenario.mice_per_sender + copy, scenario.mice_bytes, scenario.requests
                )
                for sender in range(scenario.senders)
                for copy in range(scenario.mice_per_sender)
            ]
            self._random.shuffle(mice)
            with self._controller_stopped():
                reports, stolen_percent = stolen_during(lambda: self._volley(mice, scenario.round_timeout_s))
            timeouts_before, timeouts = timeouts, self.read_counters()["rto_timeouts"]
            return Round(reports, timeouts - timeouts_before, stolen_percent)

        # Whole intervals, so that every policy is measured over the same time.
        return self.make_rounds(
            make,
            scenario.rounds,
            scenario.whole_interval_s,
            scenario.warmup_s + scenario.elephants_only_s,
            whole_intervals=True,
        )

    @contextlib.contextmanager
    def _controller_stopped(self) -> Iterator[None]:
        """The controller is stopped for as long as the scenario asks, and until the context ends."""
        if not self._scenario.controller_stopped_s:
            yield
            return
        with self._testbed.controller_stopped():
            time.sleep(self._scenario.controller_stopped_s)
            yield

    def _no_rounds(self) -> list[Round]:
        """Wait for as long as the rounds would take, without mice."""
        scenario = self._scenario
        duration = scenario.rounds * scenario.whole_interval_s
        self.sleep("elephants, no mice", duration, scenario.warmup_s + scenario.elephants_only_s)
        return []

    def _mouse(self, sender: int, copy: int, size: int, requests: int = 1) -> dict[str, Any]:
        """The mouse of this number at a sender, counted over all rounds; or so many, one after the other."""
        return {
            "id": (copy * self._scenario.senders + sender) * requests,
            "copy": copy,
            "size": size,
            "requests": requests,
            "seed": self._random.getrandbits(32),
            **self._targets[sender],
        }

    def _volley(self, mice: list[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
        """The receivers fetch the mice that are theirs: those of each sender in turn."""
        with self.volley():
            for place, client in enumerate(self._clients):
                own = [mouse for mouse in mice if mouse["copy"] % len(self._clients) == place]
                client.send("round", mice=own, timeout_s=timeout)
            answers = [client.receive("round", timeout + 20.0) for client in self._clients]
        return [report for answer in answers for report in answer["mice"]]


MEASUREMENT = IncastMeasurement

"""An incast: warm-up, elephants alone, rounds of mice beside elephants, elephants alone again."""

from __future__ import annotations

import time
from typing import Any

from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import RunError, ask_all
from fairq_ryu.experiments.workloads.common import rounds
from fairq_ryu.experiments.workloads.common.elephants import ElephantGroup, elephants_summary
from fairq_ryu.experiments.workloads.common.measurement import Measurement, Progress
from fairq_ryu.experiments.workloads.incast.figures import Round, mice_of
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario

PROBE_BYTES = 1000


class Incast(Measurement[IncastScenario]):
    """Mice in barrier rounds beside elephants."""

    def __init__(self, testbed: Testbed, scenario: IncastScenario, progress: Progress) -> None:
        """Start the generators inside the hosts."""
        super().__init__(testbed, scenario, progress)
        self._expected_s = (
            scenario.warmup_s
            + scenario.elephants_only_s
            + scenario.rounds * scenario.round_interval_s
            + scenario.after_s
        )
        self._elephants = ElephantGroup(
            self, self._receiver, self._senders, scenario.elephants, scenario.seed
        )
        self._client, _port = self.start_worker(self._receiver, "client")
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
        self._elephants.start(self._testbed.host(self._receiver).IP())
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
        self._elephants.finish(self)
        for mouse in (mouse for each in made for mouse in each.mice):
            self.integrity.flow(mouse["intact"])
        stolen = [each.stolen_percent for each in made]
        counted = rounds.counted(stolen, scenario.rounds)
        left_out = [number for number in range(len(made)) if number not in counted]
        return {
            "rounds": rounds.figures(stolen, scenario.rounds) if made else None,
            "mice": mice_of([made[number] for number in counted], servers),
            "mice_left_out": mice_of([made[number] for number in left_out], servers),
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
        for attempt in range(5):
            answer = self._volley(
                [self._mouse(sender, 0, PROBE_BYTES) for sender in range(len(self._servers))], 5.0
            )
            failed = [each for each in answer if each["error"]]
            if not failed:
                ask_all(self._servers, "report")  # forget the probes
                return
            time.sleep(0.2 * attempt)
        name = self._senders[failed[0]["id"] % len(self._senders)]
        raise RunError(f"{self._receiver} cannot fetch from {name} through the network: {failed[0]['error']}")

    def _rounds(self) -> list[Round]:
        """All rounds of mice, including those that replace disturbed ones."""
        scenario = self._scenario
        before = scenario.warmup_s + scenario.elephants_only_s
        made: list[Round] = []
        timeouts = self.read_counters()["rto_timeouts"]
        next_start = began = time.monotonic()
        stolen: list[float] = []
        while len(made) < (needed := rounds.needed(stolen, scenario.rounds)):
            # A volley starts at a random time: fixed times could coincide with the policy's own timer.
            start = next_start + self._random.uniform(0, 0.1) * scenario.round_interval_s
            time.sleep(max(0.0, start - time.monotonic()))
            further = (needed - scenario.rounds) * scenario.round_interval_s
            self._progress(
                rounds.step(stolen, scenario.rounds), self.share_done(before + start - began, further)
            )
            mice = [
                self._mouse(sender, len(made) * scenario.mice_per_sender + copy, scenario.mice_bytes)
                for sender in range(scenario.senders)
                for copy in range(scenario.mice_per_sender)
            ]
            self._random.shuffle(mice)
            # Stolen time counts from here until the last mouse has ended. Most of the time since the end of
            # the previous round was pause: time stolen there delays no mouse, and hides in its share what
            # was stolen from a volley of 30 ms.
            cpu_before = machine.cpu_times()
            reports = self._volley(mice, scenario.round_timeout_s)
            time.sleep(rounds.STOLEN_DELAY_S)
            stolen_percent = machine.cpu_shares(cpu_before, machine.cpu_times())["stolen_percent"]
            timeouts_before, timeouts = timeouts, self.read_counters()["rto_timeouts"]
            made.append(Round(reports, timeouts - timeouts_before, stolen_percent))
            stolen.append(stolen_percent)
            next_start = max(next_start + scenario.round_interval_s, time.monotonic())
        # Until the end of the last interval, so that every policy is measured over whole intervals.
        time.sleep(max(0.0, next_start - time.monotonic()))
        return made

    def _no_rounds(self) -> list[Round]:
        """Wait for as long as the rounds would take, without mice."""
        scenario = self._scenario
        duration = scenario.rounds * scenario.round_interval_s
        self.sleep("elephants, no mice", duration, scenario.warmup_s + scenario.elephants_only_s)
        return []

    def _mouse(self, sender: int, copy: int, size: int) -> dict[str, Any]:
        number = copy * self._scenario.senders + sender
        return {"id": number, "size": size, "seed": self._random.getrandbits(32), **self._targets[sender]}

    def _volley(self, mice: list[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
        answer = self._client.ask("round", timeout + 20.0, mice=mice, timeout_s=timeout)
        reports: list[dict[str, Any]] = answer["mice"]
        return reports


MEASUREMENT = Incast

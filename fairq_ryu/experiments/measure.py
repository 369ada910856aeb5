"""The measurement itself: warm-up, elephants alone, rounds of mice beside elephants, and what came of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments import machine, queues, result, rounds
from fairq_ryu.experiments.scenario import Scenario
from fairq_ryu.experiments.tcpinfo import namespace_counters
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.workers import RunError, ask_all

PROBE_BYTES = 1000
STOLEN_LATE_S = 0.01
"""Stolen time is read so much after the last mouse: the kernel adds it up at its next tick, of 1 to 10 ms."""
Progress = Callable[[str, float], None]
"""Called with what happens now and how much of this policy is done, 0 to 1."""


class _Round(NamedTuple):
    """One volley of mice and what came of it."""

    mice: list[dict[str, Any]]
    """reports of the client's end"""
    sender_timeouts: int
    """retransmission timeouts in the senders' namespaces since the end of the round before, elephants' too"""
    stolen_percent: float
    """of all CPU time during the volley"""


class Incast:
    """The traffic of one scenario over one testbed's network."""

    def __init__(self, testbed: Testbed, scenario: Scenario, progress: Progress) -> None:
        """Start the generators inside the hosts."""
        self._testbed = testbed
        self._scenario = scenario
        self._progress = progress
        self._random = random.Random(scenario.seed)
        self._senders = scenario.shape.senders(scenario.senders)
        self._receiver = scenario.shape.receiver
        self._switch, self._port = testbed.bottleneck()
        self._sink = testbed.worker(self._receiver, "sink")
        self._client = testbed.worker(self._receiver, "client")
        self._servers = [testbed.worker(name, "server") for name in self._senders]
        used = self._senders[: min(scenario.elephants, scenario.senders)]
        self._elephants = [testbed.worker(name, "elephants") for name in used]
        self._sink_port: int = self._sink.receive("ready", 20.0)["port"]
        self._client.receive("ready", 20.0)
        self._targets = [
            {"address": testbed.host(name).IP(), "port": worker.receive("ready", 20.0)["port"]}
            for name, worker in zip(self._senders, self._servers, strict=True)
        ]
        for worker in self._elephants:
            worker.receive("ready", 20.0)

    def run(self) -> dict[str, Any]:
        """Measure; the figures of this policy as `result` documents them. `RunError` when it fails."""
        scenario = self._scenario
        self._progress("reaching every sender", 0.0)
        self._reach_every_sender()
        self._start_elephants()
        self._sleep("elephants warm up", scenario.warmup_s, 0.0)
        alone_queue, alone_sum = None, None
        if scenario.elephants and scenario.elephants_only_s:
            queue_before, sink_before = self._read_queue(), self._sink.ask("mark")
            self._sleep("elephants alone", scenario.elephants_only_s, scenario.warmup_s)
            sink_after, alone_queue = self._sink.ask("mark"), self._queue_since(queue_before)
            alone_sum = sum(result.goodputs(sink_before, sink_after))

        cpu_before = machine.cpu_times()
        queue_before, counters_before = self._read_queue(), self._read_counters()
        drops_before, info_before = queues.qdisc_drops(self._port), self._elephant_info()
        sink_before = self._sink.ask("mark")
        made = self._rounds() if scenario.mice_per_sender else self._no_rounds()
        sink_after = self._sink.ask("mark")
        info_after, drops_after = self._elephant_info(), queues.qdisc_drops(self._port)
        counters_after, rounds_queue = self._read_counters(), self._queue_since(queue_before)

        servers = [mouse for each in ask_all(self._servers, "report") for mouse in each["mice"]]
        self._testbed.still_sound()
        self._progress("done", 1.0)
        stolen = [each.stolen_percent for each in made]
        counted = rounds.counted(stolen, scenario.rounds)
        left_out = [number for number in range(len(made)) if number not in counted]
        return {
            "rounds": rounds.figures(stolen, scenario.rounds) if made else None,
            "mice": _mice([made[number] for number in counted], servers),
            "mice_left_out": _mice([made[number] for number in left_out], servers),
            "elephants": result.elephants_summary(sink_before, sink_after, info_before, info_after, alone_sum)
            if self._elephants
            else None,
            "senders": {key: counters_after[key] - counters_before[key] for key in counters_after},
            "queue": {
                "port": self._port,
                "limit_bytes": scenario.buffer_bytes,
                "qdisc_drops": drops_after - drops_before,
                "rounds": rounds_queue,
                "alone": alone_queue,
            },
            "cpu": machine.cpu_shares(cpu_before, machine.cpu_times()),
            "seconds": (sink_after["clock_ns"] - sink_before["clock_ns"]) / 1e9,
        }

    # Traffic

    def _reach_every_sender(self) -> None:
        """Fetch a little from each sender: the network carries data and everyone knows everyone's address."""
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

    def _start_elephants(self) -> None:
        for place, worker in enumerate(self._elephants):
            indices = list(range(place, self._scenario.elephants, len(self._elephants)))
            address = self._testbed.host(self._receiver).IP()
            worker.send("start", indices=indices, address=address, port=self._sink_port)
        for worker in self._elephants:
            worker.receive("start", 30.0)

    def _rounds(self) -> list[_Round]:
        """All rounds of mice, those made again for disturbed ones included."""
        scenario = self._scenario
        before = scenario.warmup_s + scenario.elephants_only_s
        made: list[_Round] = []
        timeouts = self._read_counters()["rto_timeouts"]
        next_start = began = time.monotonic()
        stolen: list[float] = []
        while len(made) < (needed := rounds.needed(stolen, scenario.rounds)):
            # A volley at a random moment: fixed ones could fall in step with the policy's own timer.
            start = next_start + self._random.uniform(0, 0.1) * scenario.round_interval_s
            time.sleep(max(0.0, start - time.monotonic()))
            step = f"round {len(made) + 1} of {scenario.rounds}"
            if len(made) >= scenario.rounds:
                step = f"round {len(made) + 1}, the host disturbed {len(rounds.disturbed(stolen))}"
            further = (needed - scenario.rounds) * scenario.round_interval_s
            self._progress(step, self._part(before + start - began, further))
            mice = [
                self._mouse(sender, len(made) * scenario.mice_per_sender + copy, scenario.mice_bytes)
                for sender in range(scenario.senders)
                for copy in range(scenario.mice_per_sender)
            ]
            self._random.shuffle(mice)
            # Stolen time counts from here until the last mouse has ended. A span from the end of the round
            # before would be nearly all pause: what is stolen there makes no mouse wait, and what is stolen
            # from a volley of 30 ms would be lost in it.
            cpu_before = machine.cpu_times()
            reports = self._volley(mice, scenario.round_timeout_s)
            time.sleep(STOLEN_LATE_S)
            stolen_percent = machine.cpu_shares(cpu_before, machine.cpu_times())["stolen_percent"]
            timeouts_before, timeouts = timeouts, self._read_counters()["rto_timeouts"]
            made.append(_Round(reports, timeouts - timeouts_before, stolen_percent))
            stolen.append(stolen_percent)
            next_start = max(next_start + scenario.round_interval_s, time.monotonic())
        # To the end of the last interval, so that every policy is measured over whole ones.
        time.sleep(max(0.0, next_start - time.monotonic()))
        return made

    def _no_rounds(self) -> list[_Round]:
        """As long as the rounds would take, without mice."""
        scenario = self._scenario
        duration = scenario.rounds * scenario.round_interval_s
        self._sleep("elephants, no mice", duration, scenario.warmup_s + scenario.elephants_only_s)
        return []

    def _mouse(self, sender: int, copy: int, size: int) -> dict[str, Any]:
        number = copy * self._scenario.senders + sender
        return {"id": number, "size": size, "seed": self._random.getrandbits(32), **self._targets[sender]}

    def _volley(self, mice: list[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
        answer = self._client.ask("round", timeout + 20.0, mice=mice, timeout_s=timeout)
        reports: list[dict[str, Any]] = answer["mice"]
        return reports

    # Readings

    def _read_queue(self) -> queues.QueueReading | None:
        if not self._testbed.has_agents:
            return None
        return queues.queue_of(self._testbed.status(self._switch), self._port)

    def _queue_since(self, before: queues.QueueReading | None) -> dict[str, Any] | None:
        after = self._read_queue()
        return queues.between(before, after) if before is not None and after is not None else None

    def _read_counters(self) -> dict[str, int]:
        """Retransmissions and timeouts of all senders' namespaces together."""
        each = [namespace_counters(self._testbed.host(name).pid) for name in self._senders]
        return {
            "retransmissions": sum(counters["RetransSegs"] for counters in each),
            "rto_timeouts": sum(counters["TCPTimeouts"] for counters in each),
        }

    def _elephant_info(self) -> dict[str, Any]:
        flows: dict[str, Any] = {}
        for answer in ask_all(self._elephants, "info"):
            flows.update(answer["flows"])
        return flows

    # Time

    def _part(self, elapsed: float, further: float = 0.0) -> float:
        """The part that is over after ``elapsed`` s, when ``further`` s are added to the plan."""
        return min(1.0, elapsed / max(self._scenario.expected_s + further, 0.001))

    def _sleep(self, what: str, duration: float, before: float) -> None:
        """Let ``duration`` s pass, of which ``before`` s of the plan are over, and say so."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < duration:
            self._progress(what, self._part(before + passed))
            time.sleep(min(0.5, duration - passed))


def _mice(chosen: Sequence[_Round], servers: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The mice of the chosen rounds alone, at both ends; None without any."""
    if not chosen:
        return None
    client = [mouse for each in chosen for mouse in each.mice]
    ours = {mouse["id"] for mouse in client}
    return result.mice_summary(
        client,
        [mouse for mouse in servers if mouse["id"] in ours],
        sum(each.sender_timeouts for each in chosen),
    )

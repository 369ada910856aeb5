"""What measurements of every kind of traffic share: readings, integrity, the capture, time and progress."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from fairq_ryu.experiments.measure import machine, queues
from fairq_ryu.experiments.measure.tcpinfo import namespace_counters
from fairq_ryu.experiments.scenario import Scenario
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import RunError, Worker

START_S = 20.0
"""Within this a generator must have started."""
JUDGE_S = 600.0
"""Within this a capture must have been read and judged."""
Progress = Callable[[str, float], None]
"""Called with what happens now and how much of this policy is done, 0 to 1."""


class Reading(NamedTuple):
    """Counters at one moment; only differences of two mean anything."""

    clock: float
    cpu: tuple[int, int, int]
    queue: queues.QueueReading | None
    """None without an agent"""
    senders: dict[str, int]
    losses: queues.Losses
    switch: dict[int, int]
    """see `machine.switch_ticks`"""


class Integrity:
    """Whether every flow brought the bytes that were sent, and no others."""

    def __init__(self) -> None:
        self.flows = 0
        self.mismatched = 0

    def flow(self, same: bool) -> None:
        """One more flow; ``same``: what came of it is what was sent, as far as it came."""
        self.flows += 1
        self.mismatched += not same

    def check(self) -> dict[str, int]:
        """The figures. `RunError` when one flow brought other bytes."""
        if self.mismatched:
            raise RunError(f"{self.mismatched} of {self.flows} flows brought other bytes than were sent")
        return {"flows": self.flows, "mismatched": self.mismatched}


class Measurement:
    """The traffic of one scenario over one testbed's network. A kind of traffic derives from it."""

    def __init__(self, testbed: Testbed, scenario: Scenario, progress: Progress) -> None:
        """The generators start in the hosts."""
        self._testbed = testbed
        self._scenario = scenario
        self._progress = progress
        self._random = random.Random(scenario.seed)
        self._senders = scenario.shape.senders(scenario.senders)
        self._receiver = scenario.shape.receiver
        self._switch, self._port = testbed.bottleneck()
        self._losses_before = self.read_losses()
        self.integrity = Integrity()
        self._expected_s = 1.0

    def run(self) -> dict[str, Any]:
        """Measure; the figures of this policy as `result` documents them. `RunError` when it fails."""
        capture = self._start_capture() if self._scenario.capture else None
        figures = self.measure()
        self._testbed.still_sound()
        found = None
        if capture is not None:
            self._progress("judging what was caught", 1.0)
            found = capture.ask("end", JUDGE_S)
            del found["re"]
        self._progress("done", 1.0)
        return {
            **figures,
            "integrity": self.integrity.check(),
            "capture": found,
            "losses": self._account(),
        }

    def _account(self) -> dict[str, int | None]:
        """What the bottleneck has lost in all, as the kernel and as the program that drops counts it. All is
        quiet now, so nothing passes between two counters.
        """
        lost = self.read_losses().since(self._losses_before)
        return {"refused": lost.refused, "taken": lost.taken, "program": self._testbed.dropped(self._port)}

    def measure(self) -> dict[str, Any]:
        """The figures of this kind of traffic."""
        raise NotImplementedError

    def data_senders(self) -> list[str]:
        """The hosts whose data goes through the bottleneck."""
        return self._senders

    # Readings

    def reading(self) -> Reading:
        """Everything that is read at the beginning and at the end of a phase."""
        clock, cpu, switch = time.monotonic(), machine.cpu_times(), machine.switch_ticks()
        return Reading(clock, cpu, self.read_queue(), self.read_counters(), self.read_losses(), switch)

    def since(self, before: Reading, alone: dict[str, Any] | None = None) -> dict[str, Any]:
        """Figures of the phase since ``before``: ``senders``, ``queue``, ``cpu`` and ``seconds``; ``alone``
        is what the queue was without this traffic.
        """
        after = self.reading()
        seconds = after.clock - before.clock
        lost = after.losses.since(before.losses)
        return {
            "senders": {key: after.senders[key] - before.senders[key] for key in after.senders},
            "queue": {
                "port": self._port,
                "limit_bytes": self._scenario.buffer_bytes,
                "qdisc_drops": lost.all,
                "refused": lost.refused,
                "rounds": queue_between(before.queue, after.queue, lost),
                "alone": alone,
            },
            "cpu": {
                **machine.cpu_shares(before.cpu, after.cpu),
                "switch_thread_percent": machine.switch_share(before.switch, after.switch, seconds),
            },
            "seconds": seconds,
        }

    def read_queue(self) -> queues.QueueReading | None:
        """The bottleneck's queue; None without an agent."""
        if not self._testbed.has_agents:
            return None
        return queues.queue_of(self._testbed.status(self._switch), self._port)

    def read_losses(self) -> queues.Losses:
        """What the bottleneck has lost so far."""
        return queues.losses(self._port)

    def read_counters(self) -> dict[str, int]:
        """Retransmissions and timeouts of all senders' namespaces together."""
        each = [namespace_counters(self._testbed.host(name).pid) for name in self._senders]
        return {
            "retransmissions": sum(counters["RetransSegs"] for counters in each),
            "rto_timeouts": sum(counters["TCPTimeouts"] for counters in each),
        }

    # Workers

    def start_worker(self, host: str, role: str) -> tuple[Worker, int]:
        """A role in ``host`` that is ready, and the port it listens on (0: on none)."""
        worker = self._testbed.worker(host, role)
        return worker, worker.receive("ready", START_S).get("port", 0)

    def start_workers(self, hosts: list[str], role: str) -> list[tuple[Worker, int]]:
        """The same in many hosts, side by side."""
        workers = [self._testbed.worker(host, role) for host in hosts]
        return [(worker, worker.receive("ready", START_S).get("port", 0)) for worker in workers]

    def _start_capture(self) -> Worker:
        places = [(name, True) for name in self.data_senders()]
        places += [(name, False) for name in self._scenario.shape.receivers]
        worker = self._testbed.local_worker("capture")
        worker.receive("ready", START_S)
        listed: list[dict[str, Any]] = []
        for name, arriving in places:
            host = self._testbed.host(name)
            listed.append({"pid": host.pid, "interface": str(host.defaultIntf()), "arriving": arriving})
        worker.ask("start", START_S, places=listed, directory=str(self._testbed.logs))
        return worker

    # Time

    def part(self, elapsed: float, further: float = 0.0) -> float:
        """The part that is over after ``elapsed`` s, when ``further`` s are added to the plan."""
        return min(1.0, elapsed / max(self._expected_s + further, 0.001))

    def sleep(self, what: str, duration: float, before: float) -> None:
        """Let ``duration`` s pass, of which ``before`` s of the plan are over, and say so."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < duration:
            self._progress(what, self.part(before + passed))
            time.sleep(min(0.5, duration - passed))


def queue_between(
    before: queues.QueueReading | None, after: queues.QueueReading | None, lost: queues.Losses
) -> dict[str, Any] | None:
    """Figures of the queue between two readings, with what was ``lost`` meanwhile; None without an agent."""
    if before is None or after is None:
        return None
    return {**queues.between(before, after), "drops": lost.all}

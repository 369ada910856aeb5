"""What the measurements of all workloads share: readings, integrity, the capture, time and progress."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from fairq_ryu.experiments.measure import machine, queues, tcp_trace
from fairq_ryu.experiments.measure.tcpinfo import namespace_counters
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.testbed import Testbed
from fairq_ryu.experiments.traffic.workers import RunError, Worker
from fairq_ryu.experiments.workloads.common import rounds

START_S = 20.0
"""Time limit for the start of a generator."""
LEAD_S = 0.5
"""From the orders to the generators until the first flow may start."""
EVALUATION_S = 600.0
"""Time limit for the evaluation of a capture."""
PROBE_BYTES = 1000
"""Bytes of a flow that only shows that two hosts reach each other."""
REACH_ATTEMPTS = 5
Progress = Callable[[str, float], None]
"""Called with the name of the current step and the share of this policy's run that is done, 0 to 1."""
S = TypeVar("S", bound=Scenario)
T = TypeVar("T")


class MadeRound(Protocol):
    """A volley that has ended."""

    @property
    def stolen_percent(self) -> float:
        """Share of all CPU time that the host took away during the volley."""


R = TypeVar("R", bound=MadeRound)


class VolleyUse(NamedTuple):
    """What the volleys so far took: their seconds, and the ticks of each thread of Open vSwitch meanwhile."""

    seconds: float
    ticks: Mapping[int, int]

    def share_since(self, before: VolleyUse) -> float | None:
        """As `machine.switch_share`, of the volleys since ``before``; None when there were none."""
        started = {thread: before.ticks.get(thread, 0) for thread in self.ticks}
        return machine.switch_share(started, self.ticks, self.seconds - before.seconds)


class Reading(NamedTuple):
    """Counters at one moment; only differences of two mean anything."""

    clock: float
    cpu: tuple[int, int, int]
    queue: queues.QueueReading | None
    """None without an agent"""
    senders: dict[str, int]
    losses: queues.PortLosses
    switch: dict[int, int]
    """see `machine.switch_ticks`"""
    volleys: VolleyUse


class Integrity:
    """Whether the bytes that arrived of every flow are those that were sent."""

    def __init__(self) -> None:
        self.flows = 0
        self.mismatched = 0

    def flow(self, same: bool) -> None:
        """Count one flow; ``same``: all bytes that arrived of it are those that were sent."""
        self.flows += 1
        self.mismatched += not same

    def check(self) -> dict[str, int]:
        """The figures. `RunError` when other bytes arrived of a flow than were sent."""
        if self.mismatched:
            raise RunError(f"{self.mismatched} of {self.flows} flows delivered other bytes than were sent")
        return {"flows": self.flows, "mismatched": self.mismatched}


class Measurement(Generic[S]):
    """The traffic of one scenario over one testbed's network. Each workload has a subclass."""

    def __init__(self, testbed: Testbed, scenario: S, progress: Progress) -> None:
        """Subclasses start their generators in the hosts."""
        self._testbed = testbed
        self._scenario = scenario
        self._progress = progress
        self._random = random.Random(scenario.seed)
        self._senders = scenario.plan.senders(scenario.senders)
        self._receiver = scenario.plan.receiver
        self._switch, self._port = testbed.bottleneck()
        self._losses_before = queues.losses(self._port, testbed.qdisc)
        self.integrity = Integrity()
        self._expected_s = 1.0
        self._volleys_s = 0.0
        self._volley_ticks: Counter[int] = Counter()

    def run(self) -> dict[str, Any]:
        """Measure; the figures of one policy as `report.result` documents them. `RunError` when it fails."""
        capture = self._start_capture() if self._scenario.capture else None
        tracer = self._start_tracer() if self._scenario.trace_flows else None
        figures = self.measure()
        if tracer is not None:
            tracer.ask("end", EVALUATION_S, path=str(self._testbed.logs / tcp_trace.FILE_NAME))
        self._testbed.check_alive()
        captured = None
        if capture is not None:
            self._progress("evaluating the capture", 1.0)
            captured = capture.ask("end", EVALUATION_S)
            del captured["re"]
        self._progress("done", 1.0)
        return {
            **figures,
            "integrity": self.integrity.check(),
            "capture": captured,
            "losses": self._losses(),
        }

    def _losses(self) -> dict[str, int | None]:
        """Losses at the bottleneck since the start, as the kernel, the tail-drop program and the queue law
        count them. Traffic has ended, so no packet passes between the readings of two counters. The kernel's
        ``taken`` has the drops of the program and of the law, and with turns the handshakes that have waited.
        """
        lost = queues.losses(self._port, self._testbed.qdisc).since(self._losses_before)
        return {
            "refused": lost.refused,
            "taken": lost.taken,
            "program": self._testbed.dropped(self._port),
            "law": _dropped_by_law(self.read_queue()),
        }

    def measure(self) -> dict[str, Any]:
        """The figures of this workload."""
        raise NotImplementedError

    def data_senders(self) -> list[str]:
        """The hosts whose data passes through the bottleneck."""
        return self._senders

    # Readings

    def reading(self) -> Reading:
        """All counters, read at the beginning and at the end of a phase."""
        clock, cpu, switch = time.monotonic(), machine.cpu_times(), machine.switch_ticks()
        volleys = self.volleys_so_far()
        return Reading(
            clock, cpu, self.read_queue(), self.read_counters(), self.read_losses(), switch, volleys
        )

    def volleys_so_far(self) -> VolleyUse:
        """The volleys that have ended."""
        return VolleyUse(self._volleys_s, dict(self._volley_ticks))

    @contextlib.contextmanager
    def volley(self) -> Iterator[None]:
        """The time in which a volley is under way, for the thread's share without the pauses in between."""
        began, before = time.monotonic(), machine.switch_ticks()
        yield
        after = machine.switch_ticks()
        self._volleys_s += time.monotonic() - began
        self._volley_ticks.update(
            {thread: after[thread] - before[thread] for thread in after if thread in before}
        )

    def since(self, before: Reading, alone: dict[str, Any] | None = None) -> dict[str, Any]:
        """Figures of the phase since ``before``: ``senders``, ``queue``, ``cpu`` and ``seconds``; ``alone``
        are the figures of the queue without this traffic.
        """
        after = self.reading()
        seconds = after.clock - before.clock
        lost = after.losses.since(before.losses)
        return {
            "senders": {key: after.senders[key] - before.senders[key] for key in after.senders},
            "queue": {
                "port": self._port,
                "limit_bytes": self._testbed.buffer_bytes,
                "qdisc": self._testbed.made_qdisc(self._port),
                "law": "" if after.queue is None else after.queue.law,
                "qdisc_drops": lost.all,
                "refused": lost.refused,
                "rounds": queue_between(before.queue, after.queue, lost),
                "alone": alone,
            },
            "cpu": {
                **machine.cpu_shares(before.cpu, after.cpu),
                "switch_thread_percent": machine.switch_share(before.switch, after.switch, seconds),
                "switch_thread_volleys_percent": after.volleys.share_since(before.volleys),
            },
            "seconds": seconds,
        }

    def read_queue(self) -> queues.QueueReading | None:
        """The bottleneck's queue; None without an agent, unless no agent could see it."""
        hidden = self._testbed.hidden
        if hidden is not None:
            reading = hidden.reading(self._rewritten_for_it())
        elif self._testbed.has_agents:
            reading = queues.queue_of(self._testbed.status(self._switch), self._port)
        else:
            return None
        qdisc = self._testbed.qdisc
        if qdisc is None:
            return reading
        counts = queues.qdisc_counts(self._port, qdisc)
        judged = queues.JudgedPackets(counts.judged, counts.dropped, counts.marked)
        return reading._replace(law=f"kernel {qdisc.kind}", judged=judged)

    def _rewritten_for_it(self) -> int:
        """The ACKs that the agents behind a hidden bottleneck have lowered."""
        if not self._testbed.has_agents:
            return 0
        return sum(
            queues.queue_of(self._testbed.status(switch), port).rewritten
            for switch, port in self._scenario.governed_ports.items()
        )

    def read_losses(self) -> queues.PortLosses:
        """Losses at the bottleneck so far for want of room. For tc, a packet that a program or a law drops
        at egress and a handshake that waits in the agent are the same, so the program that drops is
        asked, where it runs; where it does not, or where the agent drops in its place to recover the packet
        (RSED), what the law has dropped is not counted.
        """
        qdisc, dropped = self._testbed.qdisc, self._testbed.dropped(self._port)
        lost = queues.losses(self._port, qdisc)
        if qdisc is not None:
            return lost._replace(taken=0)
        queue = self.read_queue()
        if dropped is None or (queue is not None and queue.agent_drops):
            dropped = lost.taken - (_dropped_by_law(queue) or 0)
        return lost._replace(taken=dropped)

    def read_counters(self) -> dict[str, int]:
        """Sums of retransmissions and timeouts over all senders' namespaces."""
        each = [namespace_counters(self._testbed.host(name).pid) for name in self._senders]
        return {
            "retransmissions": sum(counters["RetransSegs"] for counters in each),
            "rto_timeouts": sum(counters["TCPTimeouts"] for counters in each),
        }

    # Workers

    def start_worker(self, host: str, role: str) -> tuple[Worker, int]:
        """A role in ``host`` that is ready, and the port that it listens on (0: none)."""
        worker = self._testbed.worker(host, role)
        return worker, worker.receive("ready", START_S).get("port", 0)

    def start_workers(self, hosts: list[str], role: str) -> list[tuple[Worker, int]]:
        """The same in several hosts, started in parallel."""
        workers = [self._testbed.worker(host, role) for host in hosts]
        return [(worker, worker.receive("ready", START_S).get("port", 0)) for worker in workers]

    def _start_capture(self) -> Worker:
        places = [(name, True) for name in self.data_senders()]
        places += [(name, False) for name in self._scenario.plan.receivers]
        worker = self._testbed.local_worker("capture")
        worker.receive("ready", START_S)
        listed: list[dict[str, Any]] = []
        for name, arriving in places:
            host = self._testbed.host(name)
            listed.append({"pid": host.pid, "interface": str(host.defaultIntf()), "arriving": arriving})
        worker.ask("start", START_S, places=listed, directory=str(self._testbed.logs))
        return worker

    def _start_tracer(self) -> Worker:
        worker = self._testbed.local_worker("tracer")
        worker.receive("ready", START_S)
        scenario = self._scenario
        switch, port = next(iter(scenario.governed_ports.items()), (self._switch, self._port))
        worker.ask(
            "start",
            hosts={name: self._testbed.host(name).pid for name in self.data_senders()},
            port=self._port,
            status=self._testbed.status_path(switch),
            law_port=port,
            interval_ms=scenario.trace_interval_ms,
            count=scenario.trace_flows,
            rate_mbit=scenario.rate_mbit,
            buffer_bytes=self._testbed.buffer_bytes,
        )
        return worker

    # Rounds

    def make_rounds(
        self,
        make: Callable[[int], R],
        wanted: int,
        interval_s: float,
        before_s: float,
        *,
        prefix: str = "",
        whole_intervals: bool = False,
    ) -> list[R]:
        """All rounds, including those that replace disturbed ones (:mod:`.rounds`).

        ``make`` makes the round of a number, from 0. One starts every ``interval_s`` s, or later if the round
        before it takes longer. ``before_s`` is the planned time before the first; ``prefix`` precedes the
        round in progress messages. ``whole_intervals``: wait for the end of the last interval.
        """
        made: list[R] = []
        stolen: list[float] = []
        next_start = began = time.monotonic()
        while len(made) < (needed := rounds.needed(stolen, wanted)):
            # A volley starts at a random time: fixed times could coincide with the policy's own timer.
            start = next_start + self._random.uniform(0, 0.1) * interval_s
            time.sleep(max(0.0, start - time.monotonic()))
            share = self.share_done(before_s + start - began, (needed - wanted) * interval_s)
            self._progress(prefix + rounds.step(stolen, wanted), share)
            made.append(make(len(made)))
            stolen.append(made[-1].stolen_percent)
            next_start = max(next_start + interval_s, time.monotonic())
        if whole_intervals:
            time.sleep(max(0.0, next_start - time.monotonic()))
        return made

    # Time

    def share_done(self, elapsed: float, further: float = 0.0) -> float:
        """Progress, 0 to 1, after ``elapsed`` s of the planned time plus ``further`` s."""
        return min(1.0, elapsed / max(self._expected_s + further, 0.001))

    def sleep(self, step: str, duration: float, before: float) -> None:
        """Wait for ``duration`` s and report progress; ``before`` is the planned time before this step, s."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < duration:
            self._progress(step, self.share_done(before + passed))
            time.sleep(min(0.5, duration - passed))

    def sleep_until(self, step: str, at_ns: int, seconds: float) -> None:
        """Wait until ``seconds`` after the first flow may start, at ``at_ns``."""
        passed = time.monotonic() - at_ns / 1e9
        self.sleep(step, seconds - passed, LEAD_S + passed)


def _dropped_by_law(queue: queues.QueueReading | None) -> int | None:
    """Packets that the queue laws of the bottleneck have dropped so far; None: it has none."""
    return None if queue is None or queue.judged is None else queue.judged.dropped


def stolen_during(volley: Callable[[], T]) -> tuple[T, float]:
    """What ``volley`` returns, and the share of all CPU time that the host took away during it, percent."""
    # Pauses do not count: time stolen in a pause delays no flow, and hides in its share what was stolen from
    # a volley of 30 ms.
    before = machine.cpu_times()
    outcome = volley()
    time.sleep(rounds.STOLEN_DELAY_S)
    return outcome, machine.cpu_shares(before, machine.cpu_times())["stolen_percent"]


def unreached(probe: Callable[[], list[T]]) -> list[T]:
    """Call ``probe``, which returns the hosts that it does not reach, until it returns none, at most
    `REACH_ATTEMPTS` times: the first segments may get lost while the network learns the hosts. Returns those
    of the last call.
    """
    failed: list[T] = []
    for attempt in range(REACH_ATTEMPTS):
        failed = probe()
        if not failed:
            break
        time.sleep(0.2 * attempt)
    return failed


def queue_between(
    before: queues.QueueReading | None, after: queues.QueueReading | None, lost: queues.PortLosses
) -> dict[str, Any] | None:
    """Figures of the queue between two readings, with the losses between them; None without an agent."""
    if before is None or after is None:
        return None
    return {**queues.between(before, after), "drops": lost.all}

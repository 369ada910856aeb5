"""A fluid model of one bottleneck: windows in, rates and a queue out. For laws that divide windows.

With the sum of windows W, the capacity C and the round-trip time R of an empty queue, the queue is W - C * R
if that is positive, and each flow gets its part of C by its window; otherwise it sends its window per R.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import Announcement, Congestion, FlowKey, FlowProgress, PortKey, QueueSample
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from tests.support.fakes import info
from tests.support.host_laws import NO_WINDOW, HostLaw, in_force

PORT = PortKey(1, 1)
# Payload of a full frame: 1,448 bytes of 1,514.
_PAYLOAD = 1448 / 1514


@dataclass
class Transfer:
    """``size`` None is endless; ``deadline`` is in seconds after the start."""

    size: int | None
    deadline: float | None
    start: float = 0.0
    acked: float = 0.0
    ended: float | None = None
    least_window: float = field(default=float("inf"))
    rtt: float = 0.0

    @property
    def missed(self) -> bool:
        return self.deadline is not None and (self.ended is None or self.ended > self.start + self.deadline)


class Bottleneck:
    """Flows through one port under a policy. ``rate`` in bytes/s on the wire. A law that the policy wants the
    switch to run is run at every tick of the model.
    """

    def __init__(self, engine: PolicyEngine, rate: int, buffer: int, rtt: float, scale: int = 9) -> None:
        self.engine, self.rate, self.buffer, self.rtt = engine, rate, buffer, rtt
        self.step = 1 << scale
        self.now = 0.0
        self.queue = 0.0
        self.rules: dict[FlowKey | None, int] = {}
        self.law: HostLaw | None = None
        self._byte_ns = 0
        self._reported = 0.0
        self.messages = 0
        self.wakes = 0
        self.congested = False
        self.flows: dict[FlowKey, Transfer] = {}
        self.transfers: list[Transfer] = []

    def _take(self, changes) -> None:
        for change in changes:
            self.messages += 1
            self.wakes += change.wake
            if change.rule is None:
                del self.rules[change.target.flow]
            else:
                self.rules[change.target.flow] = change.rule.bytes
            if change.target.flow is None:
                self._run(None if change.rule is None else change.rule.law)

    def _run(self, spec: LawSpec | None) -> None:
        """The law of the port from now on; a renewal keeps its state."""
        if spec is None:
            self.law = None
        elif self.law is None:
            self.law = HostLaw(in_force(spec, self.buffer, self.rate))

    def start(self, transfer: Transfer) -> None:
        key = FlowKey("10.0.0.2", "10.0.0.1", 80, 1000 + len(self.transfers))
        self.transfers.append(transfer)
        self.flows[key] = transfer
        transfer.start = self.now
        transfer.rtt = self.rtt + self.queue / self.rate
        if self.law is not None:
            self.law.flow_began(round(self.queue), self.now_ns)
        self._take(self.engine.flow_started(PORT, info(key, step=self.step), self.now))
        if transfer.size is not None:
            deadline = None if transfer.deadline is None else self.now + transfer.deadline
            self._take(self.engine.announced(PORT, key, Announcement(transfer.size, deadline), self.now))

    def window(self, key: FlowKey) -> float:
        """The bytes of a flow in flight: its rule, or its equal share of the capacity and buffer of
        the port.
        """
        own = (self.buffer + self.rate * self.rtt) / max(1, len(self.flows))
        ruled = self.rules.get(key, self.rules.get(None))
        if key not in self.rules and self.law is not None:
            ruled = self.law.window(len(self.flows), 0, round(self.flows[key].acked))
            ruled = None if ruled == NO_WINDOW else ruled + self.step - 1  # rounded up to a step
        if ruled is None:
            return own
        if ruled == 0:
            return 0.0
        floor = -(-1460 // self.step) * self.step
        return min(own, max(ruled // self.step * self.step, floor))

    @property
    def now_ns(self) -> int:
        """The time as laws in the switch have it."""
        return round(self.now * 1e9) + 1_000_000_000

    def _tick_law(self, tick: float) -> None:
        self._byte_ns += round(self.queue * tick * 1e9)
        if self.law is None:
            return
        self.law.tick(self.now_ns, self._byte_ns, round(self.queue), len(self.flows))
        if self.now - self._reported >= LOOK_INTERVAL:
            self._reported = self.now
            self._take(self.engine.law_reported(PORT, self.law.limits, self.now))

    def run(self, seconds: float, tick: float = 0.001, interval: float = 0.01) -> None:
        """Run for a duration; rules take effect with the next tick."""
        sampled = self.now
        end = self.now + seconds
        peak = 0.0
        while self.now < end:
            windows = {key: self.window(key) for key in self.flows}
            total = sum(windows.values())
            pipe = self.rate * self.rtt
            self.queue = min(max(0.0, total - pipe), self.buffer)
            peak = max(peak, self.queue)
            capacity = self.rate * _PAYLOAD * tick
            self.now += tick
            for key, window in windows.items():
                transfer = self.flows[key]
                transfer.least_window = min(transfer.least_window, window)
                sent = capacity * window / total if total > pipe else window / self.rtt * tick
                transfer.acked += sent
                if transfer.size is not None and transfer.acked >= transfer.size:
                    transfer.ended = self.now
            for key in [key for key, transfer in self.flows.items() if transfer.ended is not None]:
                del self.flows[key]
                self._take(self.engine.flow_ended(PORT, key, self.now))
            self._tick_law(tick)
            self._cross()
            if self.now - sampled >= interval - 1e-9:
                sampled = self.now
                sample = QueueSample(
                    round(self.queue), round(peak), self.buffer, self.rate, 0, len(self.flows), self.queue
                )
                peak = 0.0
                self._take(self.engine.sampled(PORT, sample, self.now))
                if self.engine.wants_progress(PORT):
                    progress = {
                        key: FlowProgress(int(t.acked), int(t.acked), t.rtt, True)
                        for key, t in self.flows.items()
                    }
                    self._take(self.engine.progressed(PORT, progress, self.now))

    def _cross(self) -> None:
        thresholds = self.engine.thresholds(PORT)
        if thresholds is None or not thresholds.cng:
            return
        if not self.congested and self.queue >= thresholds.cng:
            self.congested = True
            self._take(self.engine.congestion(PORT, Congestion.CNG, round(self.queue), self.now))
        elif self.congested and self.queue <= thresholds.nom:
            self.congested = False
            self._take(self.engine.congestion(PORT, Congestion.NOM, round(self.queue), self.now))

"""A model of one bottleneck, packet by packet: senders, a FIFO, and a window law that the port's switch runs.

The law is the C code of the switch, compiled for the host (``agent/bpf/laws/host.c``). Times are in ns.

Senders are ACK-clocked: they have the smaller of their congestion window and the granted window under way,
begin with ten segments, double each round trip until the first loss, and halve then. What is lost is sent
again after a round trip; if it was among the last three segments of a flow, after the minimum retransmission
timeout. An ACK passes the switch some time after its data has left it (``behind``), and reaches the sender
after the rest of a round trip.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairq_ryu.agent import layout
from tests.support.host_laws import NO_WINDOW, HostLaw, library

MSS, HEADERS = 1448, 66
FIRST_WINDOW = 10 * MSS
MIN_RTO = 200_000_000
# A flow that has not used its window for so long takes no share of the pool; as the agent's active_timeout.
_ACTIVE = 200_000_000
_ANY_WINDOW = 1 << 40


def switch_law(parameters: Any) -> HostLaw:
    """The law with these parameters, an ``fq_law``; compiled without checks, which are slow."""
    return HostLaw(parameters, library(checked=False))


@dataclass(eq=False, slots=True)
class Flow:
    """A sender; ``size`` None: without end. Bytes of payload. With ``stays_open`` a flow does not end when it
    has sent ``size``: more may follow. ACKs of ``passed`` bytes have passed the switch, and those of
    ``acked`` have arrived.
    """

    size: int | None
    start: int
    end: int | None = None
    sent: int = 0
    acked: int = 0
    cwnd: int = FIRST_WINDOW
    granted: int = _ANY_WINDOW
    used_window_at: int = 0
    handshake: int = 0
    passed: int = 0
    measured: Any = field(default_factory=layout.fq_round)
    slow_start: bool = True
    recovers_until: int = 0
    stays_open: bool = False


@dataclass
class Bottleneck:
    """One port. ``rate`` in bit/s, ``round_trip`` with an empty queue in ns, ``buffer`` in bytes; ``step`` of
    windows, bytes. ``seed`` decides by how much ACKs are late (at most 2 % of a round trip). ``behind``: ns
    that data takes from the port to the receiver, and its ACK back to the switch; None: half a round trip.
    """

    rate: float
    round_trip: int
    buffer: int
    law: HostLaw | None = None
    step: int = 512
    seed: int = 1
    behind: int | None = None

    now: int = 1_000_000_000
    backlog: int = 0
    byte_ns: int = 0
    peak: int = 0
    drops: int = 0
    flows: list[Flow] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    """The backlog that each segment has found."""

    def __post_init__(self) -> None:
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._random = random.Random(self.seed)
        self._changed_at = self._free_at = self.now
        self._sharing = self._young = 0
        self._behind = self.round_trip // 2 if self.behind is None else self.behind

    def start(self, at: int, size: int | None = None) -> Flow:
        """A flow opens its connection at that time."""
        flow = Flow(size, at)
        self._at(at, self._open, flow)
        return flow

    def start_messages(self, at: int, size: int, interval: int) -> Flow:
        """A connection opens at that time, and sends a message of that size in every interval, ns."""
        flow = Flow(0, at, stays_open=True)
        self._at(at, self._open, flow)
        self._at(at + interval, self._send_message, flow, size, interval)
        return flow

    def load(self, until: int) -> None:
        """From now to then, packets that are not TCP arrive at the rate of the link."""
        size = MSS + HEADERS
        if self.now >= until:
            return
        if self.backlog + size <= self.buffer:
            self._integrate()
            self.backlog += size
            self._free_at = max(self._free_at, self.now) + self._bytes_ns(size)
            self._at(self._free_at, self._leave, size)
            self._tick()
        self._at(self.now + self._bytes_ns(size), self.load, until)

    def remove(self, flow: Flow) -> None:
        """Forget a flow that has ended."""
        self.flows.remove(flow)

    def run(self, until: int) -> None:
        """Go on until that time."""
        while self._events and self._events[0][0] <= until:
            self.now, _, happens, arguments = heapq.heappop(self._events)
            happens(*arguments)
        self.now = until
        self._integrate()

    def _at(self, time: int, happens: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (time, next(self._order), happens, arguments))

    def _bytes_ns(self, size: int) -> int:
        return int(size * 8e9 / self.rate)

    # The switch

    def _integrate(self) -> None:
        self.byte_ns += self.backlog * (self.now - self._changed_at)
        self._changed_at = self.now

    def _count(self) -> None:
        assert self.law is not None
        since = self.now - _ACTIVE
        sharing = [flow for flow in self.flows if flow.end is None and flow.used_window_at > since]
        self._sharing = len(sharing)
        self._young = sum(flow.sent < self.law.parameters.young_bytes for flow in sharing)

    def _tick(self) -> None:
        if self.law is not None and self.law.is_due(self.now):
            self._count()
            self.law.tick(self.now, self.byte_ns, self.backlog, self._sharing, self._young)

    def _enqueue(self, flow: Flow, size: int) -> None:
        wire = size + HEADERS
        self.found.append(self.backlog)
        if self.backlog + wire > self.buffer:
            self._drop(flow, size)
            return
        self._integrate()
        self.backlog += wire
        self.peak = max(self.peak, self.backlog)
        self._free_at = max(self._free_at, self.now) + self._bytes_ns(wire)
        self._at(self._free_at, self._dequeue, flow, size)
        self._tick()

    def _leave(self, wire: int) -> None:
        self._integrate()
        self.backlog -= wire
        self._tick()

    def _dequeue(self, flow: Flow, size: int) -> None:
        self._leave(size + HEADERS)
        late = self._random.randrange(1 + self.round_trip // 50)
        self._at(self.now + self._behind + late, self._pass_ack, flow, size)

    def _pass_ack(self, flow: Flow, size: int) -> None:
        """An ACK passes the switch, which lowers its window."""
        before = self.round_trip - self._behind
        if self.law is not None:
            flight = flow.sent - flow.passed
            flow.passed += size
            flight += self.law.released(flow.measured, flow.passed, before, self.now)
            if flow.granted == _ANY_WINDOW or flight > flow.granted // 2:
                flow.used_window_at = self.now
            if flow.granted != _ANY_WINDOW:
                self.law.limited(flight, flow.granted, flow.handshake, self.now)
            self._grant(flow)
        self._at(self.now + before, self._receive_ack, flow, size)

    def _grant(self, flow: Flow) -> None:
        assert self.law is not None
        counted = flow.used_window_at > self.now - _ACTIVE
        window = self.law.window(max(1, self._sharing + (not counted)), self._young, flow.sent, MSS)
        if window == NO_WINDOW:
            flow.granted = _ANY_WINDOW
        else:
            flow.granted = max(-(-window // self.step), -(-MSS // self.step)) * self.step

    # The senders

    def _open(self, flow: Flow) -> None:
        """SYN and SYN-ACK pass the switch."""
        self.flows.append(flow)
        flow.used_window_at = self.now
        flow.handshake = self.round_trip + self._bytes_ns(self.backlog)
        if self.law is not None:
            self.law.flow_began(self.backlog, self.now)
            self._count()
            self._grant(flow)
        self._at(self.now + self.round_trip, self._send, flow)

    def _send_message(self, flow: Flow, size: int, interval: int) -> None:
        assert flow.size is not None
        flow.size += size
        self._send(flow)
        self._at(self.now + interval, self._send_message, flow, size, interval)

    def _send(self, flow: Flow) -> None:
        while flow.size is None or flow.sent < flow.size:
            size = MSS if flow.size is None else min(MSS, flow.size - flow.sent)
            flight = flow.sent - flow.acked
            if flight + size > min(flow.cwnd, flow.granted) and flight:
                return
            flow.sent += size
            self._enqueue(flow, size)

    def _drop(self, flow: Flow, size: int) -> None:
        self.drops += 1
        if self.now > flow.recovers_until:
            flow.cwnd = max(2 * MSS, flow.cwnd // 2)
            flow.slow_start = False
            flow.recovers_until = self.now + self.round_trip + self._bytes_ns(self.buffer)
        last = flow.size is not None and flow.size - flow.acked <= 3 * MSS
        wait = MIN_RTO if last else self.round_trip + self._bytes_ns(self.backlog)
        self._at(self.now + wait, self._enqueue, flow, size)

    def _receive_ack(self, flow: Flow, size: int) -> None:
        flow.acked += size
        flow.cwnd += size if flow.slow_start else MSS * size // flow.cwnd
        if flow.size is None or flow.acked < flow.size:
            self._send(flow)
        elif flow.end is None and not flow.stays_open:
            flow.end = self.now
            if self.law is not None:
                self.law.flow_ended()
                self._count()

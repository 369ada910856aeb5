"""A port that no agent can see, governed from the bridge behind it (``python -m bench far``).

A model, packet by packet, at 1 to 100 Gbit/s: data waits in the queue of a switch that is not ours, and
then arrives at a bridge with an agent, which keeps a virtual queue. Beside it the same law with the queue in
sight, and DCTCP (RFC 8257) with marks from that switch. The laws are the C code of the switch, and nothing
depends on how fast this machine is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.laws import ELEPHANTS, Network, volleys
from bench.packet_model import HEADERS, MSS, Bottleneck, Flow, switch_law
from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.far_queue import Why
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw
from tests.support.host_laws import HostHidden, HostLaw

NETWORKS = (
    Network(1e9, 200, 125_000),
    Network(10e9, 20, 500_000),
    Network(10e9, 100, 500_000),
    Network(25e9, 20, 500_000),
    Network(25e9, 50, 500_000),
    Network(25e9, 100, 500_000),
    Network(100e9, 20, 1_000_000),
    Network(100e9, 100, 1_000_000),
)
SHARED = Network(1e9, 500, 250_000)
"""Where others have a part of the line."""
SHARE = 0.98
SETTLE = 3_000_000_000
"""So long elephants are alone before anything counts: then the rate of the virtual queue has risen, ns."""
TICK = 1_000_000
"""Of the clocks of timestamps, ns."""
MARK_FRAMES = 20
"""DCTCP's threshold, as its paper has it at 1 Gbit/s; where four fifths of what is on the way in a round trip
are more, these, as its 65 frames are at 10 Gbit/s and 100 us."""


class Receiver:
    """A bridge behind the port: what has arrived there, and what it has inferred. ``law`` is its own."""

    def __init__(self, law: HostLaw, rate: float, buffer: int) -> None:
        self.law, self.buffer = law, buffer
        self.hidden = HostHidden(int(rate / 8), buffer, SHARE, checked=False)
        self.sharing = self.young = 0
        self._arrivals = layout.fq_arrivals()
        self._virtual = 0.0
        self._arrived_at = 0

    def arrive(self, wire: int, now: int) -> bool:
        """A frame arrives. Returns whether a tick of the law is due."""
        self.hidden.arrive(wire, now)
        drained = self.hidden.state.drain / 2**24 * (now - self._arrived_at)
        self._virtual = min(max(0.0, self._virtual - drained) + wire, self.buffer)
        self._arrived_at = now
        self.law.arrived(self._arrivals, wire)
        return self.law.is_due(now)

    def tick(self, now: int) -> None:
        """A tick of the law."""
        state, backlog = self.hidden.state, int(self._virtual)
        self.law.load(self._arrivals, backlog, now, state.probe_rate if state.probes else state.rate)
        self.law.tick(now, self._arrivals.length_ns, backlog, self.sharing, self.young)


@dataclass(slots=True)
class _Clocks:
    """The timestamps of a flow: the last TSval of its receiver that its sender knows, and those under way."""

    known: int = 0
    last: int = 0
    echoed: deque[int] = field(default_factory=deque)
    acks: deque[int] = field(default_factory=deque)
    asked: tuple[int, int] | None = None


class Far(Bottleneck):
    """The port of a switch that is not ours. Laws run on what arrives behind it, at one bridge or at several:
    ``receivers``, which have the flows in turn. Nothing of the port itself is known there. An ACK passes the
    bridge when its data arrives, so that a window takes effect a whole round trip later.
    """

    def __post_init__(self) -> None:
        self.behind = 0
        super().__post_init__()
        assert self.law is not None
        self.receivers = [Receiver(self.law, self.rate, self.buffer)]
        self._at_receiver: dict[Flow, Receiver] = {}
        self._clocks: dict[Flow, _Clocks] = {}
        self._next = 0

    def beside(self, part: float, until: int) -> None:
        """Until then, datagrams for somebody else take this part of the line."""
        size = MSS + HEADERS
        if self.now >= until:
            return
        if self.backlog + size <= self.buffer:
            self._integrate()
            self.backlog += size
            self._free_at = max(self._free_at, self.now) + self._bytes_ns(size)
            self._at(self._free_at, super()._leave, size)
        self._at(self.now + int(self._bytes_ns(size) / part), self.beside, part, until)

    def _tick(self) -> None:
        """Nobody sees the queue."""

    def _turn_to(self, flow: Flow) -> Receiver:
        """What happens next happens at the receiver of a flow."""
        found = self._at_receiver.get(flow)
        if found is None:
            found = self.receivers[self._next % len(self.receivers)]
            self._next += 1
            self._at_receiver[flow], self._clocks[flow] = found, _Clocks()
        self.law, self._sharing, self._young = found.law, found.sharing, found.young
        return found

    def _count(self) -> None:
        here = next(each for each in self.receivers if each.law is self.law)
        everyone = self.flows
        self.flows = [flow for flow in everyone if self._at_receiver.get(flow) is here]
        super()._count()
        self.flows = everyone
        here.sharing, here.young = self._sharing, self._young

    def _open(self, flow: Flow) -> None:
        self._turn_to(flow)
        super()._open(flow)

    def _enqueue(self, flow: Flow, size: int) -> None:
        dropped, clocks = self.drops, self._clocks[flow]
        super()._enqueue(flow, size)
        if self.drops == dropped:
            clocks.echoed.append(clocks.known)

    def _dequeue(self, flow: Flow, size: int) -> None:
        receiver, clocks = self._turn_to(flow), self._clocks[flow]
        echo = clocks.echoed.popleft()
        if clocks.asked is not None and echo >= clocks.asked[0]:
            took = self.now - clocks.asked[1]
            clocks.asked = None
            receiver.hidden.round_trip(0, took, self.now)
        super()._dequeue(flow, size)
        if receiver.arrive(size + HEADERS, self.now):
            self._count()
            receiver.tick(self.now)

    def _pass_ack(self, flow: Flow, size: int) -> None:
        self._turn_to(flow)
        clocks, value = self._clocks[flow], self.now // TICK
        clocks.acks.append(value)
        if value > clocks.last and clocks.asked is None:
            clocks.asked = value, self.now
        clocks.last = value
        super()._pass_ack(flow, size)

    def _receive_ack(self, flow: Flow, size: int) -> None:
        self._turn_to(flow)
        clocks = self._clocks[flow]
        clocks.known = max(clocks.known, clocks.acks.popleft())
        super()._receive_ack(flow, size)


@dataclass(slots=True)
class _Marks:
    """What a DCTCP sender knows: alpha, and bytes of the present window."""

    alpha: float = 1.0
    acked: int = 0
    marked: int = 0
    window_end: int = 0


@dataclass
class Dctcp(Bottleneck):
    """Senders that halve their windows by the part of marked bytes. ``threshold`` in bytes."""

    threshold: int = 0
    _marks: dict[int, _Marks] = field(default_factory=dict)

    def _enqueue(self, flow: Flow, size: int) -> None:
        marks = self._marks.setdefault(id(flow), _Marks())
        if self.backlog > self.threshold:
            marks.marked += size
            flow.slow_start = False
        super()._enqueue(flow, size)

    def _receive_ack(self, flow: Flow, size: int) -> None:
        marks = self._marks[id(flow)]
        marks.acked += size
        if flow.acked >= marks.window_end:
            marks.alpha += (min(1, marks.marked / marks.acked) - marks.alpha) / 16
            if marks.marked:
                flow.cwnd = max(2 * MSS, int(flow.cwnd * (1 - marks.alpha / 2)))
            marks.acked = marks.marked = 0
            marks.window_end = flow.sent
        super()._receive_ack(flow, size)


def _port(network: Network, spec: LawSpec | None, far: bool) -> Bottleneck:
    place = network.rate, network.round_trip * 1000, network.buffer
    if spec is None:
        under_way = network.rate / 8e6 * network.round_trip
        return Dctcp(*place, threshold=max(MARK_FRAMES * 1514, int(0.8 * under_way)))
    return (Far if far else Bottleneck)(*place, _law(network, spec, far))


def _law(network: Network, spec: LawSpec, far: bool) -> HostLaw:
    kind, share = (FAR_KIND, SHARE) if far else ("model", 1)
    return switch_law(parameters(spec, QueueLimits(kind, network.buffer, int(network.rate / 8 * share))))


def table(networks: tuple[Network, ...] = NETWORKS) -> Iterator[str]:
    """The lines of the table: p99 of the mice over the time that fair shares would take; the hidden queue
    with elephants alone (mean), and as segments found it (p99), in parts of its buffer.
    """
    yield "rate [Mbit/s]  RTT [us]  senders          p99/fair  mean queue  p99 queue  elephants  drops"
    for network in networks:
        rtt = network.round_trip
        fairq, las = FairQLaw(base_rtt_us=rtt), LasLaw(target_ppm=150_000, base_rtt_us=rtt)
        rows = (
            ("dctcp", None, False),
            ("fairq, in sight", fairq, False),
            ("fairq, far", fairq, True),
            ("las, far", las, True),
        )
        for name, spec, far in rows:
            found = volleys(network, _port(network, spec, far), SETTLE if far else 0)
            yield (
                f"{network.rate / 1e6:13,.0f} {rtt:9d}  {name:15s} {found.p99:9.2f} {found.queue:11.1%} "
                f"{found.found:10.1%} {found.goodput:10.1%} {found.drops:6d}"
            )


@dataclass(frozen=True, slots=True)
class Shared:
    """Of a line with elephants: ``queue``, the mean of the hidden one as a part of its buffer; ``goodput`` of
    the elephants of each receiver as a part of the line; ``found``: the part of the buffer that a segment
    found full (p99); and ``drops``. ``why``: what the receivers' rates are at the end.
    """

    queue: float
    found: float
    goodput: tuple[float, ...]
    drops: int
    why: tuple[Why, ...]


def beside_others(
    network: Network, spec: LawSpec, receivers: int = 1, part: float = 0.0, seconds: float = 2.0
) -> Shared:
    """Eight elephants to one or several receivers behind the port, whose bridges each take the line for its
    own, beside datagrams for somebody else that take a part of it. Figures of the last so many seconds of
    twice as many.
    """
    port = _port(network, spec, far=True)
    assert isinstance(port, Far)
    for _ in range(receivers - 1):
        port.receivers.append(Receiver(_law(network, spec, far=True), network.rate, network.buffer))
    span = int(seconds * 1e9)
    flows = [port.start(port.now + number * 1000) for number in range(ELEPHANTS)]
    if part:
        port.beside(part, port.now + 2 * span)
    port.run(port.now + span)
    area, acked, drops = port.byte_ns, [flow.acked for flow in flows], port.drops
    port.found.clear()
    port.run(port.now + span)
    grown = [flow.acked - before for flow, before in zip(flows, acked, strict=True)]
    on_wire = (MSS + HEADERS) / MSS * 8e9 / span / network.rate
    return Shared(
        queue=(port.byte_ns - area) / span / network.buffer,
        found=sorted(port.found)[len(port.found) * 99 // 100] / network.buffer,
        goodput=tuple(sum(grown[each::receivers]) * on_wire for each in range(receivers)),
        drops=port.drops - drops,
        why=tuple(Why(each.hidden.state.why) for each in port.receivers),
    )


def table_beside_others() -> Iterator[str]:
    """The lines of the table of shared lines."""
    yield "policy  receivers  others  mean queue  p99 queue  elephants  drops  rates are"
    for name, spec in (
        ("fairq", FairQLaw(base_rtt_us=SHARED.round_trip)),
        ("las", LasLaw(target_ppm=150_000, base_rtt_us=SHARED.round_trip)),
    ):
        for receivers, part in ((1, 0.0), (1, 0.4), (2, 0.0), (2, 0.4)):
            found = beside_others(SHARED, spec, receivers, part)
            elephants = " + ".join(f"{each:.1%}" for each in found.goodput)
            why = ", ".join(sorted({each.name.lower() for each in found.why}))
            yield (
                f"{name:6s} {receivers:10d} {part:7.0%} {found.queue:11.1%} {found.found:10.1%}  "
                f"{elephants:13s} {found.drops:6d}  {why}"
            )


def main() -> None:
    """Print the tables."""
    for line in table():
        print(line, flush=True)
    print(f"\n{SHARED.rate / 1e6:,.0f} Mbit/s, {SHARED.round_trip} us, {SHARED.buffer:,} bytes")
    for line in table_beside_others():
        print(line, flush=True)

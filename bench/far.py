"""A port that no agent can see, governed from the bridge behind it (``python -m bench far``).

A model, packet by packet, at 1 to 100 Gbit/s: data waits in the queue of a switch that is not ours, and
then arrives at a bridge with an agent, which keeps a virtual queue. Beside it the same law with the queue in
sight, and DCTCP (RFC 8257) with marks from that switch. The laws are the C code of the switch, and nothing
depends on how fast this machine is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.laws import Network, volleys
from bench.packet_model import MSS, Bottleneck, Flow, switch_law
from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw

NETWORKS = (
    Network(1e9, 200, 125_000),
    Network(10e9, 20, 500_000),
    Network(10e9, 100, 500_000),
    Network(25e9, 50, 500_000),
    Network(100e9, 20, 1_000_000),
)
SHARE = 0.98
MARK_FRAMES = 20
"""DCTCP's threshold, as its paper has it at 1 Gbit/s; where four fifths of what is on the way in a round trip
are more, these, as its 65 frames are at 10 Gbit/s and 100 us."""


class Far(Bottleneck):
    """The port of a switch that is not ours. Its law runs on what arrives behind it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._arrivals = layout.fq_arrivals()
        self._virtual = 0.0
        self._arrived_at = self.now

    def _tick(self) -> None:
        """Nobody sees the queue."""

    def _leave(self, wire: int) -> None:
        super()._leave(wire)
        law = self.law
        assert law is not None
        drained = SHARE * self.rate / 8e9 * (self.now - self._arrived_at)
        self._virtual = min(max(0.0, self._virtual - drained) + wire, self.buffer)
        self._arrived_at = self.now
        law.arrived(self._arrivals, wire)
        if law.is_due(self.now):
            law.load(self._arrivals, int(self._virtual), self.now)
            self._count()
            length = self._arrivals.length_ns
            law.tick(self.now, length, int(self._virtual), self._sharing, self._young)


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
    kind, share = (FAR_KIND, SHARE) if far else ("model", 1)
    law = switch_law(parameters(spec, QueueLimits(kind, network.buffer, int(network.rate / 8 * share))))
    return (Far if far else Bottleneck)(*place, law)


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
            found = volleys(network, _port(network, spec, far))
            yield (
                f"{network.rate / 1e6:13,.0f} {rtt:9d}  {name:15s} {found.p99:9.2f} {found.queue:11.1%} "
                f"{found.found:10.1%} {found.goodput:10.1%} {found.drops:6d}"
            )


def main() -> None:
    """Print the table."""
    for line in table():
        print(line, flush=True)

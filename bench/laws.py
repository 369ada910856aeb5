"""The laws of the switch at 50 Mbit/s to 100 Gbit/s, in a model of one port (``python -m bench laws``).

Eight elephants fill the queue; 32 mice of 11.5 KB begin together, several times. No network is made: the
laws are the C code of the switch, and nothing depends on how fast this machine is.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.packet_model import HEADERS, MSS, Bottleneck, switch_law
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.las import LasLaw

ELEPHANTS, MICE, MOUSE, VOLLEYS = 8, 32, 11_500, 4


@dataclass(frozen=True, slots=True)
class Network:
    """``rate`` in bit/s, ``round_trip`` in us, ``buffer`` in bytes."""

    rate: float
    round_trip: int
    buffer: int


NETWORKS = (
    Network(50e6, 1000, 125_000),
    Network(200e6, 1000, 125_000),
    Network(1e9, 200, 125_000),
    Network(10e9, 100, 500_000),
    Network(100e9, 50, 4_000_000),
)


def specs(network: Network) -> dict[str, LawSpec | None]:
    """The laws that are compared, by their names in the table."""
    rtt = network.round_trip
    return {
        "droptail": None,
        "fairq": FairQLaw(base_rtt_us=rtt),
        "fairswitch": FairSwitchLaw(base_rtt_us=rtt),
        "las": LasLaw(target_ppm=150_000, base_rtt_us=rtt),
        "iqm": IqmLaw(target_ppm=200_000, interval_us=10_000, base_rtt_us=rtt),
        "iqm paper": IqmLaw(target_ppm=1_000_000, interval_us=10_000, base_rtt_us=rtt),
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of the mice: mean and p99 as multiples of the time in which the port sends all mice, alone and with the
    elephants' share; of the port: mean queue with elephants alone, p99 of the queue that segments find and
    longest queue as parts of the buffer, goodput of the elephants as a part of the rate, and drops after the
    start.
    """

    mean: float
    p99: float
    queue: float
    found: float
    peak: float
    goodput: float
    drops: int
    unfinished: int


def volleys(network: Network, port: Bottleneck, settle: int = 0) -> Outcome:
    """Run the model of that port. ``settle``: so long (ns) the elephants are alone before anything counts,
    beyond the time that the law needs.
    """
    drain = network.buffer * 8e9 / network.rate
    warm = int(max(100 * (port.round_trip + drain), 20e6))
    elephants = [port.start(port.now + i * 1000) for i in range(ELEPHANTS)]
    port.run(port.now + settle + warm)
    area, acked, began = port.byte_ns, sum(flow.acked for flow in elephants), port.now
    drops = port.drops
    port.found.clear()
    port.run(port.now + warm)
    spent = port.now - began
    queue = (port.byte_ns - area) / spent / network.buffer
    goodput = (sum(flow.acked for flow in elephants) - acked) * 8e9 / spent / network.rate
    segments = -(-MOUSE // MSS)
    alone = MICE * (MOUSE + segments * HEADERS) * 8e9 / network.rate
    times: list[int] = []
    unfinished, peak = 0, 0
    for _ in range(VOLLEYS):
        port.peak = 0
        mice = [port.start(port.now, MOUSE) for _ in range(MICE)]
        port.run(port.now + int(8 * alone + 20 * port.round_trip + 1e9 * (port.law is None)))
        times += [flow.end - flow.start for flow in mice if flow.end is not None]
        unfinished += sum(flow.end is None for flow in mice)
        peak = max(peak, port.peak)
        for flow in mice:
            port.remove(flow)
        port.run(port.now + warm // 4)
    fair = alone * (MICE + ELEPHANTS) / MICE
    return Outcome(
        mean=statistics.mean(times) / alone,
        p99=_p99(times) / fair,
        queue=queue,
        found=_p99(port.found) / network.buffer,
        peak=peak / network.buffer,
        goodput=goodput * (MSS + HEADERS) / MSS,
        drops=port.drops - drops,
        unfinished=unfinished,
    )


def _p99(values: Sequence[int]) -> int:
    return sorted(values)[len(values) * 99 // 100]


def table(networks: Sequence[Network] = NETWORKS) -> list[str]:
    """The lines of the table."""
    lines = [
        "rate [Mbit/s]  law            mean/alone  p99/fair  queue  peak  elephants  drops",
    ]
    for network in networks:
        limits = QueueLimits("model", network.buffer, int(network.rate / 8))
        for name, spec in specs(network).items():
            law = None if spec is None else switch_law(parameters(spec, limits))
            port = Bottleneck(network.rate, network.round_trip * 1000, network.buffer, law)
            found = volleys(network, port)
            lines.append(
                f"{network.rate / 1e6:13,.0f}  {name:13s} {found.mean:11.2f} {found.p99:9.2f} "
                f"{found.queue:6.0%} {found.peak:5.0%} {found.goodput:10.1%} {found.drops:6d}"
                + (f"  {found.unfinished} mice unfinished" if found.unfinished else "")
            )
    return lines


def main() -> None:
    """Print the table."""
    print("\n".join(table()))

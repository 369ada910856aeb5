"""FairQ's law beside traffic that does not use its windows, up to 10 Gbit/s (``python -m bench beside``).

In the packet model, with the C code of the switch: the goodput of one bulk flow beside connections that
send short messages, and the time in which bulk flows recover after packets that are not TCP have filled the
queue at the rate of the link. Nothing depends on how fast this machine is.
"""

from __future__ import annotations

from bench.laws import Network
from bench.packet_model import HEADERS, MSS, Bottleneck, Flow, switch_law
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.laws.fairq import FairQLaw

NETWORKS = (
    Network(200e6, 1000, 125_000),
    Network(1e9, 200, 125_000),
    Network(10e9, 100, 500_000),
)
CONNECTIONS = (100, 500)
MESSAGE, MESSAGE_INTERVAL = 200, 150_000_000  # bytes, ns
BULK_FLOWS = 8
# How long the load lasts does not matter once the windows are at their minimum, which takes some ms.
LOAD = 250_000_000
_MS = 1_000_000


def goodput(port: Bottleneck, flows: list[Flow], duration: int) -> float:
    """What the flows have acknowledged in the next so many ns, as a part of the link, headers counted."""
    before = sum(flow.acked for flow in flows)
    port.run(port.now + duration)
    acked = sum(flow.acked for flow in flows) - before
    return acked * (MSS + HEADERS) / MSS * 8e9 / duration / port.rate


def beside_messages(port: Bottleneck, connections: int) -> float:
    """Goodput of one bulk flow beside so many connections with messages, as a part of what it has alone."""
    bulk = [port.start(port.now)]
    port.run(port.now + 200 * _MS)
    alone = goodput(port, bulk, 100 * _MS)
    for number in range(connections):
        port.start_messages(port.now + number * MESSAGE_INTERVAL // connections, MESSAGE, MESSAGE_INTERVAL)
    # A new flow counts as one that uses its window for 200 ms.
    port.run(port.now + MESSAGE_INTERVAL + 300 * _MS)
    return goodput(port, bulk, MESSAGE_INTERVAL) / alone


def recovery(port: Bottleneck) -> float:
    """Time from the end of the load until bulk flows have 90 % of their goodput again, ms."""
    bulk = [port.start(port.now + number * 1000) for number in range(BULK_FLOWS)]
    port.run(port.now + 200 * _MS)
    before = goodput(port, bulk, 100 * _MS)
    ended = port.now + LOAD
    port.load(ended)
    port.run(ended)
    step = max(port.round_trip, _MS // 2)
    while goodput(port, bulk, step) < 0.9 * before and port.now < ended + 20_000 * _MS:
        pass
    return (port.now - ended) / _MS


def table() -> list[str]:
    """The lines of the table."""
    titles = [f"beside {connections} connections" for connections in CONNECTIONS]
    lines = ["rate [Mbit/s]  law       " + "  ".join(titles) + "  recovery after load [ms]"]
    for network in NETWORKS:
        for name in ("droptail", "fairq"):
            ports = (_port(network, name == "fairq") for _ in range(3))
            cells = [
                f"{beside_messages(next(ports), connections):{len(title)}.1%}"
                for connections, title in zip(CONNECTIONS, titles, strict=True)
            ]
            cells.append(f"{recovery(next(ports)):24.1f}")
            lines.append(f"{network.rate / 1e6:13,.0f}  {name:8s}  " + "  ".join(cells))
    return lines


def _port(network: Network, governed: bool) -> Bottleneck:
    """A port of that network, with FairQ's law or without."""
    law = None
    if governed:
        limits = QueueLimits("model", network.buffer, int(network.rate / 8))
        law = switch_law(parameters(FairQLaw(base_rtt_us=network.round_trip), limits))
    return Bottleneck(network.rate, network.round_trip * 1000, network.buffer, law)


def main() -> None:
    """Print the table."""
    print("\n".join(table()))

"""The order for the simulator, as ``simulator/order.h`` describes it: a scenario under a policy, once."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.agent import law_table, queue_law_table
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments.profiles import MODERN
from fairq_ryu.experiments.simulator.laws import Laws
from fairq_ryu.experiments.simulator.network import Link, network_of
from fairq_ryu.experiments.workloads.incast.limits import mice_ms
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario

ACK_EVERY = 2
"""Segments that a host of Linux acknowledges together."""
CONTROLS = ("cubic", "reno", "dctcp")
"""Congestion controls of simulated hosts, all of ns-3."""
BENCH_ROUND_TRIP_MS = 0.3
"""Where a scenario adds nothing to the round trip: as between the hosts of a bench whose queues are empty."""
_RTO_MIN_MS = 200.0
_BUCKETS = 8
_LEAST_SOCKET = 6 << 20  # as Linux: a window scale of 7


@dataclass(frozen=True, slots=True)
class Hosts:
    """What no scenario says of hosts: ``link_mbit``, the rate of every sender's link; ``ack_every``: for so
    many segments a receiver of bulk data sends an ACK, and for fewer after 40 ms.
    """

    link_mbit: float
    ack_every: int = ACK_EVERY


def check(scenario: IncastScenario) -> None:
    """``UserError``, with all faults, if a scenario has what is not simulated."""
    faults = []
    if scenario.cc not in CONTROLS:
        faults.append(UserError(f"no TCP {scenario.cc!r} is simulated", f"set cc to {', '.join(CONTROLS)}"))
    if scenario.sender_cc:
        faults.append(UserError("simulated hosts have one TCP, and sender_cc names more", "leave it out"))
    for name, usual in (
        ("capture", False),
        ("trace_flows", 0),
        ("batch_loss", False),
        ("syn", "copy"),
        ("way", "paths"),
        ("controller_stopped_s", 0.0),
        ("receivers", 1),
        ("requests", 1),
        ("udp_mbit", 0.0),
        ("host_rate_mbit", 0.0),
        ("hosts", MODERN),
        ("shared_buffer", False),
        ("ecn", False),
        ("initcwnd", 0),
        ("receive_buffer", 0),
    ):
        if getattr(scenario, name) != usual:
            faults.append(UserError(f"{name} is not simulated", "leave it out, or use `fairq run`"))
    if faults:
        raise all_of(faults)


def round_trip_ms(scenario: IncastScenario) -> float:
    """The propagation delay of a round trip between sender and receiver."""
    return scenario.rtt_ms or BENCH_ROUND_TRIP_MS


def order(scenario: IncastScenario, laws: Laws, hosts: Hosts, *, seed: int, active_timeout_s: float) -> str:
    """The text. ``active_timeout_s``: as the agents' setting."""
    network = network_of(scenario, hosts.link_mbit)
    at, towards = scenario.plan.bottleneck
    trip = round_trip_ms(scenario)
    under_way = 2 * int(scenario.buffer_bytes + scenario.rate_mbit * 125 * trip)
    numbers = {
        "seed": seed,
        "bucket_ns": _ns(active_timeout_s / _BUCKETS),
        "link_delay_ns": _ns(trip / 1e3 / 2 / network.hops),
        "rto_min_ns": _ns((scenario.rto_min_ms or _RTO_MIN_MS) / 1e3),
        "ack_every": hosts.ack_every,
        "sack": int(scenario.sack),
        "timestamps": int(scenario.timestamps),
        "socket_buffer": max(_LEAST_SOCKET, under_way),
        "elephants": scenario.elephants,
        "mice_per_sender": scenario.mice_per_sender,
        "mouse_bytes": scenario.mice_bytes,
        "gap_ns": _gap_ns(scenario),
        "rounds": scenario.rounds,
        "round_interval_ns": max(1, _ns(scenario.round_interval_s)),
        "round_timeout_ns": _ns(scenario.round_timeout_s),
        "warmup_ns": _ns(scenario.warmup_s),
        "alone_ns": _ns(scenario.elephants_only_s),
        "after_ns": _ns(scenario.after_s),
    }
    lines = [
        *(f"switch {name}" for name in network.switches),
        *(f"link {each.one} {each.other} {_bits(each.rate_mbit)} {each.buffer}" for each in network.links),
        *(line for each in network.links if each.buffer for line in _laws(each, laws, network.switches)),
        f"receiver {scenario.plan.receiver}",
        f"bottleneck {at} {towards}",
        f"control {scenario.cc}",
        "senders " + " ".join(scenario.plan.senders(scenario.senders)),
        *(f"{name} {number}" for name, number in numbers.items()),
    ]
    return "\n".join(lines) + "\n"


def _gap_ns(scenario: IncastScenario) -> int:
    """The mean time between two connections that the receiver opens: those of a volley take a hundredth of
    the time that the volley needs on the wire.
    """
    mice = scenario.senders * scenario.mice_per_sender
    return max(1, _ns(mice_ms(scenario) / 1e5 / mice)) if mice else 1


def _laws(link: Link, laws: Laws, switches: tuple[str, ...]) -> list[str]:
    """The laws of the ports at the ends of a link that are a switch's."""
    limits = QueueLimits("simulated", link.buffer, _bits(link.rate_mbit) // 8)
    ends = [(link.one, link.other)]
    if link.other in switches:
        ends.append((link.other, link.one))
    lines = []
    for one, other in ends:
        if laws.window is not None:
            lines.append(f"law {one} {other} {bytes(law_table.parameters(laws.window, limits)).hex()}")
        if laws.queue is not None:
            made = bytes(queue_law_table.parameters(laws.queue, limits)).hex()
            lines.append(f"queue_law {one} {other} {made}")
    return lines


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _bits(mbit: float) -> int:
    return round(mbit * 1e6)

"""The simulated network of a scenario: switches, and links between them and hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario
from mininet_topos import plans

AMPLE = 1_000_000
"""Mbit/s of a link between switches that the scenario does not limit."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the switch ``one``. ``buffer`` of its port to ``other`` in bytes, 0: as much as comes."""

    one: str
    other: str
    rate_mbit: float
    buffer: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """``hops``: links between a sender and the receiver."""

    switches: tuple[str, ...]
    links: tuple[Link, ...]
    hops: int


def network_of(scenario: Scenario, link_mbit: float) -> Network:
    """The network of a scenario; ``link_mbit`` is the rate of every sender's link. ``UserError`` for a
    topology that is not simulated.
    """
    plan, buffer = scenario.plan, scenario.buffer_bytes
    at, towards = plan.bottleneck
    senders = plan.senders(scenario.senders)
    bottleneck = Link(at, towards, scenario.rate_mbit, buffer)
    if isinstance(plan, plans.Incast) and not plan.far_ports:
        return Network((at,), (bottleneck, *(Link(at, host, link_mbit) for host in senders)), 2)
    if isinstance(plan, plans.Dumbbell):
        hosts = (*(Link(at, host, link_mbit) for host in senders), Link(towards, plan.receiver, link_mbit))
        return Network((at, towards), (bottleneck, *hosts), 3)
    if isinstance(plan, plans.LeafSpine):
        leaves = {host: f"leaf{leaf}" for leaf, host in _places(plan)}
        hosts = tuple(Link(leaves[host], host, link_mbit) for host in senders)
        rate, room = (scenario.uplink_mbit, buffer) if scenario.uplink_mbit else (AMPLE, 0)
        spines = [f"spine{number + 1}" for number in range(plan.spines)]
        names = [f"leaf{number + 1}" for number in range(plan.leaves)]
        up = tuple(Link(leaf, spine, rate, room) for leaf in names for spine in spines)
        return Network((*names, *spines), (bottleneck, *hosts, *up), 4)
    raise UserError(
        f"topology {scenario.topology!r} is not simulated", "choose incast, dumbbell or leafspine"
    )


def _places(plan: plans.LeafSpine) -> Iterator[tuple[int, str]]:
    for leaf in range(1, plan.leaves + 1):
        for place in range(1, plan.hosts + 1):
            yield leaf, plan.host(leaf, place)

"""The plans of the topologies: their hosts, their senders and receivers, and the bottleneck.

A plan computes names only: the topologies are built from it, and experiments use it without Mininet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Minimum and maximum of each argument. With these the longest name of an interface is `leaf64-eth1064` or
# `edge16_8-eth16`: 14 characters, and the kernel takes 15.
HOSTS = (1, 1000)
LEAVES = (2, 64)
SPINES = (1, 64)
PODS = (2, 16)
RIGHT = (1, 64)


class Plan:
    """A topology for experiments with many senders and one receiver."""

    @property
    def loops(self) -> bool:
        """Whether the network has loops, in which frames of plain learning switches would circulate for
        ever.
        """
        return False

    @property
    def receiver(self) -> str:
        """The host that receives."""
        raise NotImplementedError

    @property
    def receivers(self) -> Sequence[str]:
        """All hosts that receive behind the bottleneck, `receiver` first."""
        return [self.receiver]

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The switch that has the bottleneck port, and the node behind that port."""
        raise NotImplementedError

    @property
    def far_ports(self) -> Mapping[str, str]:
        """Of each of our switches, the interface by which data arrives that has passed the bottleneck, where
        that is at a switch of others; {}: it is at one of ours.
        """
        return {}

    @property
    def sources(self) -> Sequence[str]:
        """The hosts that may send, in the order in which they are chosen."""
        raise NotImplementedError

    def senders(self, count: int) -> list[str]:
        """The first ``count`` hosts that send. ``ValueError`` when there are fewer."""
        if not 1 <= count <= len(self.sources):
            raise ValueError(f"{count} senders, but this topology has 1 to {len(self.sources)}")
        return list(self.sources[:count])


@dataclass(frozen=True)
class Incast(Plan):
    """``n`` hosts and the receiver on switch s1. ``ValueError`` when ``n`` is out of bounds."""

    n: int

    def __post_init__(self) -> None:
        _whole("incast: n", self.n, HOSTS)

    @property
    def receiver(self) -> str:
        """The host r."""
        return "r"

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The port to the receiver."""
        return "s1", self.receiver

    @property
    def sources(self) -> Sequence[str]:
        """All hosts but the receiver."""
        return _hosts(1, self.n)


@dataclass(frozen=True)
class BehindTor(Incast):
    """``n`` hosts on switch tor, which is not ours. Behind it is the receiver on switch s1; or, with
    ``right`` above 1, switch rack, which is not ours either, and behind that so many switches s1, s2 and so
    on with a receiver each.
    """

    right: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole("tor: right", self.right, RIGHT)

    @property
    def receiver(self) -> str:
        """The first of `receivers`."""
        return self.receivers[0]

    @property
    def receivers(self) -> Sequence[str]:
        """The host r; with several, r1, r2 and so on."""
        return ["r"] if self.right == 1 else [f"r{number}" for number in _upto(self.right)]

    @property
    def switches(self) -> Sequence[str]:
        """Those of the receivers, which are ours."""
        return [f"s{number}" for number in _upto(self.right)]

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The port of tor to s1, or to rack."""
        return "tor", "s1" if self.right == 1 else "rack"

    @property
    def far_ports(self) -> Mapping[str, str]:
        """The port of each receiver's switch to the switch before it."""
        return {switch: f"{switch}-eth1" for switch in self.switches}

    @property
    def receiver_ports(self) -> Mapping[str, str]:
        """The port of each receiver's switch to the receiver."""
        return {switch: f"{switch}-eth2" for switch in self.switches}


@dataclass(frozen=True)
class Dumbbell(Plan):
    """``n`` hosts at switch left, ``right`` at switch right. ``ValueError`` when one is out of bounds."""

    n: int
    right: int

    def __post_init__(self) -> None:
        _whole("dumbbell: n", self.n, HOSTS)
        _whole("dumbbell: right", self.right, HOSTS)

    @property
    def receiver(self) -> str:
        """The first host on the right."""
        return f"h{self.n + 1}"

    @property
    def receivers(self) -> Sequence[str]:
        """The hosts on the right."""
        return _hosts(self.n + 1, self.n + self.right)

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The port from left to right."""
        return "left", "right"

    @property
    def sources(self) -> Sequence[str]:
        """The hosts on the left."""
        return _hosts(1, self.n)


@dataclass(frozen=True)
class LeafSpine(Plan):
    """Every leaf has ``hosts`` hosts and a link to every spine. ``ValueError`` when one is out of bounds."""

    leaves: int
    spines: int
    hosts: int

    def __post_init__(self) -> None:
        _whole("leafspine: leaves", self.leaves, LEAVES)
        _whole("leafspine: spines", self.spines, SPINES)
        _whole("leafspine: hosts", self.hosts, HOSTS)

    @classmethod
    def with_senders(cls, leaves: int, spines: int, senders: int) -> LeafSpine:
        """The one with the fewest hosts a leaf that has ``senders`` on the leaves before the last."""
        _whole("leafspine: leaves", leaves, LEAVES)
        return cls(leaves, spines, -(-senders // (leaves - 1)))

    @property
    def loops(self) -> bool:
        """With more than one spine."""
        return self.spines > 1

    def host(self, leaf: int, place: int) -> str:
        """The host on port ``place`` of ``leaf``; both count from 1."""
        return f"h{(leaf - 1) * self.hosts + place}"

    @property
    def receiver(self) -> str:
        """The first host of the last leaf."""
        return self.host(self.leaves, 1)

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The port to the receiver."""
        return f"leaf{self.leaves}", self.receiver

    @property
    def sources(self) -> Sequence[str]:
        """The hosts of the other leaves, one a leaf in turn."""
        return [self.host(leaf, place) for place in _upto(self.hosts) for leaf in _upto(self.leaves - 1)]


@dataclass(frozen=True)
class FatTree(Plan):
    """``k`` pods of k/2 edge and k/2 aggregation switches. ``ValueError`` when odd or out of bounds."""

    k: int

    def __post_init__(self) -> None:
        _whole("fattree: k", self.k, PODS)
        if self.k % 2:
            raise ValueError(f"fattree: k is {self.k}, must be even")

    @property
    def loops(self) -> bool:
        """With more than one core."""
        return self.cores > 1

    @property
    def half(self) -> int:
        """Switches of each kind in a pod, hosts at an edge switch, uplinks of a switch."""
        return self.k // 2

    @property
    def hosts(self) -> int:
        """Hosts in all."""
        return self.k * self.half * self.half

    @property
    def cores(self) -> int:
        """Core switches."""
        return self.half * self.half

    def host(self, pod: int, edge: int, place: int) -> str:
        """The host on port ``place`` of that edge switch; all count from 1."""
        return f"h{((pod - 1) * self.half + edge - 1) * self.half + place}"

    @property
    def receiver(self) -> str:
        """The first host of the last pod."""
        return self.host(self.k, 1, 1)

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The port to the receiver."""
        return f"edge{self.k}_1", self.receiver

    @property
    def sources(self) -> Sequence[str]:
        """The hosts of the other pods, one a pod in turn, and within a pod one an edge switch in turn."""
        return [
            self.host(pod, edge, place)
            for place in _upto(self.half)
            for edge in _upto(self.half)
            for pod in _upto(self.k - 1)
        ]


def _upto(last: int) -> range:
    return range(1, last + 1)


def _hosts(first: int, last: int) -> list[str]:
    return [f"h{number}" for number in range(first, last + 1)]


def _whole(what: str, value: object, bounds: tuple[int, int]) -> None:
    """``ValueError`` unless ``value`` is a whole number within ``bounds``; ``mn`` passes text and
    fractions.
    """
    low, high = bounds
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} is {value!r}, must be a whole number from {low} to {high}")

"""What every bridge should forward by itself, and what must be said for it to do so.

These are the rules for traffic that has no path of its own: everything that is not TCP, and TCP whose
SYN the controller has not handled. Pure: the bridges' rules are plain values here, and
:class:`Forwarding` answers with the differences between what stands and what should.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.fabric.hosts import Host
from fairq_ryu.fabric.routing import Routes
from fairq_ryu.fabric.topology import Topology
from fairq_ryu.model import PortKey


@dataclass(frozen=True, slots=True)
class Deliver:
    """Frames to a MAC address, of shares that equal ``share`` under ``mask`` (0: all), leave by a port."""

    mac: str
    share: int
    mask: int


@dataclass(frozen=True, slots=True)
class Flood:
    """Frames to everybody, and to nobody known, leave by these ports."""


@dataclass(frozen=True, slots=True)
class FromLink:
    """Frames that come in by a link have been seen by the switch before: no copies, nothing to learn."""

    port: int


@dataclass(frozen=True, slots=True)
class Shares:
    """How many bits of the hash choose a share."""


RuleKey = Deliver | Flood | FromLink | Shares
Value = tuple[int, ...]
"""Port numbers; for :class:`Shares` the number of bits."""


class Change(NamedTuple):
    """A bridge's rule is to be ``value``; None: it is to go. ``old`` is what it was."""

    dpid: int
    key: RuleKey
    value: Value | None
    old: Value | None


class Forwarding:
    """What was said to each bridge, and what is to be said next."""

    def __init__(self) -> None:
        self._standing: dict[int, dict[RuleKey, Value]] = {}
        self._left: set[int] = set()

    def bridge_came(self, dpid: int, standing: Mapping[RuleKey, Value] | None = None) -> None:
        """A bridge has connected, and has none of these rules; or those of an earlier controller, which are
        left as they are until :meth:`take_over`: what they rest on is not known yet.
        """
        self._standing[dpid] = dict(standing or {})
        self._left.discard(dpid)
        if standing is not None:
            self._left.add(dpid)

    def take_over(self) -> bool:
        """The network is known: from now on every bridge gets what it should have. Returns whether that
        is news for any.
        """
        news = bool(self._left)
        self._left.clear()
        return news

    def flood(self, dpid: int) -> Value | None:
        """The ports that a bridge should flood to; None if it is not connected."""
        return self._standing.get(dpid, {}).get(Flood())

    def bridge_gone(self, dpid: int) -> None:
        """A bridge has gone; nothing is said to it."""
        self._standing.pop(dpid, None)
        self._left.discard(dpid)

    def update(self, topology: Topology, routes: Routes, hosts: Iterable[Host]) -> list[Change]:
        """Everything that must change for all bridges to be as they should."""
        wanted: dict[int, dict[RuleKey, Value]] = {d: {} for d in self._standing if d not in self._left}
        for dpid, rules in wanted.items():
            ports = {port.port for port in topology.host_ports(dpid)}
            ports |= {port.port for port in routes.flood_ports(dpid)}
            rules[Flood()] = tuple(sorted(ports))
            rules[Shares()] = (routes.bits,)
            for port in topology.link_ports(dpid):
                rules[FromLink(port.port)] = ()
        for host in hosts:
            for dpid, rules in wanted.items():
                rules.update(deliveries(routes, dpid, host.mac, host.port))
        return [change for dpid, rules in wanted.items() for change in self._differences(dpid, rules)]

    def host(self, routes: Routes, mac: str, port: PortKey | None) -> list[Change]:
        """A host is behind a port now; None: it is forgotten."""
        changes: list[Change] = []
        for dpid, standing in self._standing.items():
            if dpid in self._left:
                continue
            rules = {key: value for key, value in standing.items() if not _is_for(key, mac)}
            if port is not None:
                rules.update(deliveries(routes, dpid, mac, port))
            changes += self._differences(dpid, rules)
        return changes

    def _differences(self, dpid: int, wanted: dict[RuleKey, Value]) -> list[Change]:
        standing = self._standing[dpid]
        self._standing[dpid] = wanted
        # New rules first: where a rule takes another's place, there is always one.
        changes = [
            Change(dpid, key, value, standing.get(key))
            for key, value in wanted.items()
            if standing.get(key) != value
        ]
        return changes + [Change(dpid, key, None, old) for key, old in standing.items() if key not in wanted]


def _is_for(key: RuleKey, mac: str) -> bool:
    return isinstance(key, Deliver) and key.mac == mac


def deliveries(routes: Routes, dpid: int, mac: str, port: PortKey) -> dict[RuleKey, Value]:
    """The rules by which a switch sends on what is for a host behind ``port``: one if all shares go the
    same way, otherwise one for as few low bits of the share as tell the ways apart.
    """
    if port.dpid == dpid:
        return {Deliver(mac, 0, 0): (port.port,)}
    hops = [routes.next_hop(dpid, port.dpid, share) for share in range(routes.shares)]
    if None in hops:
        return {}
    size = 1
    while any(hops[share] != hops[share % size] for share in range(routes.shares)):
        size *= 2
    return {Deliver(mac, share, size - 1): (hop.port,) for share in range(size) if (hop := hops[share])}


def shrunk(change: Change) -> Value:
    """What a flood rule may say while other bridges still say what they said: nothing that is new, so
    that old and new trees together cannot make a loop.
    """
    return tuple(port for port in change.value or () if port in (change.old or ()))

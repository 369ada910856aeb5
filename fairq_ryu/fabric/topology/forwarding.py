"""The rules by which every bridge forwards by itself, and the changes that install them.

They are for traffic without a path of its own: all that is not TCP, and TCP whose SYN the controller has not
handled. Pure: the rules of bridges are plain values here, and :class:`Forwarding` returns the differences
between installed rules and wanted rules.

A frame for a host that some bridges do not know is flooded by these and forwarded by the others. It arrives
once, because both use the same tree, that of the frame's bucket. While the network changes there are two sets
of trees, and bridges get their rules one after the other; so rules change in three steps:

1. Floods lose the ports that are not on the new trees. Hosts that a bridge knows are reached by the new trees
   from now on: such a frame is a single frame wherever it goes, and broken links are avoided at once.
2. Bridges that did not know a host learn it; forgotten hosts are removed.
3. Floods get their new ports.

The caller (:mod:`fairq_ryu.control.forwarding_rules`) takes a step when every bridge has confirmed the one
before. Only the second step has a limit, of 0.5 s: after it, a bridge that has not applied the first step may
still flood along the old tree of a frame that the others forward along the new one, and the frame may arrive
twice. The third step has no limit, because floods along two sets of trees may loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.hosts import Host
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import HASH_BITS, PortKey


@dataclass(frozen=True, slots=True)
class Deliver:
    """Frames to a MAC address, of buckets that equal ``bucket`` under ``mask`` (0: all), leave by a port."""

    mac: str
    bucket: int
    mask: int


@dataclass(frozen=True, slots=True)
class Flood:
    """Frames of a bucket to nobody known leave by these ports. Bucket 0: frames to everybody, too, and those
    of buckets that have no such rule.
    """

    bucket: int = 0


@dataclass(frozen=True, slots=True)
class FromLink:
    """Frames that come in by a link have been seen by the switch before: no copies, nothing to learn."""

    port: int


@dataclass(frozen=True, slots=True)
class EcmpBits:
    """How many bits of the hash choose a bucket."""


RuleKey = Deliver | Flood | FromLink | EcmpBits
Value = tuple[int, ...]
"""Port numbers; for :class:`EcmpBits` the number of bits."""
_Rules = dict[int, dict[RuleKey, Value]]


class ForwardingChange(NamedTuple):
    """A bridge's rule is to be ``value``; None: it is to go. ``old`` is what it was."""

    dpid: int
    key: RuleKey
    value: Value | None
    old: Value | None


class Forwarding:
    """What was said to each bridge, and what is to be said next."""

    def __init__(self) -> None:
        self._standing: _Rules = {}
        self._wanted: _Rules = {}
        self._left: set[int] = set()
        self._shrinking = False  # from the first step to the second
        self._changes = 0
        self._unconfirmed: dict[str, int] = {}  # hosts that not all bridges may know yet: since which change

    def bridge_came(self, dpid: int, standing: Mapping[RuleKey, Value] | None = None) -> None:
        """A bridge has connected, and has none of these rules; or those of an earlier controller, which are
        left as they are until :meth:`take_over`: what they rest on is not known yet.
        """
        self._standing[dpid] = dict(standing or {})
        self._wanted.pop(dpid, None)
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

    def flood(self, dpid: int, bucket: int = 0) -> Value:
        """The ports that a bridge was told to flood a bucket to."""
        return _flood(self._standing.get(dpid, {}), bucket)

    def bridge_gone(self, dpid: int) -> None:
        """A bridge has gone; nothing is said to it."""
        self._standing.pop(dpid, None)
        self._wanted.pop(dpid, None)
        self._left.discard(dpid)

    # Steps

    @property
    def waiting(self) -> bool:
        """Whether the first step is not confirmed, or something is to be said in the second or the third."""
        unsaid = any(self._standing[dpid] != rules for dpid, rules in self._wanted.items())
        return self._shrinking or unsaid

    def update(self, topology: Topology, routes: Routes, hosts: Iterable[Host]) -> list[ForwardingChange]:
        """The first step to all bridges being as they should. A step that an earlier change still waits for
        is not taken any more; this one begins with what stands.
        """
        wanted: _Rules = {dpid: {} for dpid in self._standing if dpid not in self._left}
        for dpid, rules in wanted.items():
            own = {port.port for port in topology.host_ports(dpid)}
            for bucket in range(routes.buckets):
                links = {port.port for port in routes.flood_ports(dpid, bucket)}
                rules[Flood(bucket)] = tuple(sorted(own | links))
            rules[EcmpBits()] = (routes.bits,)
            for port in topology.link_ports(dpid):
                rules[FromLink(port.port)] = ()
        for host in hosts:
            for dpid, rules in wanted.items():
                rules.update(deliveries(routes, dpid, host.mac, host.port))
        self._wanted = wanted
        bits = {self._standing[dpid].get(EcmpBits(), (routes.bits,)) for dpid in wanted}
        mixed = bits != {(routes.bits,)}
        changes = [
            change
            for dpid, rules in wanted.items()
            for change in self._differences(dpid, self._first(self._standing[dpid], rules, mixed))
        ]
        self._shrinking = self._shrinking or bool(changes) or self.waiting
        return changes

    def deliver(self) -> list[ForwardingChange]:
        """The second step: everything but what floods get."""
        self._shrinking = False
        changes = []
        for dpid, wanted in self._wanted.items():
            standing = self._standing[dpid]
            rules: dict[RuleKey, Value] = {}
            rules |= {key: value for key, value in standing.items() if isinstance(key, Flood)}
            rules |= {key: value for key, value in wanted.items() if not isinstance(key, Flood)}
            self._note_new(_macs(rules) - _macs(standing))
            changes += self._differences(dpid, rules)
        return changes

    def grow(self) -> list[ForwardingChange]:
        """The third step: everything is as it should be."""
        return [
            change for dpid, rules in self._wanted.items() for change in self._differences(dpid, dict(rules))
        ]

    # Hosts

    def host(self, routes: Routes, mac: str, port: PortKey | None) -> list[ForwardingChange]:
        """A host is behind a port now; None: it is forgotten. While the first step is not confirmed, bridges
        that do not know the host are told with the second.
        """
        changes: list[ForwardingChange] = []
        keys = _keys(mac)
        for dpid, standing in self._standing.items():
            if dpid in self._left:
                continue
            new = {} if port is None else deliveries(routes, dpid, mac, port)
            if dpid in self._wanted:
                _replace(self._wanted[dpid], keys, new)
            known = any(key in standing for key in keys)
            if self._shrinking and (mac in self._unconfirmed or not known or not new):
                continue
            if not known:
                self._note_new({mac} if new else ())
            changes += [ForwardingChange(dpid, *change) for change in _replace(standing, keys, new)]
        return changes

    @property
    def unconfirmed(self) -> int | None:
        """The last change after which not all bridges may know all hosts; None if they do."""
        return max(self._unconfirmed.values(), default=None)

    def confirmed(self, change: int) -> None:
        """All bridges have done what they were told up to that change."""
        self._unconfirmed = {mac: last for mac, last in self._unconfirmed.items() if last > change}

    def _note_new(self, macs: Iterable[str]) -> None:
        """A bridge is told of hosts that it did not know."""
        if len(self._standing) > 1:
            self._changes += 1
            self._unconfirmed |= dict.fromkeys(macs, self._changes)

    def _first(
        self, standing: Mapping[RuleKey, Value], wanted: Mapping[RuleKey, Value], mixed: bool
    ) -> dict[RuleKey, Value]:
        """What a bridge should have after the first step. ``mixed``: bridges do not agree in how many buckets
        there are, and so not in which a frame belongs to.
        """
        rules: dict[RuleKey, Value] = {}
        # First of all floods: whatever else is said comes to a bridge that has let go of its old ports.
        floods = [key.bucket for key in {**standing, **wanted} if isinstance(key, Flood)]
        for bucket in floods:
            buckets = floods if mixed else [bucket]
            kept = [{*_flood(rules, each)} for each in buckets for rules in (standing, wanted)]
            rules[Flood(bucket)] = tuple(sorted(set.intersection(*kept)))
        # Rules for few buckets mean the same where many are told apart, but not the other way round.
        rules[EcmpBits()] = max(standing.get(EcmpBits(), wanted[EcmpBits()]), wanted[EcmpBits()])
        rules |= {key: value for key, value in wanted.items() if isinstance(key, FromLink)}
        known = (_macs(standing) & _macs(wanted)) - self._unconfirmed.keys()
        for source, here in ((standing, False), (wanted, True)):
            rules |= {
                key: value
                for key, value in source.items()
                if isinstance(key, Deliver) and (key.mac in known) is here
            }
        return rules

    def _differences(self, dpid: int, wanted: dict[RuleKey, Value]) -> list[ForwardingChange]:
        standing = self._standing[dpid]
        self._standing[dpid] = wanted
        # New rules first: where a rule takes another's place, there is always one.
        changes = [
            ForwardingChange(dpid, key, value, standing.get(key))
            for key, value in wanted.items()
            if standing.get(key) != value
        ]
        return changes + [
            ForwardingChange(dpid, key, None, old) for key, old in standing.items() if key not in wanted
        ]


def _keys(mac: str) -> list[RuleKey]:
    """All the keys that rules for a host may have."""
    return [
        Deliver(mac, bucket, (1 << bits) - 1) for bits in range(HASH_BITS + 1) for bucket in range(1 << bits)
    ]


def _replace(
    rules: dict[RuleKey, Value], keys: Iterable[RuleKey], new: Mapping[RuleKey, Value]
) -> list[tuple[RuleKey, Value | None, Value | None]]:
    """Put new rules in the place of all that ``keys`` name. Returns the changes: key, new value, old one."""
    # New rules first, as in all changes.
    changes: list[tuple[RuleKey, Value | None, Value | None]] = [
        (key, value, rules.get(key)) for key, value in new.items() if rules.get(key) != value
    ]
    changes += [(key, None, rules[key]) for key in keys if key in rules and key not in new]
    for key, value, _ in changes:
        if value is None:
            del rules[key]
        else:
            rules[key] = value
    return changes


def _macs(rules: Mapping[RuleKey, Value]) -> set[str]:
    """The hosts that a bridge knows."""
    return {key.mac for key in rules if isinstance(key, Deliver)}


def _flood(rules: Mapping[RuleKey, Value], bucket: int) -> Value:
    return rules.get(Flood(bucket), rules.get(Flood(), ()))


def deliveries(routes: Routes, dpid: int, mac: str, port: PortKey) -> dict[RuleKey, Value]:
    """The rules by which a switch sends on what is for a host behind ``port``: one if all buckets go the
    same way, otherwise one for as few low bits of the bucket as tell the ways apart.
    """
    if port.dpid == dpid:
        return {Deliver(mac, 0, 0): (port.port,)}
    hops = [routes.next_hop(dpid, port.dpid, bucket) for bucket in range(routes.buckets)]
    if None in hops:
        return {}
    size = 1
    while any(hops[bucket] != hops[bucket % size] for bucket in range(routes.buckets)):
        size *= 2
    return {Deliver(mac, bucket, size - 1): (hop.port,) for bucket in range(size) if (hop := hops[bucket])}

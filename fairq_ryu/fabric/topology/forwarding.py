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

The caller (:mod:`fairq_ryu.control.paths.forwarding_rules`) takes a step when every bridge has confirmed the
one before. Only the second step has a limit, of 10 s: after it, a bridge that has not applied the first step
may still flood along the old tree of a frame that the others forward along the new one, and the frame may
arrive twice. The third step has no limit, because floods along two sets of trees may loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.fabric.topology.graph import PortRole, Topology
from fairq_ryu.fabric.topology.hosts import Host
from fairq_ryu.fabric.topology.ports import LogicalPorts
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import HASH_BITS, PortKey
from fairq_ryu.port_settings import OTHER_VLANS


# There are many keys of the first two kinds. The hash of a tuple is computed faster than that of a dataclass.
class Deliver(NamedTuple):
    """The key of a rule that sends frames to a host through one port. ``mac``: the host; ``bucket`` and
    ``mask``: the buckets of the frames (mask 0: all); ``vlan``: their VLAN.
    """

    mac: str
    bucket: int
    mask: int
    vlan: int = 0


class Flood(NamedTuple):
    """The key of a rule that floods the frames of a bucket to unknown hosts. Bucket 0 also floods broadcasts,
    and the frames of buckets without a rule of their own. ``vlan``: of the frames, or ``OTHER_VLANS``.
    """

    bucket: int = 0
    vlan: int = 0


@dataclass(frozen=True, slots=True)
class FromLink:
    """The key of a rule for frames that enter through a link: another switch has already copied them and
    learned from them.
    """

    port: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The key of the rules for frames that enter by a port which is not decided: they reach known hosts only.
    If it leads to a foreign segment, what is flooded there by another port would come back by this one, and
    be flooded again. Value (1,): tagged frames have rules of their own.
    """

    port: int


@dataclass(frozen=True, slots=True)
class Entry:
    """The key of the rules for frames that come in by a port that does not carry every VLAN."""

    port: int


@dataclass(frozen=True, slots=True)
class EcmpBits:
    """The key of the number of hash bits that select a bucket."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The key of the rules that keep tagged frames apart from rules for frames without a tag. Only a network
    with VLANs has them.
    """


RuleKey = Deliver | Flood | FromLink | Waiting | Entry | EcmpBits | Tagged
Value = tuple[int, ...]
"""Port numbers, with ``UNTAGGED`` where frames lose their tag; for :class:`EcmpBits` and :class:`Tagged` the
number of bits, for :class:`Entry` as :meth:`LogicalPorts.entry`.
"""
_Rules = dict[int, dict[RuleKey, Value]]
_Whose = tuple[str, int]
"""A host: its MAC address and its VLAN."""


class ForwardingChange(NamedTuple):
    """A rule to install in a bridge, with the new ``value`` (None: remove it) and the ``old`` one (None: the
    rule is new).
    """

    dpid: int
    key: RuleKey
    value: Value | None
    old: Value | None


class Forwarding:
    """The installed rules and the wanted rules of each bridge."""

    def __init__(self, ports: LogicalPorts | None = None) -> None:
        """``ports``: their settings; None: all are plain."""
        self._ports = LogicalPorts(lambda _: True) if ports is None else ports
        self._installed: _Rules = {}
        self._wanted: _Rules = {}
        self._inherited: set[int] = set()  # bridges whose rules of an earlier controller are not changed yet
        self._shrinking = False  # from the first step to the second
        self._changes = 0
        self._bits = 0  # the most bits by which rules have distinguished buckets of a host
        # Hosts that some bridges may not know yet, with the number of the change that installed them.
        self._unconfirmed: dict[_Whose, int] = {}

    def bridge_connected(self, dpid: int, installed: Mapping[RuleKey, Value] | None = None) -> None:
        """A bridge has connected. ``installed``: its rules of an earlier controller, which are kept until
        :meth:`take_over`, because the topology they belong to is not known yet (None: it has no rules).
        """
        self._installed[dpid] = dict(installed or {})
        self._wanted.pop(dpid, None)
        self._inherited.discard(dpid)
        if installed is not None:
            self._inherited.add(dpid)
            masks = (key.mask for key in installed if isinstance(key, Deliver))
            self._bits = min(HASH_BITS, max(self._bits, max(masks, default=0).bit_length()))

    def take_over(self) -> bool:
        """The topology is known: from now on the rules of an earlier controller are replaced. Returns whether
        a bridge has such rules.
        """
        found = bool(self._inherited)
        self._inherited.clear()
        return found

    def flood_ports(self, dpid: int, bucket: int = 0, vlan: int = 0) -> Value:
        """The ports to which a bridge floods a bucket, in a VLAN."""
        rules = self._installed.get(dpid, {})
        if Flood(0, vlan) not in rules:
            vlan = OTHER_VLANS if Flood(0, OTHER_VLANS) in rules else 0
        return _flood(rules, bucket, vlan)

    def has_entry_rules(self, dpid: int) -> bool:
        """Whether a bridge has rules for ports that do not carry every VLAN."""
        return any(isinstance(key, Entry) for key in self._installed.get(dpid, {}))

    def bridge_disconnected(self, dpid: int) -> None:
        """A bridge has disconnected; it gets no changes."""
        self._installed.pop(dpid, None)
        self._wanted.pop(dpid, None)
        self._inherited.discard(dpid)

    # Steps

    @property
    def unfinished(self) -> bool:
        """Whether the first step is not confirmed, or the second or third step has changes."""
        outstanding = any(self._installed[dpid] != rules for dpid, rules in self._wanted.items())
        return self._shrinking or outstanding

    def update(self, topology: Topology, routes: Routes, hosts: Iterable[Host]) -> list[ForwardingChange]:
        """The first step of a change of the network. It starts from the installed rules; further steps of an
        earlier change are cancelled.
        """
        wanted: _Rules = {dpid: {} for dpid in self._installed if dpid not in self._inherited}
        hosts = list(hosts)
        used = {host.vlan for host in hosts} - {0}
        aware = self._ports.aware or bool(used)
        vlans = [0, OTHER_VLANS, *self._ports.vlans(used)] if aware else [0]
        waiting = topology.waiting()
        for dpid, rules in wanted.items():
            own = topology.host_ports(dpid)
            for vlan in vlans:
                here = self._ports.flooded(own, vlan)
                for bucket in range(routes.buckets):
                    links = {port.port for port in routes.flood_ports(dpid, bucket)}
                    rules[Flood(bucket, vlan)] = tuple(sorted(here | links))
            rules[EcmpBits()] = (routes.bits,)
            if aware:
                rules[Tagged()] = (routes.bits,)
            for port in topology.link_ports(dpid):
                rules[FromLink(port.port)] = ()
            rules.update((Waiting(port.port), (1,) if aware else ()) for port in waiting.get(dpid, ()))
            rules.update(self._entries(topology, dpid))
        self._add_deliveries(wanted, routes, hosts)
        self._wanted, self._bits = wanted, max(self._bits, routes.bits)
        bits = {self._installed[dpid].get(EcmpBits(), (routes.bits,)) for dpid in wanted}
        mixed = bits != {(routes.bits,)}
        changes = [
            change
            for dpid, rules in wanted.items()
            if mixed or self._installed[dpid] != rules
            for change in self._differences(dpid, self._first(self._installed[dpid], rules, mixed))
        ]
        self._shrinking = self._shrinking or bool(changes) or self.unfinished
        return changes

    def deliver(self) -> list[ForwardingChange]:
        """The second step: all rules except those for floods, and those that end floods."""
        self._shrinking = False
        changes = []
        for dpid, wanted in self._wanted.items():
            installed = self._installed[dpid]
            if installed == wanted:
                continue
            rules: dict[RuleKey, Value] = {}
            rules |= {key: value for key, value in installed.items() if isinstance(key, Flood | Waiting)}
            rules |= {key: value for key, value in wanted.items() if not isinstance(key, Flood)}
            if new := _hosts(rules.keys() - installed.keys()):
                self._expect_confirmation(new - _hosts(installed))
            changes += self._differences(dpid, rules)
        return changes

    def grow(self) -> list[ForwardingChange]:
        """The third step: the rules for floods."""
        return [
            change
            for dpid, rules in self._wanted.items()
            if self._installed[dpid] != rules
            for change in self._differences(dpid, dict(rules))
        ]

    def port_waits(self, port: PortKey) -> list[ForwardingChange]:
        """A port has come up that is not decided: nothing is flooded from there."""
        installed, key = self._installed.get(port.dpid), Waiting(port.port)
        if installed is None or port.dpid in self._inherited or key in installed:
            return []
        value = (1,) if Tagged() in installed else ()
        for rules in (installed, self._wanted.get(port.dpid, {})):
            rules[key] = value
        return [ForwardingChange(port.dpid, key, value, None)]

    # Hosts

    def host_changed(
        self, routes: Routes, mac: str, port: PortKey | None, vlan: int = 0
    ) -> list[ForwardingChange]:
        """A host was found behind ``port``, or is forgotten (None). While the first step is not confirmed,
        bridges that do not know the host get its rule in the second step.
        """
        changes: list[ForwardingChange] = []
        self._bits = max(self._bits, routes.bits)
        whose, keys = (mac, vlan), _keys(mac, vlan, self._bits)
        reached = frozenset[int]() if port is None else routes.reachable(port.dpid) | {port.dpid}
        for dpid, installed in self._installed.items():
            if dpid in self._inherited:
                continue
            new: dict[RuleKey, Value] = {}
            if port is not None and dpid in reached:
                new = self._deliveries(routes, dpid, mac, port, vlan)
            if dpid in self._wanted:
                _replace(self._wanted[dpid], keys, new)
            known = any(key in installed for key in keys)
            if not known and not new:
                continue
            if self._shrinking and (whose in self._unconfirmed or not known or not new):
                continue
            if not known:
                self._expect_confirmation({whose})
            changes += [ForwardingChange(dpid, *change) for change in _replace(installed, keys, new)]
        return changes

    @property
    def unconfirmed(self) -> int | None:
        """The number of the last change that added a host and is not confirmed by all bridges; None without
        one.
        """
        return max(self._unconfirmed.values(), default=None)

    def hosts_confirmed(self, change: int) -> None:
        """All bridges have installed all changes up to the one with this number."""
        self._unconfirmed = {whose: last for whose, last in self._unconfirmed.items() if last > change}

    def _expect_confirmation(self, hosts: Iterable[_Whose]) -> None:
        """A bridge gets rules for hosts that it did not know."""
        if len(self._installed) > 1:
            self._changes += 1
            self._unconfirmed |= dict.fromkeys(hosts, self._changes)

    def _entries(self, topology: Topology, dpid: int) -> dict[RuleKey, Value]:
        """The rules for frames that come in by ports that are no links."""
        return {
            Entry(port.port): entry
            for port, entry in self._ports.entries(dpid).items()
            if topology.has_port(port) and topology.role(port) is not PortRole.LINK
        }

    def _deliveries(
        self, routes: Routes, dpid: int, mac: str, port: PortKey, vlan: int
    ) -> dict[RuleKey, Value]:
        if port.dpid == dpid:
            return {Deliver(mac, 0, 0, vlan): (self._ports.exit_to(port, vlan),)}
        return deliveries(routes, dpid, mac, port, vlan)

    def _add_deliveries(self, wanted: _Rules, routes: Routes, hosts: Iterable[Host]) -> None:
        """Add the rules for all hosts. Those of other bridges depend on the host's bridge only, and their
        keys are the same wherever the same buckets share a port.
        """
        behind: defaultdict[int, list[Host]] = defaultdict(list)
        for host in hosts:
            behind[host.port.dpid].append(host)
            if host.port.dpid in wanted:
                key = Deliver(host.mac, 0, 0, host.vlan)
                wanted[host.port.dpid][key] = (self._ports.exit_to(host.port, host.vlan),)
        for target, there in behind.items():
            keys: dict[tuple[int, int], list[RuleKey]] = {}
            for dpid in (routes.reachable(target) - {target}) & wanted.keys():
                for bucket, mask, ports in routes.exits(dpid, target):
                    if (bucket, mask) not in keys:
                        keys[bucket, mask] = [Deliver(each.mac, bucket, mask, each.vlan) for each in there]
                    wanted[dpid] |= dict.fromkeys(keys[bucket, mask], ports)

    def _first(
        self, installed: Mapping[RuleKey, Value], wanted: Mapping[RuleKey, Value], mixed: bool
    ) -> dict[RuleKey, Value]:
        """The rules of a bridge after the first step. ``mixed``: bridges use different numbers of buckets, so
        they may assign a frame to different buckets.
        """
        rules: dict[RuleKey, Value] = {}
        # Floods are first, so that all other rules take effect in a bridge that has left its old ports.
        floods = [key for key in {**installed, **wanted} if isinstance(key, Flood)]
        for flood in floods:
            buckets = [each.bucket for each in floods if each.vlan == flood.vlan] if mixed else [flood.bucket]
            kept = [
                {*_flood(rules, bucket, flood.vlan)} for bucket in buckets for rules in (installed, wanted)
            ]
            rules[flood] = tuple(sorted(set.intersection(*kept)))
        # Rules for few buckets work in a bridge that distinguishes many, but not the other way round.
        rules[EcmpBits()] = max(installed.get(EcmpBits(), wanted[EcmpBits()]), wanted[EcmpBits()])
        if Tagged() in installed or Tagged() in wanted:
            rules[Tagged()] = rules[EcmpBits()]
        rules |= {key: value for key, value in installed.items() if isinstance(key, Waiting)}
        rules |= {key: value for key, value in wanted.items() if isinstance(key, FromLink | Waiting | Entry)}
        known = (_hosts(installed) & _hosts(wanted)) - self._unconfirmed.keys()
        for source, here in ((installed, False), (wanted, True)):
            rules |= {
                key: value
                for key, value in source.items()
                if isinstance(key, Deliver) and (_whose(key) in known) is here
            }
        return rules

    def _differences(self, dpid: int, wanted: dict[RuleKey, Value]) -> list[ForwardingChange]:
        installed = self._installed[dpid]
        self._installed[dpid] = wanted
        # New rules are first, so that there is always a rule where one replaces another.
        changes = [
            ForwardingChange(dpid, key, value, installed.get(key))
            for key, value in wanted.items()
            if installed.get(key) != value
        ]
        return changes + [
            ForwardingChange(dpid, key, None, old) for key, old in installed.items() if key not in wanted
        ]


def _keys(mac: str, vlan: int, most: int) -> list[RuleKey]:
    """All possible keys of rules for a host, with that number of bucket bits at most."""
    return [
        Deliver(mac, bucket, (1 << bits) - 1, vlan) for bits in range(most + 1) for bucket in range(1 << bits)
    ]


def _replace(
    rules: dict[RuleKey, Value], keys: Iterable[RuleKey], new: Mapping[RuleKey, Value]
) -> list[tuple[RuleKey, Value | None, Value | None]]:
    """Replace all rules with these ``keys`` by new ones. Returns the changes: key, new value, old value."""
    # New rules are first, as in all changes.
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


def _whose(key: Deliver) -> _Whose:
    return key.mac, key.vlan


def _hosts(rules: Iterable[RuleKey]) -> set[_Whose]:
    """The hosts that a bridge with these rules knows."""
    return {_whose(key) for key in rules if isinstance(key, Deliver)}


def _flood(rules: Mapping[RuleKey, Value], bucket: int, vlan: int) -> Value:
    return rules.get(Flood(bucket, vlan), rules.get(Flood(0, vlan), ()))


def deliveries(routes: Routes, dpid: int, mac: str, port: PortKey, vlan: int = 0) -> dict[RuleKey, Value]:
    """The rules by which a switch forwards frames to a host behind ``port``, see :meth:`Routes.exits`."""
    if port.dpid == dpid:
        return {Deliver(mac, 0, 0, vlan): (port.port,)}
    return {Deliver(mac, bucket, mask, vlan): ports for bucket, mask, ports in routes.exits(dpid, port.dpid)}

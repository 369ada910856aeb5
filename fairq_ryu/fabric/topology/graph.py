"""What the network is: switches, their ports and what these lead to, and the links between switches.

Pure; time is an argument. A port leads to a host or to another switch, and which one it is only turns
out with time: a port that no discovery frame (LLDP) came in by for a while is a host's. Until then
nothing is flooded to it, because flooding along an undiscovered loop would never end. On a busy machine a
while is not enough: frames must have left every port, too, and have had the time to arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import networkx as nx

from fairq_ryu.fabric.topology.hosts import Host
from fairq_ryu.model import PortKey

if TYPE_CHECKING:
    Graph = nx.Graph[int]
    Whole = nx.Graph[int | str]

_Touches = Callable[[PortKey], bool]
# A switch that is connected and does nothing holds decisions up for so many times ``settle``, not for ever.
_AT_LATEST = 10

# Switches that have gone are remembered, so many of them, with so many ports together.
_MOST_GONE = 1024
_MOST_GONE_PORTS = 16384


class PortRole(StrEnum):
    """What a port leads to."""

    UNDECIDED = "undecided"
    HOST = "host"
    LINK = "link"


@dataclass(slots=True)
class _Port:
    role: PortRole = PortRole.UNDECIDED
    up: bool = True
    # When a port that no discovery frame came in by counts as a host's; None: not any more, or already.
    decides_at: float | None = None
    # And the sweep that must have ended by then.
    decides_after: int = 0


class Topology:
    """Switches, ports and links. ``settle``: seconds after which a port without LLDP is a host's, if
    meanwhile there were so many ``sweeps``: discovery frames out of every port, that have arrived.

    ``version`` grows with every change that can alter a way through the network.
    """

    def __init__(self, settle: float, sweeps: int = 0) -> None:
        self.settle = settle
        self.sweeps = sweeps
        self.version = 0
        self.epoch = 0  # what was sent in an earlier one does not count
        self._swept = 0
        self._sweep: set[PortKey] = set()  # the ports that this sweep has been at
        self._ports: dict[PortKey, _Port] = {}
        self._switches: set[int] = set()
        self._gone: dict[
            int, int
        ] = {}  # those that may come back, the oldest first: how many ports they have
        # LLDP goes one way: a link can be used once a frame has come through in each direction.
        self._seen: set[tuple[PortKey, PortKey]] = set()

    @property
    def switches(self) -> frozenset[int]:
        """The connected switches, by dpid."""
        return frozenset(self._switches)

    @property
    def known_switches(self) -> frozenset[int]:
        """The switches that are connected, or were and may come back."""
        return self.switches | {port.dpid for port in self._ports}

    def add_switch(self, dpid: int, ports: Iterable[tuple[int, bool]], now: float) -> None:
        """A switch has connected, with its ports (number, and whether each is up).

        A port that was known keeps its role: a switch that connects again has not been rewired.
        """
        numbers = dict(ports)
        for port in self.ports(dpid):
            if port.port not in numbers:
                self.remove_port(port)
        self._switches.add(dpid)
        self._gone.pop(dpid, None)
        self.version += 1
        for number, up in numbers.items():
            key = PortKey(dpid, number)
            if key in self._ports:
                self.port_changed(key, up, now)
                decides_at = self._ports[key].decides_at
                if decides_at is not None:  # its own frames are still to come
                    self._decide_later(key, max(decides_at, now + self.settle))
            else:
                self.add_port(key, up, now)

    def remove_switch(self, dpid: int) -> list[int]:
        """A switch has gone, and its links with it. Its ports are remembered, should it come back. Returns
        the switches that are forgotten for that: anybody can come with any id, and go.
        """
        if dpid not in self._switches:
            return []
        self._switches.discard(dpid)
        self._sweep = {port for port in self._sweep if port.dpid != dpid}
        self._forget_links(lambda port: port.dpid == dpid)
        self.version += 1
        self._gone[dpid] = len(self.ports(dpid))
        forgotten = []
        while sum(self._gone.values()) > _MOST_GONE_PORTS or len(self._gone) > _MOST_GONE:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            forgotten.append(oldest)
        for port in [port for port in self._ports if port.dpid in forgotten]:
            del self._ports[port]
        return forgotten

    def add_port(self, port: PortKey, up: bool, now: float) -> None:
        """A port has come."""
        self._ports[port] = _Port(up=up)
        self._decide_later(port, now + self.settle)
        self.version += 1

    def _decide_later(self, port: PortKey, at: float) -> None:
        """What left other ports before may not have found this one: the sweep begins anew."""
        self._sweep.clear()
        self.epoch += 1
        self._ports[port].decides_at = at
        self._ports[port].decides_after = self._swept + self.sweeps

    def remove_port(self, port: PortKey) -> None:
        """A port has gone."""
        if self._ports.pop(port, None) is not None:
            self._forget_links(lambda other: other == port)
            self.version += 1

    def port_changed(self, port: PortKey, up: bool, now: float) -> None:
        """A port went up or down. One that comes up again may lead somewhere else now."""
        state = self._ports.get(port)
        if state is None:
            self.add_port(port, up, now)
            return
        if state.up == up:
            return
        state.up = up
        self.version += 1
        if not up:
            self._forget_links(lambda other: other == port)
        elif state.role is not PortRole.HOST:
            # A link's port stays one until the wait is over, so that nothing is flooded into it.
            self._decide_later(port, now + self.settle)

    def frame_seen(self, port: PortKey) -> bool:
        """A host's frame came in by a port. Returns whether the port is a host's: an undecided one is,
        because switches send nothing out of ports that they do not know to be links.
        """
        state = self._ports.get(port)
        if state is None or state.role is PortRole.LINK:
            return False
        if state.role is PortRole.UNDECIDED:
            state.role, state.decides_at = PortRole.HOST, None
            self.version += 1
        return True

    def lldp_seen(self, source: PortKey, target: PortKey) -> bool:
        """A discovery frame sent from ``source`` came in by ``target``. Returns whether that is news."""
        if (source, target) in self._seen or source.dpid not in self._switches:
            return False
        for port in (source, target):
            state = self._ports.get(port)
            if state is None or not state.up:
                return False
        for port in (source, target):
            self._ports[port].role, self._ports[port].decides_at = PortRole.LINK, None
        # A port has one other end: whatever was at its place before is not there any more.
        self._seen = {
            (a, b) for a, b in self._seen if (a, b) == (target, source) or not {a, b} & {source, target}
        }
        self._seen.add((source, target))
        self.version += 1
        return True

    def assume_link(self, port: PortKey, until: float) -> None:
        """A port was a link when it was last known: it is one until then, whether or not LLDP comes."""
        state = self._ports.get(port)
        if state is not None and state.role is PortRole.UNDECIDED:
            state.role = PortRole.LINK
            self._decide_later(port, until)
            self.version += 1

    def probed(self, ports: Iterable[PortKey], epoch: int) -> None:
        """Discovery frames have left by these ports in that epoch, and are where they lead by now."""
        if epoch != self.epoch:
            return
        self._sweep.update(ports)
        here = (port for port, state in self._ports.items() if state.up and port.dpid in self._switches)
        if self._sweep.issuperset(here):
            self._sweep.clear()
            self._swept += 1

    def link_lost(self, source: PortKey, target: PortKey) -> None:
        """Discovery frames from ``source`` to ``target`` come no more."""
        if (source, target) in self._seen:
            self._seen.discard((source, target))
            self.version += 1

    def decide(self, now: float) -> list[PortKey]:
        """Settle what waiting settles: ports that no discovery frame came in by are hosts'. Returns these."""
        decided = []
        for port, state in self._ports.items():
            if state.decides_at is None or now < state.decides_at or not self._waits(port, state):
                continue
            if self._swept >= state.decides_after or now >= state.decides_at + _AT_LATEST * self.settle:
                state.role, state.decides_at = PortRole.HOST, None
                self.version += 1
                decided.append(port)
        return decided

    @property
    def waits(self) -> bool:
        """Whether it is not known yet of some port that is up what it leads to."""
        return any(self._waits(port, state) for port, state in self._ports.items())

    def _waits(self, port: PortKey, state: _Port) -> bool:
        return state.decides_at is not None and state.up and port.dpid in self._switches

    @property
    def settled(self) -> bool:
        """Whether it is known of every port that is up what it leads to, and of links both directions."""
        return not self.waits and all((b, a) in self._seen for a, b in self._seen)

    def role(self, port: PortKey) -> PortRole:
        """What a port leads to; a port that is not known leads nowhere anybody knows."""
        state = self._ports.get(port)
        return PortRole.UNDECIDED if state is None else state.role

    def is_up(self, port: PortKey) -> bool:
        """Whether a port is there and has carrier."""
        state = self._ports.get(port)
        return state is not None and state.up

    def ports(self, dpid: int) -> list[PortKey]:
        """All ports of a switch, in order."""
        return sorted(port for port in self._ports if port.dpid == dpid)

    def host_ports(self, dpid: int) -> list[PortKey]:
        """The ports of a switch that lead to hosts and are up, in order."""
        return [
            port
            for port in self.ports(dpid)
            if self._ports[port].role is PortRole.HOST and self._ports[port].up
        ]

    def link_ports(self, dpid: int) -> list[PortKey]:
        """The ports of a switch that lead to other switches, in order, up or not."""
        return [port for port in self.ports(dpid) if self._ports[port].role is PortRole.LINK]

    def links(self) -> Iterator[tuple[PortKey, PortKey]]:
        """The links that work in both directions, the end that sorts first first, in order."""
        return (
            (a, b)
            for a, b in sorted(self._seen)
            if a < b and (b, a) in self._seen and a.dpid in self._switches and b.dpid in self._switches
        )

    def graph(self) -> Graph:
        """A graph of dpids. Edge attribute ``ports``: a tuple of pairs of :class:`PortKey`, one pair for
        each parallel link, each pair sorted.
        """
        graph: Graph = nx.Graph()
        graph.add_nodes_from(sorted(self._switches))
        for a, b in self.links():
            if a.dpid != b.dpid:
                known = graph.edges[a.dpid, b.dpid]["ports"] if graph.has_edge(a.dpid, b.dpid) else ()
                graph.add_edge(a.dpid, b.dpid, ports=(*known, (a, b)))
        return graph

    def edge_switches(self) -> frozenset[int]:
        """The switches that have hosts."""
        return frozenset(
            port.dpid
            for port, state in self._ports.items()
            if state.role is PortRole.HOST and port.dpid in self._switches
        )

    def _forget_links(self, touches: _Touches) -> None:
        self._seen = {(a, b) for a, b in self._seen if not touches(a) and not touches(b)}


def with_hosts(graph: Graph, hosts: Iterable[Host]) -> Whole:
    """The whole network: dpids, and the MAC addresses of hosts. A host's node has the attributes ``at``, the
    port it is behind, and ``addresses``; links between switches keep theirs.
    """
    whole: Whole = nx.Graph()
    whole.update(graph.edges(data=True), graph.nodes)
    for host in hosts:
        whole.add_node(host.mac, at=host.port, addresses=tuple(host.addresses))
        if host.port.dpid in graph:
            whole.add_edge(host.mac, host.port.dpid)
    return whole

"""The topology: switches, the roles of their ports, and the links between switches.

Pure; time is an argument. A port leads to a host or to another switch. A port is a host port if it has
received no discovery frame (LLDP) for a certain time. Until then frames are not flooded to it, because frames
would circulate for ever in a loop that is not discovered yet. On a busy machine the time alone is not enough:
discovery frames must also have left all ports and have had the time to arrive.

Discovery frames are genuine (:mod:`~fairq_ryu.fabric.topology.discovery_tags`), but hosts can carry a fresh
one from one port to another. So a frame turns no port with hosts into a link, takes no port from a link that
works, and no link is used before frames have passed it in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

import networkx as nx

from fairq_ryu.fabric.topology.link_watch import DirectedLink, LinkWatch
from fairq_ryu.fabric.topology.port_states import PortRole as PortRole
from fairq_ryu.fabric.topology.port_states import PortState, PortStates
from fairq_ryu.model import PortKey

if TYPE_CHECKING:
    Graph = nx.Graph[int]

_Touches = Callable[[PortKey], bool]
# A connected switch that does not respond delays decisions by this multiple of ``settle`` at most.
_MAX_DELAY_FACTOR = 10

# A port's other end may be another one when its link has been silent for this many periods.
_MOVED_PERIODS = 4

# The maximum number of disconnected switches that are remembered, and of all their ports together.
_MAX_GONE = 1024
_MAX_GONE_PORTS = 16384


class Sight(StrEnum):
    """What a discovery frame shows. NEW and KNOWN: a direction of a link. The others are ignored: UNKNOWN, a
    port that is not known or is down; REFLECTED, the frame has come back to its own port; HOSTS, one of the
    ports has hosts; TAKEN, one of them has another link, which works.
    """

    NEW = "new"
    KNOWN = "known"
    UNKNOWN = "unknown"
    REFLECTED = "reflected"
    HOSTS = "hosts"
    TAKEN = "taken"


class Topology:
    """Switches, ports and links. ``settle``: time in seconds after which a port without LLDP is a host port,
    if meanwhile ``sweeps`` sweeps have ended; a sweep sends discovery frames through every port.
    ``has_hosts`` tells whether hosts are known behind a port.

    ``version`` increases with every change that can change a path through the network; ``period`` is the
    time between two discovery frames of a port, seconds.
    """

    def __init__(
        self, settle: float, sweeps: int = 0, has_hosts: Callable[[PortKey], bool] = lambda _port: False
    ) -> None:
        self.settle = settle
        self.sweeps = sweeps
        self.period = 0.9
        self.version = 0
        self._has_hosts = has_hosts
        self._watch = LinkWatch()
        # Since when no frame arrives from a switch that it has forwarded by rules of others.
        self._governed_since: dict[int, float] = {}
        self._swept = 0
        self._sweeping = False  # a frame of the present sweep was sent
        self._sweep: set[PortKey] = set()  # the ports that the current sweep has reached
        self._ports = PortStates()
        self._switches: set[int] = set()
        # Disconnected switches, the oldest first, with their numbers of ports.
        self._gone: dict[int, int] = {}
        # LLDP proves one direction: a link is used after a frame has passed it in each direction.
        self._seen: set[DirectedLink] = set()
        self._far: dict[PortKey, int] = {}  # by link port: the switch at its other end, seen last

    @property
    def switches(self) -> frozenset[int]:
        """The connected switches, by dpid."""
        return frozenset(self._switches)

    @property
    def known_switches(self) -> frozenset[int]:
        """The connected switches, and those that were connected and may connect again."""
        return self.switches | frozenset(self._ports.switches)

    def knows(self, dpid: int) -> bool:
        """Whether a switch is connected, or was and may connect again."""
        return dpid in self._switches or dpid in self._gone

    def forget_switch(self, dpid: int, now: float) -> None:
        """A disconnected switch does not come back: forget its ports, and decide again about those that led
        to it.
        """
        for port in self.ports(dpid):
            self.remove_port(port)
        self._gone.pop(dpid, None)
        for port in [port for port, far in self._far.items() if far == dpid]:
            del self._far[port]
            if self.role(port) is PortRole.LINK:
                # Probes must leave by it before anything is flooded there.
                self._ports[port].role = PortRole.UNDECIDED
                self._decide_later(port, now + self.settle)
                self.version += 1

    def add_switch(self, dpid: int, ports: Iterable[tuple[int, bool]], now: float) -> None:
        """A switch has connected, with its ports (number, and whether each is up).

        A known port keeps its role, because the cables have not changed when a switch connects again.
        """
        numbers = dict(ports)
        for port in self.ports(dpid):
            if port.port not in numbers:
                self.remove_port(port)
        self._switches.add(dpid)
        self._governed_since[dpid] = now
        self._gone.pop(dpid, None)
        self.version += 1
        for number, up in numbers.items():
            key = PortKey(dpid, number)
            if key in self._ports:
                self.port_changed(key, up, now)
                decides_at = self._ports[key].decides_at
                if decides_at is not None:  # discovery frames must still be sent through it
                    self._decide_later(key, max(decides_at, now + self.settle))
            else:
                self.add_port(key, up, now)

    def governed(self, dpid: int, now: float) -> None:
        """A switch that had no rules of ours has confirmed them. It forwarded by itself until then, and for
        ``settle`` from now frames may still arrive that it has forwarded so.
        """
        if dpid in self._switches:
            self._governed_since[dpid] = now + self.settle

    def remove_switch(self, dpid: int) -> list[int]:
        """A switch has disconnected: remove its links and remember its ports, in case it connects again.
        Returns the switches that are forgotten to limit their number, because any client can connect with any
        dpid and disconnect.
        """
        if dpid not in self._switches:
            return []
        self._switches.discard(dpid)
        self._sweep = {port for port in self._sweep if port.dpid != dpid}
        self._forget_links(lambda port: port.dpid == dpid)
        self.version += 1
        self._gone[dpid] = len(self.ports(dpid))
        forgotten = []
        while sum(self._gone.values()) > _MAX_GONE_PORTS or len(self._gone) > _MAX_GONE:
            oldest = next(iter(self._gone))
            del self._gone[oldest], self._governed_since[oldest]
            forgotten.append(oldest)
        for each in forgotten:
            for port in self.ports(each):
                self._ports.remove(port)
        return forgotten

    def add_port(self, port: PortKey, up: bool, now: float) -> None:
        """A port was added."""
        self._ports.add(port, up)
        self._decide_later(port, now + self.settle)
        self.version += 1

    def _decide_later(self, port: PortKey, at: float) -> None:
        """Decide about a port later. Frames of a sweep that has begun may have missed it: that one does not
        count for it, and goes on for the others, with a frame of this port.
        """
        self._sweep.discard(port)
        missed = self._sweeping and self.sweeps > 0
        self._ports.decide_later(port, at, self._swept + self.sweeps + missed)

    def remove_port(self, port: PortKey) -> None:
        """A port was removed."""
        self._far.pop(port, None)
        if self._ports.remove(port):
            self._forget_links(lambda other: other == port)
            self.version += 1

    def port_changed(self, port: PortKey, up: bool, now: float) -> None:
        """A port went up or down. A port that comes up may have been connected to something else."""
        state = self._ports.get(port)
        if state is None:
            self.add_port(port, up, now)
            return
        if state.up == up:
            return
        state.up = up
        self.version += 1
        if not up:
            state.hosts_since = -math.inf
            self._forget_links(lambda other: other == port)
        else:
            # It keeps its role until the decision, and nothing is flooded into it.
            self._decide_later(port, now + self.settle)

    def frame_seen(self, port: PortKey, now: float) -> bool:
        """A host's frame arrived at a port. Returns whether the port is a host port: an undecided one becomes
        one, because switches send no frames of hosts through ports that are not known to be links. Nothing is
        flooded to it before its time: a foreign segment sends such a frame to all ports that lead there, and
        they would be a loop.
        """
        state = self._ports.get(port)
        if state is None or state.role is PortRole.LINK:
            return False
        state.hosts_since = now
        if state.role is PortRole.UNDECIDED:
            state.role = PortRole.HOST
            self.version += 1
        return True

    def lldp_seen(self, source: PortKey, target: PortKey, now: float) -> Sight:
        """A genuine discovery frame that left through ``source`` arrived at ``target``."""
        link = source, target
        if link in self._seen:
            self._watch.heard(link, now)
            return Sight.KNOWN
        if source == target:
            return Sight.REFLECTED
        states = [self._ports.get(port) for port in link]
        if source.dpid not in self._switches or not all(state is not None and state.up for state in states):
            return Sight.UNKNOWN
        if self._keeps_hosts(source, target) or self._keeps_hosts(target, source):
            return Sight.HOSTS
        others = {each for each in self._seen if {*each} & {*link}} - {(target, source)}
        if any(self._works(each, now) for each in others):
            return Sight.TAKEN
        for port, other in (link, link[::-1]):
            self._ports.decide(port, PortRole.LINK)
            self._far[port] = other.dpid
        # A port has one other end: whatever was at its place before is not there any more.
        self._seen -= others
        self._seen.add(link)
        self._watch.heard(link, now)
        self.version += 1
        return Sight.NEW

    def _keeps_hosts(self, port: PortKey, other: PortKey) -> bool:
        """Whether a port has hosts that are not behind the switch of ``other``. Hosts that were learned
        before that switch had our rules may be: it forwarded their frames then, by rules of another.
        """
        state = self._ports[port]
        learned = state.hosts_since > self._governed_since.get(other.dpid, math.inf)
        return state.role is PortRole.HOST and learned and self._has_hosts(port)

    def _works(self, link: DirectedLink, now: float) -> bool:
        """Whether a link is used, and is not silent."""
        source, target = link
        both = {link, (target, source)}
        limit = _MOVED_PERIODS * self.period
        return both <= self._seen and not all(self._watch.quiet(each, limit, now) for each in both)

    def assume_link(self, port: PortKey, until: float) -> None:
        """Use a port as a link port until that time even without LLDP, because it was one before."""
        state = self._ports.get(port)
        if state is not None and state.role is PortRole.UNDECIDED:
            state.role = PortRole.LINK
            self._decide_later(port, until)
            self.version += 1

    def touch(self) -> None:
        """Something else has changed that decides on paths."""
        self.version += 1

    @property
    def sweep(self) -> int:
        """The number of the present sweep. A discovery frame counts for the one in which it was sent."""
        return self._swept

    def frame_sent(self) -> None:
        """A discovery frame of the present sweep was sent."""
        self._sweeping = True

    def probed(self, ports: Iterable[PortKey], sweep: int) -> None:
        """Discovery frames were sent through these ports in that sweep, and have arrived by now."""
        if sweep != self._swept:
            return
        self._sweep.update(ports)
        if self._sweep.issuperset(self.ports_up()):
            self._sweep.clear()
            self._swept += 1
            self._sweeping = False

    def link_lost(self, source: PortKey, target: PortKey) -> None:
        """Discovery frames from ``source`` to ``target`` no longer arrive."""
        if (source, target) in self._seen:
            self._seen.discard((source, target))
            self.version += 1

    def lose_silent_links(self, now: float) -> list[DirectedLink]:
        """Remove links that are lost by silence, see :class:`LinkWatch`. Returns their directions."""
        lost = self._watch.silent(self._seen, self.period, now)
        for source, target in lost:
            self.link_lost(source, target)
        return lost

    def decide(self, now: float) -> list[PortKey]:
        """Make ports without discovery frames host ports if their time limit has passed. Returns those to
        which frames are flooded from now on.
        """
        decided = []
        for port, state in self._ports.deciding:
            if state.decides_at is None or now < state.decides_at or not self._waits(port, state):
                continue
            if (
                self._swept >= state.decides_after
                or now >= state.decides_at + _MAX_DELAY_FACTOR * self.settle
            ):
                self._ports.decide(port, PortRole.HOST)
                self.version += 1
                decided.append(port)
        return decided

    @property
    def waits(self) -> bool:
        """Whether it is not known yet of a port that is up whether frames are flooded to it."""
        return any(self._waits(port, state) for port, state in self._ports.deciding)

    def _waits(self, port: PortKey, state: PortState) -> bool:
        return state.decides_at is not None and state.up and port.dpid in self._switches

    @property
    def settled(self) -> bool:
        """Whether all ports that are up are decided, and both directions of all links are known."""
        return not self.waits and all((b, a) in self._seen for a, b in self._seen)

    def role(self, port: PortKey) -> PortRole:
        """The role of a port; UNDECIDED for a port that is not known."""
        state = self._ports.get(port)
        return PortRole.UNDECIDED if state is None else state.role

    def has_port(self, port: PortKey) -> bool:
        """Whether a port exists."""
        return port in self._ports

    def is_up(self, port: PortKey) -> bool:
        """Whether a port exists and has carrier."""
        state = self._ports.get(port)
        return state is not None and state.up

    def is_flooded(self, port: PortKey) -> bool:
        """Whether frames are flooded to a port for hosts, or will be when it is up: it is decided."""
        state = self._ports.get(port)
        return state is not None and state.role is PortRole.HOST and state.decides_at is None

    def ports_up(self) -> Iterator[PortKey]:
        """The ports of connected switches that are up."""
        return (port for port, state in self._ports.items() if state.up and port.dpid in self._switches)

    def ports(self, dpid: int) -> list[PortKey]:
        """All ports of a switch, in order."""
        return self._ports.of_switch(dpid)

    def host_ports(self, dpid: int) -> list[PortKey]:
        """The ports of a switch to which frames are flooded for hosts, in order: they lead to hosts, are up
        and decided.
        """
        return [port for port in self.ports(dpid) if self._ports[port].up and self.is_flooded(port)]

    def link_ports(self, dpid: int) -> list[PortKey]:
        """The ports of a switch that lead to other switches, in order, up or not."""
        return [port for port in self.ports(dpid) if self._ports[port].role is PortRole.LINK]

    def links(self) -> Iterator[tuple[PortKey, PortKey]]:
        """The links that work in both directions, each as a sorted pair of ports, in order."""
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

    def waits_at(self, port: PortKey) -> bool:
        """Whether a port is up, no link, and not decided: nothing is flooded from there."""
        state = self._ports.get(port)
        return (
            state is not None
            and state.up
            and state.role is not PortRole.LINK
            and state.decides_at is not None
        )

    def waiting(self) -> dict[int, list[PortKey]]:
        """By switch, the ports that wait."""
        found: dict[int, list[PortKey]] = {}
        for port, _ in self._ports.deciding:
            if self.waits_at(port):
                found.setdefault(port.dpid, []).append(port)
        return found

    def parts(self) -> dict[int, int]:
        """By bridge: the first of those that links join with it."""
        joined = nx.connected_components(self.graph())
        return {dpid: min(part) for part in joined for dpid in part}

    def edge_switches(self) -> frozenset[int]:
        """The switches that have hosts."""
        return frozenset(
            port.dpid
            for port, state in self._ports.items()
            if state.role is PortRole.HOST and port.dpid in self._switches
        )

    def _forget_links(self, touches: _Touches) -> None:
        self._seen = {(a, b) for a, b in self._seen if not touches(a) and not touches(b)}

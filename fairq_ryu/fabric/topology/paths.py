"""The path of every connection, chosen once and kept.

A connection between hosts of different switches is pinned: it keeps its path, with rules of its own on every
hop and in both directions, until it ends or a link of the path fails. A connection within one switch uses the
rules that forward by destination. So do all connections in a network with a single path between any two
switches; if a second path appears, the existing connections are pinned to theirs.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from fairq_ryu.fabric.topology.routing import Routes, Way, reverse
from fairq_ryu.model import FlowKey, FlowPath, PortKey, new_tuple


class PathChoice(StrEnum):
    """The criterion by which one of several shortest paths is chosen."""

    HASH = "hash"
    LEAST_LOADED = "least-loaded"


class Assigned(NamedTuple):
    """The path of a connection, for direction ``key``, between the host ports ``source`` and ``target``.

    ``pinned``: it has rules of its own; ``way``: the links of the path.
    """

    key: FlowKey
    source: PortKey
    target: PortKey
    way: Way
    pinned: bool

    @property
    def path(self) -> FlowPath:
        """The ports through which segments leave, switch by switch, in both directions."""
        if not self.way:  # within one switch
            return new_tuple(FlowPath, ((self.target,), (self.source,)))
        return FlowPath(
            (*(out for out, _ in self.way), self.target),
            (*(out for out, _ in reverse(self.way)), self.source),
        )

    @property
    def text(self) -> str:
        """The path as events and logs write it: the ports through which data leaves its switches."""
        return " ".join(port.short for port in self.path.forward)

    @property
    def reversed(self) -> Assigned:
        """The same for the other direction."""
        return Assigned(self.key.reversed, self.target, self.source, reverse(self.way), self.pinned)


class Moved(NamedTuple):
    """A connection's path has changed."""

    old: Assigned
    new: Assigned


class Rerouted(NamedTuple):
    """The result of a change of the network: connections with a new path, and those that were pinned to their
    existing path.
    """

    moved: list[Moved]
    pinned: list[Assigned]


class PathTable:
    """The paths of all connections. ``routes`` are the current ones; :meth:`reroute` replaces them."""

    def __init__(self, routes: Routes, choice: PathChoice = PathChoice.HASH) -> None:
        self.routes = routes
        self.choice = choice
        self._assigned: dict[FlowKey, Assigned] = {}
        self._load: Counter[PortKey] = Counter()  # pinned connections by port
        self.pinned = 0

    def __len__(self) -> int:
        return len(self._assigned)

    def get(self, key: FlowKey) -> Assigned | None:
        """The path of a connection, for direction ``key``."""
        found = self._assigned.get(key.connection)
        return found if found is None or found.key == key else found.reversed

    def through(self, dpid: int) -> list[Assigned]:
        """The pinned paths that pass a switch."""
        return [each for each in self if each.pinned and any(p.dpid == dpid for p in each.path.forward)]

    def __iter__(self) -> Iterator[Assigned]:
        return iter(list(self._assigned.values()))

    def assign(self, key: FlowKey, source: PortKey, target: PortKey) -> Assigned | None:
        """The path of a connection between two host ports: its existing path, or a new one if it has none or
        one of its ends has moved. None if there is no path.
        """
        known = self.get(key)
        if known is not None:
            if (known.source, known.target) == (source, target):
                return known
            self.release(key)
        chosen = self._choose(key, source, target)
        if chosen is not None:
            self._keep(chosen)
        return chosen

    def release(self, key: FlowKey) -> Assigned | None:
        """A connection has ended: remove its path and return it."""
        known = self._assigned.pop(key.connection, None)
        if known is not None and known.pinned:
            self._count(known, -1)
        return known

    def restore(self, known: Assigned) -> Assigned | None:
        """A connection whose path was released is not over: it has that path again while it works, or else
        another one. None if there is none.
        """
        if not self.routes.alive(known.way):
            return self.assign(known.key, known.source, known.target)
        kept = known._replace(pinned=self._pins(known.way))
        self._keep(kept)
        return kept

    def reroute(self, routes: Routes) -> Rerouted:
        """The network has changed: choose new paths for connections whose path has failed. A path that still
        works is kept, and its connection is pinned if there is a second path now.
        """
        self.routes = routes
        changed = Rerouted([], [])
        for known in list(self._assigned.values()):
            if not known.way:  # within one switch, as most are: there is nothing to choose
                continue
            if routes.alive(known.way):
                if not known.pinned and self._pins(known.way):
                    self.release(known.key)
                    self._keep(known._replace(pinned=True))
                    changed.pinned.append(known._replace(pinned=True))
                continue
            self.release(known.key)
            new = self._choose(known.key, known.source, known.target)
            if new is None:
                # There is no path: the connection keeps its old one, which works again when the links do.
                new = known
            self._keep(new)
            if new != known:
                changed.moved.append(Moved(known, new))
        return changed

    def _pins(self, way: Way) -> bool:
        return bool(way) and not self.routes.only_one(way[0][0].dpid)

    def _choose(self, key: FlowKey, source: PortKey, target: PortKey) -> Assigned | None:
        routes = self.routes
        candidates = routes.shortest(source.dpid, target.dpid)
        if not candidates:
            return None
        way: Way | None
        if self.choice is PathChoice.LEAST_LOADED and len(candidates) > 1:
            way = min(candidates, key=self._heaviest)
        else:
            way = routes.way(source.dpid, target.dpid, key)
        if way is None:
            return None
        return new_tuple(Assigned, (key, source, target, way, self._pins(way)))

    def _heaviest(self, way: Way) -> list[int]:
        """The numbers of connections pinned to each link of a path, the largest first."""
        return sorted((self._load[out] for out, _ in way), reverse=True)

    def _keep(self, chosen: Assigned) -> None:
        self._assigned[chosen.key.connection] = chosen
        if chosen.pinned:
            self._count(chosen, 1)

    def _count(self, chosen: Assigned, by: int) -> None:
        self.pinned += by
        # Both ends of each link, because the load of a path is looked up from either side.
        for port in (port for hop in chosen.way for port in hop):
            self._load[port] += by
            if not self._load[port]:
                del self._load[port]

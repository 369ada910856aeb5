"""Foreign segments that two or more of our ports lead to, and which of the ports are used.

A frame that is flooded into such a segment by one port would come back by another, and so for ever, if links
join the bridges of both. Two ports lead to the same segment if a probe of each has come back at the other.
They count as such until none has come for :data:`HOLD` seconds. Of bridges that links join, one port is used;
bridges that are joined by foreign segments only keep one port each, but where that closes a ring. Pure; time
is an argument. Bounded: one entry for each pair of ports.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import networkx as nx
from networkx.utils import UnionFind

from fairq_ryu.model import PortKey

HOLD = 10.0


class Segments:
    """The segments. ``may_be_used``: whether a port is a candidate, by all else that is known of it;
    ``is_ready``: whether frames are flooded to it by now, which makes it the better one; ``parts``: the
    bridges that links join have the same part.
    """

    def __init__(
        self,
        may_be_used: Callable[[PortKey], bool],
        is_ready: Callable[[PortKey], bool],
        parts: Callable[[], Mapping[int, Hashable]],
    ) -> None:
        self._may_be_used, self._is_ready, self._parts = may_be_used, is_ready, parts
        self._seen: dict[tuple[PortKey, PortKey], float] = {}

    def seen(self, source: PortKey, target: PortKey, now: float) -> None:
        """A probe that left by ``source`` has come in by ``target``."""
        if source != target:
            self._seen[source, target] = now

    def unused(self, now: float) -> dict[PortKey, PortKey]:
        """The ports that must not be used, and the port that is used in place of each: the first one of the
        segment that is ready.
        """
        if not self._seen:
            return {}
        self._seen = {pair: at for pair, at in self._seen.items() if now - at <= HOLD}
        graph: nx.Graph[PortKey] = nx.Graph()
        graph.add_edges_from(
            (a, b)
            for a, b in self._seen
            if (b, a) in self._seen and self._may_be_used(a) and self._may_be_used(b)
        )
        return self._unused(nx.connected_components(graph)) if graph else {}

    def _unused(self, segments: Iterable[set[PortKey]]) -> dict[PortKey, PortKey]:
        parts, found = self._parts(), dict[PortKey, PortKey]()
        joined: UnionFind[Hashable] = UnionFind()
        for segment in sorted(segments, key=min):
            ports = sorted(segment, key=lambda port: (not self._is_ready(port), port))
            for port in ports:
                bridges, here = ("bridges", parts.get(port.dpid, port.dpid)), ("segment", ports[0])
                if joined[bridges] == joined[here]:
                    found[port] = ports[0]
                else:
                    joined.union(bridges, here)
        return found

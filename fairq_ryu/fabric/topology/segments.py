"""Foreign segments that two or more of our ports lead to: only one of the ports may be used.

A frame that is flooded into such a segment by one port would come back by the other, and so for ever. Two
ports lead to the same segment if a probe of each has come back at the other. They count as such until none
has come for :data:`HOLD` seconds. Pure; time is an argument. Bounded: one entry for each pair of ports.
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx

from fairq_ryu.model import PortKey

HOLD = 10.0


class Segments:
    """The segments. ``may_be_used``: whether a port is a candidate, by all else that is known of it."""

    def __init__(self, may_be_used: Callable[[PortKey], bool]) -> None:
        self._may_be_used = may_be_used
        self._seen: dict[tuple[PortKey, PortKey], float] = {}

    def seen(self, source: PortKey, target: PortKey, now: float) -> None:
        """A probe that left by ``source`` has come in by ``target``."""
        if source != target:
            self._seen[source, target] = now

    def unused(self, now: float) -> dict[PortKey, PortKey]:
        """The ports that must not be used, and the port that is used in place of each: the first one of its
        segment.
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
        return {
            port: min(segment)
            for segment in nx.connected_components(graph)
            for port in segment
            if port != min(segment)
        }

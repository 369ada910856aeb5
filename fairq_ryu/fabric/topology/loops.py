"""Loops of a network whose switches forward as learning switches. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import networkx as nx

from fairq_ryu.model import PortKey

_OTHERS = -1


def groups(
    bridges: Collection[int], links: Iterable[tuple[PortKey, PortKey]]
) -> Iterator[tuple[set[int], set[int]]]:
    """The connected groups of bridges, each with those of them that are part of a loop. Ports that hear each
    other are at one segment: a cable, or a switch of others. All bridges that are not of ``bridges`` count as
    one, :data:`_OTHERS`.
    """
    heard: nx.Graph[PortKey] = nx.Graph(links)
    # Bridges, their ports, and segments: so two links between the same bridges, and one from a bridge to
    # itself, are loops, and three bridges at one segment are not.
    network: nx.Graph[int | PortKey | frozenset[PortKey]] = nx.Graph()
    network.add_nodes_from(bridges)
    for segment in map(frozenset, nx.connected_components(heard)):
        for port in segment:
            bridge = port.dpid if port.dpid in bridges else _OTHERS
            network.add_edges_from([(bridge, port), (port, segment)])
    looped: set[object] = {
        node for part in nx.biconnected_components(network) if len(part) > 2 for node in part
    }
    for nodes in nx.connected_components(network):
        group = {node for node in nodes if isinstance(node, int) and node != _OTHERS}
        yield group, {bridge for bridge in group if bridge in looped}

"""Loops of a network whose switches forward as learning switches. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

import networkx as nx

Node = TypeVar("Node", bound=Hashable)


def groups(nodes: Iterable[Node], links: Iterable[tuple[Node, Node]]) -> Iterator[tuple[set[Node], bool]]:
    """The connected groups of a network, each with whether it has a loop. Two links between the same two
    nodes are one, and so is a link from a node to itself.
    """
    network: nx.MultiGraph[Node] = nx.MultiGraph()
    network.add_nodes_from(nodes)
    network.add_edges_from(links)
    for group in nx.connected_components(network):
        yield group, network.subgraph(group).number_of_edges() >= len(group)

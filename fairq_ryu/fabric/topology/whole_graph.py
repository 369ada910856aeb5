"""The graph of the whole network: switches, links and hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import networkx as nx

from fairq_ryu.fabric.topology.hosts import Host

if TYPE_CHECKING:
    from fairq_ryu.fabric.topology.graph import Graph

    Whole = nx.Graph[int | str]


def with_hosts(graph: Graph, hosts: Iterable[Host]) -> Whole:
    """The graph of the whole network. Nodes are dpids and hosts: their MAC addresses, in a VLAN with its
    number behind (``MAC/10``). A host has the attributes ``at`` (its port), ``mac``, ``vlan`` and
    ``addresses``; links between switches keep their attributes.
    """
    whole: Whole = nx.Graph()
    whole.update(graph.edges(data=True), graph.nodes)
    for host in hosts:
        node = f"{host.mac}/{host.vlan}" if host.vlan else host.mac
        addresses = tuple(host.addresses)
        whole.add_node(node, at=host.port, mac=host.mac, vlan=host.vlan, addresses=addresses)
        if host.port.dpid in graph:
            whole.add_edge(node, host.port.dpid)
    return whole

"""Networks for tests, as :class:`Topology` makes their graphs."""

import random

import networkx as nx

from fairq_ryu.model import FlowKey, PortKey


def connect(graph, a, a_port, b, b_port):
    pair = tuple(sorted((PortKey(a, a_port), PortKey(b, b_port))))
    known = graph.edges[a, b]["ports"] if graph.has_edge(a, b) else ()
    graph.add_edge(a, b, ports=(*known, pair))


def leaf_spine(leaves, spines, without=()):
    """Leaves are 1.., spines 101..; leaf ports 51.. lead to the spines."""
    graph = nx.Graph()
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            graph.add_nodes_from((leaf, 100 + spine))
            if (leaf, 100 + spine) not in without:
                connect(graph, leaf, 50 + spine, 100 + spine, leaf)
    return graph, range(1, leaves + 1)


def fat_tree(k):
    """Edge switches are 1000.., aggregation 2000.., cores 3000..."""
    graph, half = nx.Graph(), k // 2
    for pod in range(k):
        for up in range(half):
            for down in range(half):
                connect(graph, 1000 + pod * half + down, half + up + 1, 2000 + pod * half + up, down + 1)
            for core in range(half):
                connect(graph, 2000 + pod * half + up, half + core + 1, 3000 + up * half + core, pod + 1)
    return graph, range(1000, 1000 + k * half)


def flows(number, seed=1):
    """As Linux makes them: client ports go up by two."""
    source = random.Random(seed)
    for _ in range(number):
        a, b = source.sample(range(1, 250), 2)
        yield FlowKey(f"10.0.0.{a}", f"10.0.1.{b}", 32768 + 2 * source.randrange(14000), 5001)

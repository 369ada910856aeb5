"""Routes through the fabric, the same in both directions.

Frames without a rule of their own are forwarded along trees. A tree has exactly one path between any two
switches, so data and ACKs share it, and frames neither loop nor arrive twice, without a spanning-tree
protocol. There is one tree for each root. The roots are the switches nearest to all switches with hosts: the
spines of a leaf-spine, the cores of a fat-tree. So the trees together use all equal-cost paths of these
networks. A hash over the unordered 5-tuple selects the tree of a TCP segment. Switches compute it with plain
matches: bit i is the parity of one bit of each address and each port.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

import networkx as nx

from fairq_ryu.model import HASH_BITS, HASH_PORT_SHIFT, FlowKey, PortKey

# The maximum number of equal-cost paths between two switches; a fat-tree of 16-port switches has 64.
_MAX_PATHS = 64

if TYPE_CHECKING:
    Graph = nx.Graph[int]

Hop = tuple[PortKey, PortKey]
"""A link in the direction of a path: the port out of one switch, the port into the next one."""
Way = tuple[Hop, ...]
"""A path between two switches, as its links in order; empty within one switch."""


def flow_hash(key: FlowKey) -> int:
    """The hash of a flow, ``HASH_BITS`` bits; the same for both directions."""
    mixed = (key.sport ^ key.dport) >> HASH_PORT_SHIFT
    mixed ^= int(ipaddress.ip_address(key.src)) ^ int(ipaddress.ip_address(key.dst))
    return mixed & ((1 << HASH_BITS) - 1)


def reverse(way: Way) -> Way:
    """The same path in the other direction."""
    return tuple((b, a) for a, b in reversed(way)) if way else way


class Routes:
    """The routes through one state of the network. Immutable: a changed network gets new routes.

    ``bits``: the number of bits of a flow's hash that select its tree; 0 if there is only one tree.
    """

    def __init__(self, graph: Graph, edge_switches: Iterable[int]) -> None:
        """``graph``: the result of :meth:`Topology.graph`; ``edge_switches``: the switches with hosts."""
        self._graph = graph
        self._edges = frozenset(edge_switches) & frozenset(graph)
        self._trees: dict[int, list[Graph]] = {}
        self._loopless: set[int] = set()
        self._hops: dict[tuple[int, int, int], dict[int, PortKey]] = {}
        self._shortest: dict[tuple[int, int], tuple[Way, ...]] = {}
        widest = 1
        for component in nx.connected_components(graph):
            trees = _trees(graph.subgraph(component), self._edges & component)
            widest = max(widest, len(trees))
            for dpid in component:
                self._trees[dpid] = trees
            if _is_tree(graph.subgraph(component)):
                self._loopless |= component
        # One more bit makes the shares more equal: three trees get 3, 3 and 2 of 8 buckets, not 2, 1 and 1 of
        # 4.
        uneven = 1 if widest & (widest - 1) else 0
        self.bits = min(HASH_BITS, (widest - 1).bit_length() + uneven)

    @property
    def switches(self) -> frozenset[int]:
        """The switches, by dpid."""
        return frozenset(self._trees)

    @property
    def buckets(self) -> int:
        """The number of buckets of flows: ``2 ** bits``."""
        return 1 << self.bits

    def bucket(self, key: FlowKey) -> int:
        """The bucket of a flow."""
        return flow_hash(key) & (self.buckets - 1)

    def next_hop(self, dpid: int, towards: int, bucket: int = 0) -> PortKey | None:
        """The port through which a switch forwards a bucket's frames to another switch; None: no path."""
        trees = self._trees.get(dpid, [])
        if not trees or towards not in self._trees or self._trees[towards] is not trees:
            return None
        return self._towards(trees, towards, bucket % len(trees)).get(dpid)

    def tree_way(self, source: int, target: int, bucket: int) -> Way | None:
        """The path of a bucket between two switches along its tree; None if there is none."""
        hops: list[Hop] = []
        at = source
        while at != target:
            port = self.next_hop(at, target, bucket)
            if port is None:
                return None
            far = self._far_end(at, port)
            hops.append((port, far))
            at = far.dpid
        return tuple(hops)

    def only_one(self, dpid: int) -> bool:
        """Whether there is exactly one path from a switch to any other, longer paths included."""
        return dpid in self._loopless

    def shortest(self, source: int, target: int) -> tuple[Way, ...]:
        """All shortest paths between two switches, in an order that is the same from both ends."""
        if source > target:
            return tuple(reverse(way) for way in self.shortest(target, source))
        found = self._shortest.get((source, target))
        if found is None:
            found = self._shortest[source, target] = tuple(self._find_shortest(source, target))
        return found

    def way(self, source: int, target: int, key: FlowKey) -> Way | None:
        """The shortest path that a flow's hash selects; None if there is none.

        In a leaf-spine or fat-tree it is the path along the flow's tree, which its first segments have
        already taken. In other networks the trees may not contain all shortest paths.
        """
        if source > target:
            found = self.way(target, source, key)
            return None if found is None else reverse(found)
        candidates = self.shortest(source, target)
        if not candidates:
            return None
        trees = {self.tree_way(source, target, bucket) for bucket in range(self.buckets)}
        if trees == set(candidates):
            return self.tree_way(source, target, self.bucket(key))
        return candidates[flow_hash(key) % len(candidates)]

    def flood_ports(self, dpid: int, bucket: int = 0) -> frozenset[PortKey]:
        """The link ports through which a switch floods the frames of a bucket: those of its tree."""
        trees = self._trees.get(dpid, [])
        if not trees:
            return frozenset()
        tree = trees[bucket % len(trees)]
        return frozenset(tree.edges[edge]["port"][dpid] for edge in tree.edges(dpid))

    def alive(self, way: Way) -> bool:
        """Whether all links of a path exist."""
        return all(
            self._graph.has_edge(a.dpid, b.dpid)
            and (min(a, b), max(a, b)) in self._graph.edges[a.dpid, b.dpid]["ports"]
            for a, b in way
        )

    def _far_end(self, dpid: int, port: PortKey) -> PortKey:
        ends: Iterable[Hop] = (
            pair for other in self._graph[dpid] for pair in self._graph.edges[dpid, other]["ports"]
        )
        return next(b if port == a else a for a, b in ends if port in (a, b))

    def _towards(self, trees: list[Graph], target: int, index: int) -> Mapping[int, PortKey]:
        """The port of every switch towards ``target`` on one tree."""
        key = (id(trees), target, index)
        found = self._hops.get(key)
        if found is None:
            tree = trees[index]
            # A search from the target yields each edge from the nearer switch to the farther one.
            found = self._hops[key] = {
                far: tree.edges[near, far]["port"][far] for near, far in nx.bfs_edges(tree, target)
            }
        return found

    def _find_shortest(self, source: int, target: int) -> list[Way]:
        if source not in self._graph or target not in self._graph:
            return []
        if source == target:
            return [()]
        if self._trees[source] is not self._trees[target]:
            return []
        ways: list[Way] = []
        nodes = islice(nx.all_shortest_paths(self._graph, source, target), _MAX_PATHS)
        for path in nodes:
            links = [
                [pair if pair[0].dpid == a else pair[::-1] for pair in self._graph.edges[a, b]["ports"]]
                for a, b in pairwise(path)
            ]
            ways += islice(product(*links), _MAX_PATHS - len(ways))
        return sorted(ways)


def _is_tree(graph: Graph) -> bool:
    """Whether a connected network has no loop; parallel links between two switches count as a loop."""
    links = sum(len(graph.edges[edge]["ports"]) for edge in graph.edges)
    return links == len(graph) - 1


def _trees(graph: Graph, edges: frozenset[int]) -> list[Graph]:
    """The trees of a connected network. Edge attribute ``port``: the port of the edge by dpid."""
    distances = dict(nx.all_pairs_shortest_path_length(graph))
    wanted = edges or frozenset(graph)
    reach = {dpid: max(distances[dpid][other] for other in wanted) for dpid in graph}
    nearest = min(reach.values())
    roots = sorted(dpid for dpid in graph if reach[dpid] == nearest)
    parallel = max((len(graph.edges[edge]["ports"]) for edge in graph.edges), default=1)
    trees: list[Graph] = []
    seen: set[frozenset[tuple[PortKey, PortKey]]] = set()
    for turn in range(min(len(roots) * parallel, 1 << HASH_BITS)):
        root, link = roots[turn % len(roots)], turn // len(roots)
        tree = _tree(graph, distances[root], root, turn, link)
        used = frozenset(tree.edges[edge]["pair"] for edge in tree.edges)
        if used not in seen:
            seen.add(used)
            trees.append(tree)
    return trees


def _tree(graph: Graph, distance: Mapping[int, int], root: int, turn: int, link: int) -> Graph:
    """A shortest-path tree; ``turn`` selects among switches with the same distance to the root."""
    tree: Graph = nx.Graph()
    tree.add_node(root)
    for dpid in sorted(graph):
        parents = sorted(near for near in graph[dpid] if distance[near] == distance[dpid] - 1)
        if not parents:
            continue
        parent = parents[turn % len(parents)]
        pairs = graph.edges[dpid, parent]["ports"]
        a, b = pairs[link % len(pairs)]
        tree.add_edge(dpid, parent, pair=(a, b), port={a.dpid: a, b.dpid: b})
    return tree

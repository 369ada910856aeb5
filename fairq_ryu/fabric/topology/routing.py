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
from typing import TYPE_CHECKING, NamedTuple

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


class Exit(NamedTuple):
    """The port by which a switch forwards frames to another one. ``bucket`` and ``mask``: the buckets of the
    frames (mask 0: all); ``ports``: the number of the port.
    """

    bucket: int
    mask: int
    ports: tuple[int]


def flow_hash(key: FlowKey) -> int:
    """The hash of a flow, ``HASH_BITS`` bits; the same for both directions."""
    mixed = (key.sport ^ key.dport) >> HASH_PORT_SHIFT
    mixed ^= int(ipaddress.ip_address(key.src)) ^ int(ipaddress.ip_address(key.dst))
    return mixed & ((1 << HASH_BITS) - 1)


def reverse(way: Way) -> Way:
    """The same path in the other direction."""
    return tuple((b, a) for a, b in reversed(way)) if way else way


class _Part:
    """Switches that reach each other and no others, and what was computed for them. It depends on nothing
    else, so it serves as long as these switches and their links are the same.
    """

    def __init__(self, graph: Graph, edges: frozenset[int]) -> None:
        self.switches = frozenset(graph)
        self.edges = edges
        self.links = _links(graph)
        self.trees = _trees(graph, edges)
        self.loopless = sum(map(len, self.links)) == len(graph) - 1  # parallel links count as a loop
        self.floods: dict[tuple[int, int], frozenset[PortKey]] = {}
        self.exits: dict[tuple[int, int, int], tuple[Exit, ...]] = {}
        self._hops: dict[tuple[int, int], Mapping[int, PortKey]] = {}

    def is_of(self, graph: Graph, edges: frozenset[int]) -> bool:
        """Whether it is that of a connected network, with these switches that have hosts."""
        return (self.switches, self.edges, self.links) == (frozenset(graph), edges, _links(graph))

    def towards(self, target: int, bucket: int) -> Mapping[int, PortKey]:
        """The port of every other switch towards ``target`` on the tree of a bucket."""
        index = bucket % len(self.trees)
        found = self._hops.get((target, index))
        if found is None:
            tree = self.trees[index]
            # A search from the target yields each edge from the nearer switch to the farther one.
            found = self._hops[target, index] = {
                far: tree.edges[near, far]["port"][far] for near, far in nx.bfs_edges(tree, target)
            }
        return found


class Routes:
    """The routes through one state of the network. Immutable: a changed network gets new routes.

    ``bits``: the number of bits of a flow's hash that select its tree; 0 if there is only one tree.
    """

    def __init__(self, graph: Graph, edge_switches: Iterable[int], earlier: Routes | None = None) -> None:
        """``graph``: the result of :meth:`Topology.graph`; ``edge_switches``: the switches with hosts;
        ``earlier``: routes of another state, whose trees are used again where nothing has changed.
        """
        self._graph = graph
        edges = frozenset(edge_switches) & frozenset(graph)
        self._parts: dict[int, _Part] = {}
        self._shortest: dict[tuple[int, int], tuple[Way, ...]] = {}
        widest = 1
        for component in nx.connected_components(graph):
            part = _part(graph.subgraph(component), edges & component, earlier)
            widest = max(widest, len(part.trees))
            self._parts.update(dict.fromkeys(component, part))
        # One more bit makes the shares more equal: three trees get 3, 3 and 2 of 8 buckets, not 2, 1 and 1 of
        # 4.
        uneven = 1 if widest & (widest - 1) else 0
        self.bits = min(HASH_BITS, (widest - 1).bit_length() + uneven)

    def part_of(self, dpid: int) -> _Part | None:
        """The part of the network that a switch belongs to, for later routes."""
        return self._parts.get(dpid)

    def reachable(self, dpid: int) -> frozenset[int]:
        """The switches that a switch reaches, with itself; none if it is not known."""
        part = self._parts.get(dpid)
        return frozenset() if part is None else part.switches

    @property
    def buckets(self) -> int:
        """The number of buckets of flows: ``2 ** bits``."""
        return 1 << self.bits

    def bucket(self, key: FlowKey) -> int:
        """The bucket of a flow."""
        return flow_hash(key) & (self.buckets - 1)

    def next_hop(self, dpid: int, towards: int, bucket: int = 0) -> PortKey | None:
        """The port through which a switch forwards a bucket's frames to another switch; None: no path."""
        part = self._parts.get(dpid)
        if part is None or towards not in part.switches:
            return None
        return part.towards(towards, bucket).get(dpid)

    def exits(self, dpid: int, towards: int) -> tuple[Exit, ...]:
        """The ports through which a switch forwards to another one: one if all buckets use the same port,
        otherwise one for each value of the smallest sufficient number of low bucket bits. Empty: no path.
        """
        part = self._parts.get(dpid)
        if part is None or towards not in part.switches or dpid == towards:
            return ()
        found = part.exits.get((dpid, towards, self.bits))
        if found is None:
            ports = [part.towards(towards, bucket)[dpid].port for bucket in range(self.buckets)]
            size = 1
            while any(port != ports[bucket % size] for bucket, port in enumerate(ports)):
                size *= 2
            found = tuple(Exit(bucket, size - 1, (ports[bucket],)) for bucket in range(size))
            part.exits[dpid, towards, self.bits] = found
        return found

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
        part = self._parts.get(dpid)
        return part is not None and part.loopless

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
        if len(candidates) <= 1:
            return candidates[0] if candidates else None
        trees = {self.tree_way(source, target, bucket) for bucket in range(self.buckets)}
        if trees == set(candidates):
            return self.tree_way(source, target, self.bucket(key))
        return candidates[flow_hash(key) % len(candidates)]

    def flood_ports(self, dpid: int, bucket: int = 0) -> frozenset[PortKey]:
        """The link ports through which a switch floods the frames of a bucket: those of its tree."""
        part = self._parts.get(dpid)
        if part is None:
            return frozenset()
        index = bucket % len(part.trees)
        found = part.floods.get((dpid, index))
        if found is None:
            tree = part.trees[index]
            found = frozenset(tree.edges[edge]["port"][dpid] for edge in tree.edges(dpid))
            part.floods[dpid, index] = found
        return found

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

    def _find_shortest(self, source: int, target: int) -> list[Way]:
        if source not in self._graph or target not in self._graph:
            return []
        if source == target:
            return [()]
        if target not in self._parts[source].switches:
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


def _part(graph: Graph, edges: frozenset[int], earlier: Routes | None) -> _Part:
    """The part of a connected network: that of the earlier routes if it is the same."""
    known = earlier and earlier.part_of(next(iter(graph)))
    return known if known and known.is_of(graph, edges) else _Part(graph, edges)


def _links(graph: Graph) -> frozenset[tuple[Hop, ...]]:
    """The links of a network: those between two switches together."""
    edges: Iterable[tuple[int, int, tuple[Hop, ...]]] = graph.edges(data="ports")
    return frozenset(ports for _, _, ports in edges)


def _trees(graph: Graph, edges: frozenset[int]) -> list[Graph]:
    """The trees of a connected network. Edge attribute ``port``: the port of the edge by dpid."""
    if len(graph) == 1:
        return [nx.Graph(graph)]
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

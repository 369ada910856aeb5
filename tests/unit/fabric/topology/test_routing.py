"""Paths: symmetric, loop-free, shortest where promised, spread over all of equal cost."""

from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.fabric.topology import routing
from fairq_ryu.fabric.topology.routing import Routes, flow_hash, reverse
from fairq_ryu.model import HASH_BITS, FlowKey, PortKey
from tests.support.graphs import connect, fat_tree, flows, leaf_spine

keys = st.builds(
    FlowKey,
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=4).map(str),
    st.integers(0, 65535),
    st.integers(0, 65535),
)


@given(keys)
def test_the_hash_is_the_same_for_both_directions(key):
    assert flow_hash(key) == flow_hash(key.reversed)
    assert 0 <= flow_hash(key) < 1 << HASH_BITS


def test_the_hash_is_the_parity_of_one_bit_of_each_address_and_port():
    nothing = FlowKey("10.0.0.0", "10.0.0.0", 0, 0)
    assert flow_hash(nothing) == 0
    for bit in range(HASH_BITS):
        assert flow_hash(nothing._replace(dst=f"10.0.0.{1 << bit}")) == 1 << bit
        assert flow_hash(nothing._replace(sport=2 << bit)) == 1 << bit
        assert flow_hash(nothing._replace(sport=2 << bit, dport=2 << bit)) == 0
    assert flow_hash(nothing._replace(sport=1)) == 0  # Linux never varies it
    assert flow_hash(FlowKey("fe80::1", "fe80::2", 0, 0)) == 3


@pytest.mark.parametrize(
    ("network", "trees", "bits"),
    [
        (leaf_spine(2, 2), 2, 1),
        (leaf_spine(4, 3), 3, 3),
        (leaf_spine(3, 1), 1, 0),
        (fat_tree(4), 4, 2),
        (fat_tree(8), 16, 4),
    ],
)
def test_there_is_a_tree_for_every_spine_or_core(network, trees, bits):
    routes = Routes(*network)
    first = min(network[1])
    last = max(network[1])
    ways = {routes.tree_way(first, last, bucket) for bucket in range(routes.buckets)}
    assert len(ways) == trees and routes.bits == bits
    assert ways == set(routes.shortest(first, last))


@pytest.mark.parametrize("network", [leaf_spine(2, 2), leaf_spine(4, 3), leaf_spine(2, 4), fat_tree(4)])
def test_no_path_gets_more_than_twice_its_fair_share_of_200_flows(network):
    routes = Routes(*network)
    edges = sorted(network[1])
    for pair in ((edges[0], edges[-1]), (edges[0], edges[1])):
        found = Counter(routes.way(*pair, key) for key in flows(200))
        candidates = routes.shortest(*pair)
        assert set(found) == set(candidates)
        assert max(found.values()) < 2 * 200 / len(candidates)


def test_a_flow_has_the_same_path_from_both_ends():
    for network in (leaf_spine(3, 2), leaf_spine(3, 2, {(1, 101)}), fat_tree(4)):
        routes = Routes(*network)
        for key in flows(50):
            for a in network[1]:
                for b in network[1]:
                    assert routes.way(b, a, key.reversed) == reverse(routes.way(a, b, key))


def test_a_flow_takes_the_path_of_its_first_segments():
    for network in (leaf_spine(4, 3), fat_tree(4)):
        routes = Routes(*network)
        for key in flows(50):
            for a in network[1]:
                for b in network[1]:
                    assert routes.way(a, b, key) == routes.tree_way(a, b, routes.bucket(key))


def test_without_one_link_the_others_are_still_all_used():
    routes = Routes(*leaf_spine(3, 2, {(1, 101)}))
    assert {routes.way(1, 2, key) for key in flows(50)} == set(routes.shortest(1, 2))
    assert len(routes.shortest(1, 2)) == 1
    assert {routes.way(2, 3, key) for key in flows(50)} == set(routes.shortest(2, 3))
    assert len(routes.shortest(2, 3)) == 2


def test_parallel_links_are_paths_of_their_own():
    graph = nx.Graph()
    connect(graph, 1, 10, 2, 20)
    connect(graph, 1, 11, 2, 21)
    routes = Routes(graph, (1, 2))
    assert routes.shortest(1, 2) == (
        ((PortKey(1, 10), PortKey(2, 20)),),
        ((PortKey(1, 11), PortKey(2, 21)),),
    )
    assert {routes.way(1, 2, key) for key in flows(20)} == set(routes.shortest(1, 2))
    assert len(routes.flood_ports(1)) == 1


def test_one_switch_needs_no_hash_and_no_links():
    graph = nx.Graph()
    graph.add_node(7)
    routes = Routes(graph, (7,))
    assert routes.bits == 0 and routes.shortest(7, 7) == ((),) and routes.flood_ports(7) == frozenset()
    assert routes.next_hop(7, 8) is None and routes.way(7, 8, next(iter(flows(1)))) is None


def test_unconnected_switches_have_no_path():
    graph, edges = leaf_spine(2, 1)
    graph.add_node(9)
    routes = Routes(graph, [*edges, 9])
    assert routes.shortest(1, 9) == () and routes.tree_way(9, 1, 0) is None


@st.composite
def networks(draw):
    """Connected networks with some redundant links."""
    size = draw(st.integers(2, 8))
    graph = nx.Graph()
    port = iter(range(1, 1000))
    for node in range(1, size):
        connect(graph, node, next(port), draw(st.integers(0, node - 1)), next(port))
    for _ in range(draw(st.integers(0, 6))):
        a, b = draw(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)))
        if a != b:
            connect(graph, a, next(port), b, next(port))
    edges = draw(st.sets(st.integers(0, size - 1), min_size=1))
    return graph, edges


@settings(deadline=None)
@given(networks(), keys)
def test_any_network_is_flooded_without_loops_and_forwarded_symmetrically(network, key):
    graph, edges = network
    routes = Routes(graph, edges)
    flooded = {port for dpid in graph for port in routes.flood_ports(dpid)}
    tree = nx.Graph()
    tree.add_nodes_from(graph)
    for a, b, pairs in graph.edges(data="ports"):
        for pair in pairs:
            # Both ends of a link flood, or neither.
            assert (pair[0] in flooded) == (pair[1] in flooded)
            if pair[0] in flooded:
                assert not tree.has_edge(a, b)
                tree.add_edge(a, b)
    assert nx.is_tree(tree)
    for a in graph:
        for b in graph:
            for bucket in range(routes.buckets):
                way = routes.tree_way(a, b, bucket)
                assert way is not None and reverse(way) == routes.tree_way(b, a, bucket)
                assert len({hop[0].dpid for hop in way}) == len(way)  # no switch twice
            chosen = routes.way(a, b, key)
            assert chosen in routes.shortest(a, b) and routes.alive(chosen)
            assert chosen == reverse(routes.way(b, a, key.reversed))


def test_trees_are_computed_again_only_where_the_network_has_changed(monkeypatch):
    def pairs(count, broken=()):
        graph = nx.Graph()
        for number in range(1, count + 1):
            connect(graph, number, 1, number + 100, 2)
            if number not in broken:
                connect(graph, number, 3, number + 100, 4)
        return graph, range(1, count + 1)

    computed, trees = [], routing._trees
    monkeypatch.setattr(
        routing, "_trees", lambda graph, edges: computed.append({*graph}) or trees(graph, edges)
    )
    first = Routes(*pairs(6))
    assert len(computed) == 6
    second = Routes(*pairs(7, {2}), first)
    assert computed[6:] == [{2, 102}, {7, 107}]
    assert [second.only_one(dpid) for dpid in (1, 2)] == [False, True]
    # Another switch with hosts may have other trees.
    Routes(pairs(7, {2})[0], [1, 2, 3, 4, 5, 6, 107], second)
    assert computed[8:] == [{7, 107}]
    for dpid in (1, 2, 7):
        there = dpid + 100
        for bucket in range(second.buckets):
            ports = [each.ports for each in second.exits(dpid, there) if bucket & each.mask == each.bucket]
            assert ports == [(second.next_hop(dpid, there, bucket).port,)]
            assert second.flood_ports(dpid, bucket) == {second.next_hop(dpid, there, bucket)}
    assert len(second.exits(1, 101)) == 2 and len(second.exits(2, 102)) == 1
    assert second.exits(1, 102) == second.exits(1, 1) == second.exits(99, 1) == ()
    assert second.reachable(1) == {1, 101} and second.reachable(99) == frozenset()

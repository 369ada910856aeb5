"""Paths of connections: chosen once, kept, and changed only when they must be."""

from collections import Counter

import networkx as nx

from fairq_ryu.fabric.topology.paths import PathChoice, PathTable
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import FlowKey, PortKey
from tests.support.graphs import fat_tree, flows, leaf_spine

HERE, THERE = PortKey(1, 1), PortKey(2, 1)
KEY = FlowKey("10.0.0.1", "10.0.0.2", 40000, 80)


def table(network=None, choice=PathChoice.HASH):
    return PathTable(Routes(*(network or leaf_spine(2, 2))), choice)


def test_data_and_acks_pass_the_same_links():
    path = table().assign(KEY, HERE, THERE).path
    (leaf, spine, host), (back_leaf, back_spine, back_host) = path
    assert (host, back_host) == (THERE, HERE)
    assert leaf.dpid == 1 and back_leaf.dpid == 2 and spine.dpid == back_spine.dpid
    # leaf 1's port 51 leads to spine 101, and the spine's port 1 back to it.
    assert leaf.port - 50 == spine.dpid - 100 == back_leaf.port - 50
    assert (spine.port, back_spine.port) == (2, 1)


def test_a_connection_keeps_its_path_and_both_directions_share_it():
    paths = table()
    first = paths.assign(KEY, HERE, THERE)
    assert paths.assign(KEY, HERE, THERE) is first
    assert paths.assign(KEY.reversed, THERE, HERE).path == first.path.reversed
    assert paths.get(KEY.reversed) == first.reversed and first.reversed.reversed == first
    assert len(paths) == 1 and paths.release(KEY.reversed) == first and paths.get(KEY) is None
    assert paths.release(KEY) is None


def test_only_connections_between_switches_are_pinned():
    paths = table()
    assert paths.assign(KEY, HERE, THERE).pinned
    local = paths.assign(KEY._replace(sport=1), HERE, PortKey(1, 2))
    assert not local.pinned and local.path == ((PortKey(1, 2),), (HERE,))


def test_nothing_is_pinned_with_a_single_path():
    assert not table(leaf_spine(2, 1)).assign(KEY, HERE, THERE).pinned
    # A longer path is another path: frames that are forwarded by destination might take it.
    ring = nx.Graph()
    for a, b in ((1, 2), (2, 3), (3, 4), (4, 1)):
        ring.add_edge(a, b, ports=((PortKey(a, 50 + b), PortKey(b, 50 + a)),))
    assert table((ring, {1, 2})).assign(KEY, HERE, THERE).pinned
    double = nx.Graph()
    double.add_edge(1, 2, ports=tuple((PortKey(1, n), PortKey(2, n)) for n in (51, 52)))
    assert table((double, {1, 2})).assign(KEY, HERE, THERE).pinned


def test_running_flows_are_pinned_when_another_path_appears():
    narrow, wide = leaf_spine(2, 2, {(1, 102)}), leaf_spine(2, 2)
    paths = table(narrow)
    before = {key: paths.assign(key, HERE, THERE) for key in flows(20)}
    local = paths.assign(KEY._replace(sport=1), HERE, PortKey(1, 2))
    assert not any(each.pinned for each in before.values()) and paths.pinned == 0
    moved, pinned = paths.reroute(Routes(*wide))
    assert not moved and {each.key: each for each in pinned} == {
        key: each._replace(pinned=True) for key, each in before.items()
    }
    assert paths.pinned == 20 and paths.get(local.key) == local
    assert {paths.assign(key, HERE, THERE).way for key in flows(40)} == {*Routes(*wide).shortest(1, 2)}
    assert paths.reroute(Routes(*wide)) == ([], [])
    # They stay pinned when it fails again.
    moved, pinned = paths.reroute(Routes(*narrow))
    assert not pinned and all(paths.get(key).pinned for key in before)


def test_without_a_connection_there_is_no_path():
    graph, edges = leaf_spine(2, 1, {(2, 101)})
    assert table((graph, edges)).assign(KEY, HERE, THERE) is None


def test_a_host_that_moves_gets_a_new_path():
    paths = table(leaf_spine(3, 2))
    paths.assign(KEY, HERE, THERE)
    moved = paths.assign(KEY, PortKey(3, 4), THERE)
    assert moved.source == PortKey(3, 4) and len(paths) == 1


def test_only_flows_of_the_dead_link_are_moved_and_none_when_it_is_back():
    network, broken = leaf_spine(2, 2), leaf_spine(2, 2, {(1, 101)})
    paths = table(network)
    before = {key: paths.assign(key, HERE, THERE) for key in flows(40)}
    moves, pinned = paths.reroute(Routes(*broken))
    assert not pinned
    through = {key for key, path in before.items() if any(p.dpid == 101 for p in path.path.forward)}
    assert 0 < len(through) < 40
    assert {move.new.key for move in moves} == through
    for move in moves:
        assert move.old == before[move.new.key]
        assert all(port.dpid != 101 for port in (*move.new.path.forward, *move.new.path.backward))
    assert paths.reroute(Routes(*broken)) == ([], [])
    # The moved connections had a single path left, and are pinned to it now.
    moves, pinned = paths.reroute(Routes(*network))
    assert not moves and {each.key for each in pinned} == through


def test_a_disconnected_connection_keeps_its_path():
    network = leaf_spine(2, 2)
    paths = table(network)
    path = paths.assign(KEY, HERE, THERE)
    assert paths.reroute(Routes(*leaf_spine(2, 2, {(1, 101), (1, 102)}))) == ([], [])
    assert paths.get(KEY) == path
    assert paths.reroute(Routes(*network)) == ([], [])


def test_least_loaded_spreads_evenly_and_forgets_ended_connections():
    network = fat_tree(4)
    paths = table(network, PathChoice.LEAST_LOADED)
    a, b = PortKey(1000, 1), PortKey(1007, 1)
    keys = list(flows(40))
    found = Counter(paths.assign(key, a, b).way for key in keys)
    assert list(found.values()) == [10] * 4
    for key in keys:
        paths.release(key)
    assert paths.assign(KEY, a, b).way == min(found)


def test_paths_through_a_switch():
    paths = table()
    path = paths.assign(KEY, HERE, THERE)
    spine = path.path.forward[1].dpid
    assert paths.through(spine) == [path] == paths.through(1)
    assert paths.through(203 - spine) == []

"""While rules change, in any order of the bridges, no frame arrives twice."""

import networkx as nx
import pytest

from fairq_ryu.fabric.topology.forwarding import Deliver, deliveries
from tests.support.bridge_tables import Fabric
from tests.support.graphs import connect, fat_tree, leaf_spine


def ring(size):
    graph = nx.Graph()
    for dpid in range(1, size + 1):
        connect(graph, dpid, 1, dpid % size + 1, 2)
    return graph, range(1, size + 1)


def mesh(seed):
    """Any connected network, with two links between some of its switches."""
    graph, drawn = nx.Graph(), nx.gnm_random_graph(7, 11, seed)
    for a, b in drawn.edges:
        connect(graph, a + 1, b + 10, b + 1, a + 10)
        if (a + b + seed) % 5 == 0:
            connect(graph, a + 1, b + 30, b + 1, a + 30)
    return graph, [dpid for dpid in sorted(graph) if dpid % 2]


NETWORKS = {
    "fat tree": lambda seed: fat_tree(4),
    "leaf-spine": lambda seed: leaf_spine(3, 2),
    "three spines": lambda seed: leaf_spine(3, 3),
    "ring": lambda seed: ring(5),
    "mesh": mesh,
}

# Seeds that failed when a step was too early, or when unconfirmed hosts counted as known.
FOUND = [("fat tree", 1), ("leaf-spine", 0), ("three spines", 1), ("three spines", 9), ("three spines", 13),
         ("ring", 1), ("mesh", 0), ("mesh", 4)]  # fmt: skip
CHANGED = [("fat tree", 1), ("leaf-spine", 2), ("leaf-spine", 10), ("three spines", 3), ("ring", 7),
           ("ring", 21), ("mesh", 2), ("mesh", 11)]  # fmt: skip


def known(name, seed):
    """A fabric whose hosts and links are all known."""
    graph, edges = NETWORKS[name](seed)
    sim = Fabric(graph, list(edges)[:5], seed)
    sim.see_all_links()
    for mac in sim.at:
        sim.see_host(mac)
    sim.refresh()
    settle(sim)
    return sim


def settle(sim):
    """Run until no message is queued."""
    while True:
        sim.refresh()
        if not sim.busy:
            return
        sim.drain()


def play(sim, events, alone=False):
    """Run events between messages, and after each message check the frames that it may affect. ``alone``: the
    network itself does not change, so not a single frame may loop.
    """
    events, again = [*events], 0.0
    while events or sim.busy or sim.fabric.stale:
        if not sim.busy or (events and sim.random.random() < max(again, 0.02)):
            event, *arguments = events.pop() if events else (sim.refresh,)
            event(*arguments)
            again = sim.random.choice((0.0, 0.7))  # events often happen together
            continue
        again = 0.0
        whose = sim.step()
        for mac in [] if whose is None else [whose or sim.random.choice([*sim.at])]:
            for walk in sim.walk_all(mac):
                assert walk.copies <= 1
                # A frame that loops has met rules from before and after a change.
                assert not walk.looped or not (walk.flooded or alone)


def assert_shortest(sim):
    """The rules are those of the current routes."""
    routes = sim.fabric.paths.routes
    for dpid, bridge in sim.bridges.items():
        wanted = {}
        for host in sim.fabric.hosts:
            wanted |= deliveries(routes, dpid, host.mac, host.port)
        found = {
            Deliver(mac, *bucket): ports
            for mac, rules in bridge.rules.items()
            for bucket, ports in rules.items()
            if mac
        }
        assert found == wanted


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_nothing_arrives_twice_while_a_network_is_found(name, seed):
    graph, edges = NETWORKS[name](seed)
    sim = Fabric(graph, list(edges)[:5], seed)
    sim.drain()
    events = [(sim.see_link, source) for source in sim.wires]
    events += [(sim.see_host, mac) for mac in sim.at]
    events += [(sim.refresh,)] * 12
    sim.random.shuffle(events)
    play(sim, events)
    assert_shortest(sim)
    assert {walk[:2] for mac in sim.at for walk in sim.walk_all(mac)} == {(1, False)}


@pytest.mark.parametrize(("name", "seed"), [(name, 1) for name in NETWORKS])
def test_nothing_arrives_twice_while_hosts_come_and_go(name, seed):
    sim = known(name, seed)
    events = [(event, mac) for mac in sim.at for event in (sim.see_host, sim.forget_host) * 2]
    sim.random.shuffle(events)
    play(sim, [*[(sim.see_host, mac) for mac in sim.at], *events], alone=True)
    assert_shortest(sim)
    assert {walk[:2] for mac in sim.at for walk in sim.walk_all(mac)} == {(1, False)}


@pytest.mark.parametrize(("name", "seed"), CHANGED)
def test_nothing_arrives_twice_while_links_come_and_go(name, seed):
    sim = known(name, seed)
    links = sim.random.sample(sorted(sim.wires), 4)
    events = [(event, link) for link in links for event in (sim.lose_link, sim.see_link) * 2]
    events += [(event, mac) for mac in sim.at for event in (sim.see_host, sim.forget_host)]
    events += [(sim.refresh,)] * 12
    sim.random.shuffle(events)
    play(sim, [(sim.refresh,), *[(sim.see_link, link) for link in links], *events])
    assert_shortest(sim)

"""Rules for what has no path of its own."""

import networkx as nx

from fairq_ryu.fabric.forwarding import Deliver, Flood, Forwarding, FromLink, Shares, deliveries, shrunk
from fairq_ryu.fabric.hosts import HostTable
from fairq_ryu.fabric.routing import Routes
from fairq_ryu.fabric.topology import Topology
from fairq_ryu.model import PortKey
from tests.unit.networks import fat_tree, leaf_spine

MAC = "02:00:00:00:00:01"


def fabric(spines=2):
    """Leaves 1 and 2 with a host port 1 each, spines 101.. between."""
    topology = Topology(1.0)
    graph, _ = leaf_spine(2, spines)
    for dpid in graph:
        ports = {p.port for edge in graph.edges(dpid) for pair in graph.edges[edge]["ports"] for p in pair
                 if p.dpid == dpid}  # fmt: skip
        topology.add_switch(
            dpid, [(number, True) for number in sorted(ports | ({1} if dpid < 100 else set()))], 0
        )
    for edge in graph.edges:
        for a, b in graph.edges[edge]["ports"]:
            topology.lldp_seen(a, b)
            topology.lldp_seen(b, a)
    topology.decide(9.0)
    return topology


def routes(topology):
    return Routes(topology.graph(), topology.edge_switches())


def test_shares_that_go_the_same_way_take_one_rule():
    graph, edges = leaf_spine(2, 2)
    found = Routes(graph, edges)
    there = PortKey(2, 1)
    assert deliveries(found, 2, MAC, there) == {Deliver(MAC, 0, 0): (1,)}
    assert deliveries(found, 101, MAC, there) == {Deliver(MAC, 0, 0): (2,)}
    assert deliveries(found, 1, MAC, there) == {Deliver(MAC, 0, 1): (51,), Deliver(MAC, 1, 1): (52,)}
    assert deliveries(found, 9, MAC, there) == {}


def test_delivery_follows_the_trees():
    graph, edges = fat_tree(4)
    found = Routes(graph, edges)
    there = PortKey(1007, 1)
    for share in range(found.shares):
        at = 1000
        for _ in range(6):
            rules = deliveries(found, at, MAC, there)
            (port,) = next(v for k, v in rules.items() if share & k.mask == k.share)
            if at == there.dpid:
                break
            assert PortKey(at, port) == found.next_hop(at, 1007, share)
            at = next(hop[1].dpid for hop in found.tree_way(at, 1007, share)[:1])
        assert (at, port) == there


def test_only_what_has_changed_is_said():
    topology, forwarding, hosts = fabric(), Forwarding(), HostTable()
    for dpid in sorted(topology.switches):
        forwarding.bridge_came(dpid)
    hosts.seen(MAC, PortKey(1, 1))
    changes = forwarding.update(topology, routes(topology), hosts)
    said = {(change.dpid, change.key): change.value for change in changes}
    assert said[1, FromLink(51)] == () and said[1, Shares()] == (1,)
    assert said[2, Deliver(MAC, 0, 1)] == (51,)
    # One spine is on the tree by which leaves are flooded.
    assert [len(said[dpid, Flood()]) for dpid in (1, 2, 101, 102)] in ([2, 3, 2, 1], [3, 2, 2, 1])
    assert forwarding.update(topology, routes(topology), hosts) == []
    other = "02:00:00:00:00:02"
    assert {c.dpid for c in forwarding.host(routes(topology), other, PortKey(2, 1))} == {1, 2, 101, 102}
    gone = forwarding.host(routes(topology), other, None)
    assert gone and all(change.value is None for change in gone)
    forwarding.bridge_gone(2)
    assert forwarding.flood(2) is None
    forwarding.bridge_came(2)
    assert {change.dpid for change in forwarding.update(topology, routes(topology), hosts)} == {2}


def test_a_dead_link_changes_the_rules_that_use_it_and_no_others():
    topology, forwarding, hosts = fabric(), Forwarding(), HostTable()
    for dpid in topology.switches:
        forwarding.bridge_came(dpid)
    hosts.seen(MAC, PortKey(1, 1))
    forwarding.update(topology, routes(topology), hosts)
    topology.port_changed(PortKey(1, 51), False, 10.0)
    changes = forwarding.update(topology, routes(topology), hosts)
    said = {(change.dpid, change.key): change.value for change in changes}
    assert said[2, Deliver(MAC, 0, 0)] == (52,) and said[2, Deliver(MAC, 0, 1)] is None
    assert (102, Deliver(MAC, 0, 0)) not in said


def test_old_and_new_floods_together_never_loop():
    """Each bridge in turn may already be at the first step of the change: no mixture has a loop."""
    topology, forwarding = fabric(spines=3), Forwarding()
    for dpid in sorted(topology.switches):
        forwarding.bridge_came(dpid)
    forwarding.update(topology, routes(topology), ())
    before = {dpid: forwarding.flood(dpid) for dpid in topology.switches}
    spine = next(d for d in (101, 102, 103) if len(before[d]) == 2)
    topology.port_changed(PortKey(1, spine - 50), False, 10.0)
    changes = [c for c in forwarding.update(topology, routes(topology), ()) if isinstance(c.key, Flood)]
    step = {c.dpid: shrunk(c) for c in changes}
    links = [*topology.links(), (PortKey(1, spine - 50), PortKey(spine, 1))]
    order = sorted(step)
    for count in range(len(order) + 1):
        now = {**before, **{dpid: step[dpid] for dpid in order[:count]}}
        used = nx.Graph()
        for a, b in links:
            if a.port in now[a.dpid] or b.port in now[b.dpid]:
                used.add_edge(a.dpid, b.dpid)
        assert nx.is_forest(used)

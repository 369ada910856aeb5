"""Rules for frames without a pinned path."""

import networkx as nx

from fairq_ryu.fabric.topology.forwarding import (
    Deliver,
    EcmpBits,
    Flood,
    Forwarding,
    FromLink,
    Waiting,
    deliveries,
)
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import PortKey
from tests.support.graphs import fat_tree, leaf_spine

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
            topology.lldp_seen(a, b, 0.0)
            topology.lldp_seen(b, a, 0.0)
    topology.decide(9.0)
    return topology


def routes(topology):
    return Routes(topology.graph(), topology.edge_switches())


def test_buckets_with_the_same_path_take_one_rule():
    graph, edges = leaf_spine(2, 2)
    found = Routes(graph, edges)
    there = PortKey(2, 1)
    assert deliveries(found, 2, MAC, there) == {Deliver(MAC, 0, 0): (1,)}
    assert deliveries(found, 101, MAC, there) == {Deliver(MAC, 0, 0): (2,)}
    assert deliveries(found, 1, MAC, there) == {Deliver(MAC, 0, 1): (51,), Deliver(MAC, 1, 1): (52,)}
    assert deliveries(found, 9, MAC, there) == {}


def test_nothing_is_flooded_from_a_port_before_it_is_decided():
    """From the first step on that knows it, until the last one of the change that decides it."""
    topology, forwarding = Topology(1.0), Forwarding()
    topology.add_switch(1, [(1, True), (2, True)], 0.0)
    topology.decide(1.0)
    topology.add_port(PortKey(1, 3), True, 2.0)
    forwarding.bridge_connected(1)

    def steps():
        first = forwarding.update(topology, routes(topology), [])
        found = [first, forwarding.deliver(), forwarding.grow()]
        return [
            {each.key: each.value for each in step if isinstance(each.key, Flood | Waiting)} for step in found
        ]

    assert steps() == [{Flood(): (), Waiting(3): ()}, {}, {Flood(): (1, 2)}]
    topology.frame_seen(PortKey(1, 3), 2.1)
    assert steps() == [{}, {}, {}]
    topology.decide(3.0)
    assert steps() == [{}, {}, {Flood(): (1, 2, 3), Waiting(3): None}]


def test_delivery_follows_the_trees():
    graph, edges = fat_tree(4)
    found = Routes(graph, edges)
    there = PortKey(1007, 1)
    for bucket in range(found.buckets):
        at = 1000
        for _ in range(6):
            rules = deliveries(found, at, MAC, there)
            (port,) = next(v for k, v in rules.items() if bucket & k.mask == k.bucket)
            if at == there.dpid:
                break
            assert PortKey(at, port) == found.next_hop(at, 1007, bucket)
            at = next(hop[1].dpid for hop in found.tree_way(at, 1007, bucket)[:1])
        assert (at, port) == there


def finish(forwarding):
    """The steps after the first, as if all bridges had confirmed it."""
    changes = [*forwarding.deliver(), *forwarding.grow()]
    assert not forwarding.unfinished
    return changes


def test_only_changes_are_returned():
    topology, forwarding, hosts = fabric(), Forwarding(), HostTable()
    for dpid in sorted(topology.switches):
        forwarding.bridge_connected(dpid)
    hosts.seen(MAC, PortKey(1, 1))
    changes = forwarding.update(topology, routes(topology), hosts)
    assert {change.value for change in changes if isinstance(change.key, Flood)} == {()}
    assert not [change for change in changes if isinstance(change.key, Deliver)]
    changes += finish(forwarding)
    values = {(change.dpid, change.key): change.value for change in changes}
    assert values[1, FromLink(51)] == () and values[1, EcmpBits()] == (1,)
    assert values[2, Deliver(MAC, 0, 1)] == (51,)
    # One bucket's frames are flooded by one spine, the other's by the other.
    assert [len(values[dpid, Flood()]) for dpid in (1, 2, 101, 102)] in ([2, 3, 2, 1], [3, 2, 2, 1])
    assert [len(values[dpid, Flood(1)]) for dpid in (1, 2, 101, 102)] in ([2, 3, 1, 2], [3, 2, 1, 2])
    assert forwarding.update(topology, routes(topology), hosts) == [] and not forwarding.unfinished
    other = "02:00:00:00:00:02"
    changes = forwarding.host_changed(routes(topology), other, PortKey(2, 1))
    assert {change.dpid for change in changes} == {1, 2, 101, 102}
    gone = forwarding.host_changed(routes(topology), other, None)
    assert gone and all(change.value is None for change in gone)
    forwarding.bridge_disconnected(2)
    assert forwarding.flood_ports(2) == ()
    forwarding.bridge_connected(2)
    changes = forwarding.update(topology, routes(topology), hosts) + finish(forwarding)
    assert {change.dpid for change in changes} == {2}


def test_a_dead_link_changes_the_rules_that_use_it_and_no_others():
    topology, forwarding, hosts = fabric(), Forwarding(), HostTable()
    for dpid in topology.switches:
        forwarding.bridge_connected(dpid)
    hosts.seen(MAC, PortKey(1, 1))
    forwarding.update(topology, routes(topology), hosts)
    finish(forwarding)
    forwarding.hosts_confirmed(forwarding.unconfirmed)
    topology.port_changed(PortKey(1, 51), False, 10.0)
    changes = forwarding.update(topology, routes(topology), hosts)
    values = {(change.dpid, change.key): change.value for change in changes}
    assert values[2, Deliver(MAC, 0, 0)] == (52,) and values[2, Deliver(MAC, 0, 1)] is None
    assert (102, Deliver(MAC, 0, 0)) not in values


def test_rules_of_an_unconfirmed_host_change_with_the_second_step():
    topology, forwarding, hosts = fabric(), Forwarding(), HostTable()
    for dpid in topology.switches:
        forwarding.bridge_connected(dpid)
    forwarding.update(topology, routes(topology), ())
    finish(forwarding)
    assert forwarding.unconfirmed is None
    hosts.seen(MAC, PortKey(1, 1))
    forwarding.host_changed(routes(topology), MAC, PortKey(1, 1))
    first = forwarding.unconfirmed
    other = "02:00:00:00:00:02"
    hosts.seen(other, PortKey(1, 1))
    forwarding.host_changed(routes(topology), other, PortKey(1, 1))
    forwarding.hosts_confirmed(first)
    topology.port_changed(PortKey(1, 51), False, 10.0)
    changes = forwarding.update(topology, routes(topology), hosts)
    assert {change.key.mac for change in changes if isinstance(change.key, Deliver)} == {MAC}
    # So is a host that is seen now, and a host that is forgotten now is removed with it.
    third = "02:00:00:00:00:03"
    assert forwarding.host_changed(routes(topology), third, PortKey(1, 1)) == []
    assert forwarding.host_changed(routes(topology), MAC, None) == []
    second = [change for change in forwarding.deliver() if isinstance(change.key, Deliver)]
    sent = {(change.key.mac, change.value is None) for change in second if change.dpid == 102}
    assert sent == {(third, False), (MAC, True)}
    forwarding.hosts_confirmed(forwarding.unconfirmed)
    assert forwarding.unconfirmed is None


def test_old_and_new_floods_together_never_loop():
    """Each bridge may already be at the first step of the change: no mixture of rules has a loop."""
    topology, forwarding = fabric(spines=3), Forwarding()
    for dpid in sorted(topology.switches):
        forwarding.bridge_connected(dpid)
    forwarding.update(topology, routes(topology), ())
    finish(forwarding)
    before = {dpid: forwarding.flood_ports(dpid) for dpid in topology.switches}
    spine = next(d for d in (101, 102, 103) if len(before[d]) == 2)
    topology.port_changed(PortKey(1, spine - 50), False, 10.0)
    changes = forwarding.update(topology, routes(topology), ())
    step = {change.dpid: change.value for change in changes if change.key == Flood()}
    links = [*topology.links(), (PortKey(1, spine - 50), PortKey(spine, 1))]
    order = sorted(step)
    for count in range(len(order) + 1):
        now = {**before, **{dpid: step[dpid] for dpid in order[:count]}}
        used = nx.empty_graph(topology.switches)
        for a, b in links:
            if a.port in now[a.dpid] or b.port in now[b.dpid]:
                used.add_edge(a.dpid, b.dpid)
        assert nx.is_forest(used)


def islands(pairs, hosts):
    """Pairs of switches with a link each, and as many hosts behind each switch."""
    topology, table = Topology(1.0), HostTable()
    for number in range(1, pairs + 1):
        ends = PortKey(number, 9), PortKey(number + 100, 9)
        for end in ends:
            topology.add_switch(end.dpid, [(port, True) for port in (1, 9)], 0.0)
        topology.lldp_seen(*ends, 0.0)
        topology.lldp_seen(*ends[::-1], 0.0)
        for end in ends:
            for host in range(hosts):
                table.seen(f"02:00:00:00:{end.dpid:02x}:{host:02x}", PortKey(end.dpid, 1))
    topology.decide(9.0)
    return topology, table


def test_work_grows_with_the_bridges_that_a_host_reaches_and_not_with_all(monkeypatch):
    computed, exits = [], Routes.exits

    def counted(self, dpid, towards):
        computed.append((dpid, towards))
        return exits(self, dpid, towards)

    monkeypatch.setattr(Routes, "exits", counted)
    work = []
    for pairs in (3, 6):
        topology, hosts = islands(pairs, hosts=2)
        forwarding = Forwarding()
        for dpid in topology.switches:
            forwarding.bridge_connected(dpid)
        computed.clear()
        forwarding.update(topology, routes(topology), hosts)
        finish(forwarding)
        work.append(len(computed))
        assert sum(isinstance(key, Deliver) for key in forwarding._installed[1]) == 4
        computed.clear()
        changes = forwarding.host_changed(routes(topology), MAC, PortKey(101, 1))
        assert computed == [(1, 101)] and {change.dpid for change in changes} == {1, 101}
    # From each switch of a pair to the other one, for all hosts there together.
    assert work == [3 * 2, 6 * 2]


def test_bridges_whose_rules_are_those_wanted_are_left_alone(monkeypatch):
    topology, hosts = islands(5, hosts=1)
    forwarding = Forwarding()
    for dpid in topology.switches:
        forwarding.bridge_connected(dpid)
    forwarding.update(topology, routes(topology), hosts)
    finish(forwarding)
    compared, differences = [], forwarding._differences
    monkeypatch.setattr(
        forwarding, "_differences", lambda dpid, rules: compared.append(dpid) or differences(dpid, rules)
    )
    topology.port_changed(PortKey(1, 1), False, 10.0)
    changes = forwarding.update(topology, routes(topology), hosts) + finish(forwarding)
    assert {*compared} == {change.dpid for change in changes} == {1}


def test_rules_of_an_earlier_controller_for_more_buckets_are_removed_with_their_host():
    topology, forwarding = fabric(), Forwarding()
    for dpid in topology.switches:
        forwarding.bridge_connected(dpid, {Flood(): (1,), Deliver(MAC, 5, 7): (1,)})
    assert forwarding.take_over()
    changes = forwarding.host_changed(routes(topology), MAC, None)
    assert {(change.dpid, change.key, change.value) for change in changes} == {
        (dpid, Deliver(MAC, 5, 7), None) for dpid in topology.switches
    }

"""The roles of ports, and the links."""

import pytest

from fairq_ryu.fabric.topology import graph as module
from fairq_ryu.fabric.topology.graph import PortRole, Topology, with_hosts
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.model import PortKey

A1, A2, B1, B2 = PortKey(1, 1), PortKey(1, 2), PortKey(2, 1), PortKey(2, 2)


@pytest.fixture
def topology():
    """Two switches with two ports each; their roles are not known yet."""
    found = Topology(settle=2.0)
    found.add_switch(1, [(1, True), (2, True)], now=0.0)
    found.add_switch(2, [(1, True), (2, True)], now=0.0)
    return found


def linked(topology, a=A2, b=B2):
    topology.lldp_seen(a, b)
    topology.lldp_seen(b, a)
    return topology


def test_a_port_without_lldp_is_a_host_port_after_a_while(topology):
    assert topology.decide(1.9) == [] and not topology.settled
    assert topology.role(A1) is PortRole.UNDECIDED and topology.host_ports(1) == []
    assert topology.decide(2.0) == [A1, A2, B1, B2] and topology.settled
    assert topology.role(A1) is PortRole.HOST and topology.host_ports(1) == [A1, A2]
    assert topology.edge_switches() == {1, 2}


def test_a_frame_makes_an_undecided_port_a_host_port_but_never_a_link(topology):
    linked(topology)
    assert topology.frame_seen(A1) and topology.role(A1) is PortRole.HOST
    assert not topology.frame_seen(A2) and topology.role(A2) is PortRole.LINK
    assert not topology.frame_seen(PortKey(9, 9))


def test_a_link_needs_frames_in_both_directions(topology):
    assert topology.lldp_seen(A2, B2)
    assert list(topology.links()) == [] and topology.role(B2) is PortRole.LINK
    assert topology.lldp_seen(B2, A2)
    assert list(topology.links()) == [(A2, B2)]
    assert not topology.lldp_seen(B2, A2)
    assert topology.graph().edges[1, 2]["ports"] == ((A2, B2),)
    topology.link_lost(A2, B2)
    assert list(topology.links()) == []


def test_lldp_makes_a_host_port_a_link(topology):
    topology.frame_seen(A2)
    linked(topology)
    assert topology.link_ports(1) == [A2] and topology.host_ports(1) == []


def test_a_port_that_is_down_has_no_link_and_is_no_hosts_port_until_lldp_could_have_come(topology):
    linked(topology)
    topology.port_changed(A2, False, 5.0)
    assert list(topology.links()) == [] and topology.role(A2) is PortRole.LINK
    assert not topology.lldp_seen(A2, B2)  # a frame that was in flight
    topology.port_changed(A2, True, 6.0)
    topology.decide(7.9)
    assert topology.role(A2) is PortRole.LINK
    topology.decide(8.0)
    assert topology.role(A2) is PortRole.HOST
    linked(topology)
    assert list(topology.links()) == [(A2, B2)]


def test_a_host_port_that_flaps_stays_one(topology):
    topology.decide(2.0)
    topology.port_changed(A1, False, 3.0)
    assert A1 not in topology.host_ports(1)
    topology.port_changed(A1, True, 4.0)
    assert A1 in topology.host_ports(1)


def test_the_link_of_a_cable_moves_with_it(topology):
    linked(topology)
    linked(topology, A2, B1)
    assert list(topology.links()) == [(A2, B1)]


def test_a_disconnected_switch_loses_its_links_and_keeps_its_roles(topology):
    linked(topology)
    topology.frame_seen(B1)
    topology.remove_switch(2)
    assert topology.switches == {1} and list(topology.links()) == []
    assert not topology.lldp_seen(B2, A2)
    topology.add_switch(2, [(1, True), (2, True)], now=9.0)
    assert topology.role(B1) is PortRole.HOST and topology.role(B2) is PortRole.LINK
    topology.add_switch(2, [(2, True)], now=9.5)
    assert topology.ports(2) == [B2]


def test_the_number_of_remembered_switches_is_bounded(monkeypatch):
    """Any peer can connect with any id, and disconnect."""
    monkeypatch.setattr(module, "_MAX_GONE", 3)
    monkeypatch.setattr(module, "_MAX_GONE_PORTS", 8)
    topology = Topology(1.0)
    forgotten = []
    for dpid, ports in ((1, 2), (2, 2), (3, 2), (4, 2), (5, 3)):
        topology.add_switch(dpid, [(number, True) for number in range(1, ports + 1)], now=0.0)
        forgotten.append(topology.remove_switch(dpid))
    assert forgotten == [[], [], [], [1], [2]]
    assert topology.known_switches == {3, 4, 5}
    topology.add_switch(3, [(1, True), (2, True)], now=1.0)
    topology.add_switch(6, [(number, True) for number in range(1, 10)], now=1.0)
    assert topology.remove_switch(6) == [4, 5, 6]
    assert topology.known_switches == {3}


def test_every_change_of_a_path_raises_the_version(topology):
    steps = [
        lambda: topology.lldp_seen(A2, B2),
        lambda: topology.lldp_seen(B2, A2),
        lambda: topology.frame_seen(A1),
        lambda: topology.port_changed(A2, False, 3.0),
        lambda: topology.port_changed(A2, True, 3.0),
        lambda: topology.decide(9.0),
        lambda: topology.remove_port(A2),
        lambda: topology.remove_switch(1),
    ]
    for step in steps:
        before = topology.version
        step()
        assert topology.version > before
    before = topology.version
    topology.remove_switch(1)
    topology.decide(10.0)
    topology.link_lost(A2, B2)
    assert topology.version == before


def test_the_whole_network_has_its_hosts(topology):
    hosts = HostTable()
    hosts.seen("02:00:00:00:00:01", A1, "10.0.0.1")
    whole = with_hosts(linked(topology).graph(), hosts)
    assert whole.nodes["02:00:00:00:00:01"] == {"at": A1, "addresses": ("10.0.0.1",)}
    assert set(whole["02:00:00:00:00:01"]) == {1} and whole.edges[1, 2]["ports"] == ((A2, B2),)
    hosts.forget("02:00:00:00:00:01")
    assert set(with_hosts(topology.graph(), hosts)) == {1, 2}


def test_a_link_of_an_earlier_controller_is_one_until_its_other_end_has_had_time_to_come(topology):
    topology.assume_link(A2, until=15.0)
    topology.decide(2.0)
    assert topology.role(A2) is PortRole.LINK and not topology.settled
    topology.lldp_seen(A2, B2)
    assert not topology.settled  # the other direction is missing
    topology.lldp_seen(B2, A2)
    assert topology.settled
    topology.assume_link(A1, until=15.0)
    assert topology.role(A1) is PortRole.HOST

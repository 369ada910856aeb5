"""The roles of ports, and the links."""

import pytest

from fairq_ryu.fabric.topology import graph as module
from fairq_ryu.fabric.topology.graph import PortRole, Sight, Topology
from fairq_ryu.model import PortKey

A1, A2, B1, B2 = PortKey(1, 1), PortKey(1, 2), PortKey(2, 1), PortKey(2, 2)


@pytest.fixture
def topology():
    """Two switches with two ports each; their roles are not known yet."""
    found = Topology(settle=2.0)
    found.add_switch(1, [(1, True), (2, True)], now=0.0)
    found.add_switch(2, [(1, True), (2, True)], now=0.0)
    return found


def linked(topology, a=A2, b=B2, now=0.0):
    topology.lldp_seen(a, b, now)
    topology.lldp_seen(b, a, now)
    return topology


def test_a_port_without_lldp_is_a_host_port_after_a_while(topology):
    assert topology.decide(1.9) == [] and not topology.settled
    assert topology.role(A1) is PortRole.UNDECIDED and topology.host_ports(1) == []
    assert topology.decide(2.0) == [A1, A2, B1, B2] and topology.settled
    assert topology.role(A1) is PortRole.HOST and topology.host_ports(1) == [A1, A2]
    assert topology.edge_switches() == {1, 2}


def test_a_frame_makes_an_undecided_port_a_host_port_but_never_a_link(topology):
    linked(topology)
    assert topology.frame_seen(A1, 1.0) and topology.role(A1) is PortRole.HOST
    assert not topology.frame_seen(A2, 1.0) and topology.role(A2) is PortRole.LINK
    assert not topology.frame_seen(PortKey(9, 9), 1.0)


def test_a_link_needs_frames_in_both_directions(topology):
    assert topology.lldp_seen(A2, B2, 0.0) is Sight.NEW
    assert list(topology.links()) == [] and topology.role(B2) is PortRole.LINK
    assert topology.lldp_seen(B2, A2, 0.0) is Sight.NEW
    assert list(topology.links()) == [(A2, B2)]
    assert topology.lldp_seen(B2, A2, 0.0) is Sight.KNOWN
    assert topology.graph().edges[1, 2]["ports"] == ((A2, B2),)
    topology.link_lost(A2, B2)
    assert list(topology.links()) == []


def test_lldp_makes_a_host_port_without_hosts_a_link(topology):
    topology.frame_seen(A2, 1.0)  # the host is not known any more
    linked(topology)
    assert topology.link_ports(1) == [A2] and topology.host_ports(1) == []


@pytest.fixture
def inhabited():
    """As ``topology``; hosts are known behind the first port of each switch since they were seen there."""
    found = Topology(2.0, has_hosts=lambda port: port.port == 1)
    for dpid in (1, 2):
        found.add_switch(dpid, [(1, True), (2, True), (3, True)], now=0.0)
        found.frame_seen(PortKey(dpid, 1), 1.0)
    return found


@pytest.mark.parametrize(("source", "target"), [(A1, B2), (B2, A1), (A1, B1)])
def test_a_port_with_hosts_never_becomes_a_link_by_a_frame(inhabited, source, target):
    """Two hosts that work together carry fresh frames from one port to the other."""
    before = inhabited.version
    assert inhabited.lldp_seen(source, target, 5.0) is Sight.HOSTS
    assert inhabited.lldp_seen(target, source, 5.0) is Sight.HOSTS
    assert inhabited.role(A1) is PortRole.HOST and inhabited.role(B2) is PortRole.UNDECIDED
    assert list(inhabited.links()) == [] and inhabited.version == before


def test_a_port_whose_cable_was_replaced_may_become_a_link_though_its_hosts_are_still_known(inhabited):
    inhabited.port_changed(A1, False, 5.0)
    inhabited.port_changed(A1, True, 6.0)
    assert list(linked(inhabited, A1, B2, 7.0).links()) == [(A1, B2)]


def test_hosts_that_were_seen_through_a_bridge_before_it_connected_do_not_keep_its_link_away(inhabited):
    """It forwarded by itself then, so its hosts were learned at the port that leads to it."""
    inhabited.add_switch(3, [(1, True)], now=2.0)
    assert list(linked(inhabited, A1, PortKey(3, 1), 3.0).links()) == [(A1, PortKey(3, 1))]


def test_hosts_that_were_seen_through_a_bridge_before_it_had_our_rules_do_not_keep_its_link_away(inhabited):
    """It forwards by itself until it has them, and the frames of that time arrive a little later."""
    port = PortKey(3, 1)
    inhabited.add_switch(3, [(1, True)], now=0.5)
    assert inhabited.lldp_seen(port, A1, 1.1) is Sight.HOSTS  # what was seen at 1.0 is not behind it
    inhabited.governed(3, 0.9)
    assert list(linked(inhabited, A1, port, 1.2).links()) == [(A1, port)]


def test_hosts_that_were_seen_after_a_bridge_had_our_rules_keep_their_port(inhabited):
    port = PortKey(3, 1)
    inhabited.add_switch(3, [(1, True)], now=0.5)
    inhabited.governed(3, 0.9)
    inhabited.frame_seen(A1, 3.0)
    assert inhabited.lldp_seen(port, A1, 3.1) is Sight.HOSTS
    inhabited.governed(9, 3.2)  # a switch that has disconnected meanwhile
    assert inhabited.knows(9) is False


def test_no_two_bridges_that_connect_again_make_a_link_of_two_ports_with_hosts(inhabited):
    for dpid, now in ((1, 2.0), (2, 3.0)):
        inhabited.remove_switch(dpid)
        inhabited.add_switch(dpid, [(1, True), (2, True), (3, True)], now)
        inhabited.frame_seen(PortKey(dpid, 1), now)  # read from the rules that the bridge has kept
    assert inhabited.lldp_seen(A1, B1, 4.0) is Sight.HOSTS
    assert inhabited.lldp_seen(B1, A1, 4.0) is Sight.HOSTS


def test_a_frame_takes_no_port_from_a_link_that_works(topology):
    linked(topology)
    assert topology.lldp_seen(A2, B1, 3.0) is Sight.TAKEN
    assert topology.lldp_seen(A1, B2, 3.0) is Sight.TAKEN
    assert topology.role(B1) is PortRole.UNDECIDED and list(topology.links()) == [(A2, B2)]


def test_a_frame_that_comes_back_shows_nothing(topology):
    assert topology.lldp_seen(A1, A1, 1.0) is Sight.REFLECTED
    assert topology.role(A1) is PortRole.UNDECIDED


def test_a_port_that_is_down_has_no_link_and_is_no_hosts_port_until_lldp_could_have_come(topology):
    linked(topology)
    topology.port_changed(A2, False, 5.0)
    assert list(topology.links()) == [] and topology.role(A2) is PortRole.LINK
    assert topology.lldp_seen(A2, B2, 5.0) is Sight.UNKNOWN  # a frame that was in flight
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
    assert topology.role(A1) is PortRole.HOST
    assert A1 not in topology.host_ports(1), "it may lead to a foreign segment now"
    assert topology.decide(4.0 + topology.settle) == [A1]
    assert A1 in topology.host_ports(1)


def test_the_port_to_a_bridge_that_is_forgotten_is_decided_again(topology):
    """It is somebody else's by now, or something else is there."""
    linked(topology)
    topology.remove_switch(2)
    assert topology.role(A2) is PortRole.LINK and topology.decide(100.0) == [A1]
    topology.forget_switch(2, 200.0)
    assert topology.waits_at(A2) and topology.decide(200.0) == []
    assert topology.decide(200.0 + topology.settle) == [A2]
    assert topology.host_ports(1) == [A1, A2]


def test_a_port_that_flaps_all_the_time_does_not_delay_the_others():
    topology = Topology(settle=2.0, sweeps=1)
    topology.add_switch(1, [(1, True), (2, True)], now=0.0)
    sent = None
    for step in range(10):
        if sent is not None:
            topology.probed(*sent)
        assert topology.decide(0.3 * step) == ([A1] if step == 7 else [])
        for up in (False, True):
            topology.port_changed(A2, up, 0.3 * step)
        topology.frame_sent()
        sent = list(topology.ports_up()), topology.sweep
    assert topology.role(A2) is PortRole.UNDECIDED


def test_a_frame_of_a_host_opens_its_port_but_no_flood_to_it(topology):
    """One frame of a foreign segment comes in by all ports that lead there."""
    assert topology.frame_seen(A1, 0.1) and topology.frame_seen(A2, 0.1)
    assert topology.role(A1) is topology.role(A2) is PortRole.HOST and topology.waits
    assert topology.host_ports(1) == []
    assert set(topology.decide(topology.settle)) >= {A1, A2}
    assert topology.host_ports(1) == [A1, A2]


def test_the_link_of_a_cable_moves_with_it(topology):
    """Without a port that went down, when frames have come through the old place no more for a while."""
    linked(topology)
    linked(topology, A2, B1, now=4.0)
    assert list(topology.links()) == [(A2, B1)]


def test_a_silent_link_is_lost_if_both_of_its_switches_hear_others(topology):
    topology.add_switch(3, [(1, True), (2, True)], now=0.0)
    others = [(A1, PortKey(3, 1)), (B1, PortKey(3, 2))]
    linked(topology)
    for period in range(14):
        for link in others:
            linked(topology, *link, now=0.9 * period)
        assert topology.lose_silent_links(0.9 * period) == (
            [] if period <= 11 else [(A2, B2), (B2, A2)] if period == 12 else []
        )
    assert list(topology.links()) == others


def test_a_disconnected_switch_loses_its_links_and_keeps_its_roles(topology):
    linked(topology)
    topology.frame_seen(B1, 1.0)
    topology.remove_switch(2)
    assert topology.switches == {1} and list(topology.links()) == []
    assert topology.lldp_seen(B2, A2, 1.0) is Sight.UNKNOWN
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
        lambda: topology.lldp_seen(A2, B2, 0.0),
        lambda: topology.lldp_seen(B2, A2, 0.0),
        lambda: topology.frame_seen(A1, 0.0),
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


def test_a_link_of_an_earlier_controller_is_one_until_its_other_end_has_had_time_to_come(topology):
    topology.assume_link(A2, until=15.0)
    topology.decide(2.0)
    assert topology.role(A2) is PortRole.LINK and not topology.settled
    topology.lldp_seen(A2, B2, 2.0)
    assert not topology.settled  # the other direction is missing
    topology.lldp_seen(B2, A2, 2.0)
    assert topology.settled
    topology.assume_link(A1, until=15.0)
    assert topology.role(A1) is PortRole.HOST

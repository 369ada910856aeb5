"""Rules of VLANs: which a network needs, and in which step they change."""

from fairq_ryu.fabric.topology.forwarding import Deliver, EcmpBits, Entry, Flood, Forwarding, FromLink, Tagged
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.fabric.topology.ports import UNTAGGED, LogicalPorts
from fairq_ryu.fabric.topology.routing import Routes
from fairq_ryu.model import PortKey
from fairq_ryu.port_settings import OTHER_VLANS, PortSettings, VlanMode

MAC = "02:00:00:00:00:01"
TEN, TWENTY = (PortSettings(VlanMode.ACCESS, vlan) for vlan in (10, 20))
LINK = 9


class Net:
    """Two bridges with host ports 1 to 3 each, and a link at port 9."""

    def __init__(self):
        self.topology = Topology(1.0)
        for dpid in (1, 2):
            self.topology.add_switch(dpid, [(number, True) for number in (1, 2, 3, LINK)], 0)
        for pair in ((1, 2), (2, 1)):
            self.topology.lldp_seen(*(PortKey(dpid, LINK) for dpid in pair), 0.0)
        self.topology.decide(9.0)
        self.ports = LogicalPorts(self.topology.is_up)
        self.forwarding, self.hosts = Forwarding(self.ports), HostTable()
        for dpid in (1, 2):
            self.forwarding.bridge_connected(dpid)

    @property
    def routes(self):
        return Routes(self.topology.graph(), self.topology.edge_switches())

    def first(self):
        return self.forwarding.update(self.topology, self.routes, self.hosts)

    def rules(self, dpid):
        """The rules of a bridge when all steps are done."""
        self.first()
        self.forwarding.deliver()
        self.forwarding.grow()
        assert not self.forwarding.unfinished
        return dict(self.forwarding._installed[dpid])


def test_a_network_without_vlans_has_no_rules_of_vlans():
    net = Net()
    net.hosts.seen(MAC, PortKey(1, 1))
    net.ports.replace(1, {1: PortSettings(), 2: PortSettings(bond="b")})
    assert net.rules(1) == {
        Flood(): (1, 2, 3, LINK),
        EcmpBits(): (0,),
        FromLink(LINK): (),
        Deliver(MAC, 0, 0): (1,),
    }


def test_floods_and_deliveries_are_per_vlan():
    net = Net()
    net.ports.replace(1, {1: TEN, 2: TWENTY})
    net.ports.replace(2, {1: TEN})
    net.hosts.seen(MAC, PortKey(1, 1), vlan=10)
    net.hosts.seen(MAC, PortKey(1, 2), vlan=20)
    assert net.rules(1) == {
        Flood(): (3, LINK),
        Flood(0, OTHER_VLANS): (3, LINK),
        Flood(0, 10): (3, LINK, 1 + UNTAGGED),
        Flood(0, 20): (3, LINK, 2 + UNTAGGED),
        EcmpBits(): (0,),
        Tagged(): (0,),
        FromLink(LINK): (),
        Entry(1): (10,),
        Entry(2): (20,),
        Deliver(MAC, 0, 0, 10): (1 + UNTAGGED,),
        Deliver(MAC, 0, 0, 20): (2 + UNTAGGED,),
    }
    there = net.rules(2)
    assert there[Flood(0, 20)] == (2, 3, LINK) and there[Flood(0, 10)] == (2, 3, LINK, 1 + UNTAGGED)
    assert there[Deliver(MAC, 0, 0, 10)] == there[Deliver(MAC, 0, 0, 20)] == (LINK,)
    assert net.forwarding.flood_ports(2, 0, 20) == (2, 3, LINK)
    assert net.forwarding.flood_ports(2, 0, 99) == (2, 3, LINK)  # as all other VLANs
    assert net.forwarding.has_entry_rules(1) and not Net().forwarding.has_entry_rules(1)


def test_a_host_that_sends_tagged_frames_needs_rules_for_them():
    net = Net()
    net.hosts.seen(MAC, PortKey(1, 1), vlan=30)
    rules = net.rules(1)
    assert rules[Deliver(MAC, 0, 0, 30)] == (1,) and rules[Flood(0, OTHER_VLANS)] == (1, 2, 3, LINK)
    assert Flood(0, 30) not in rules and Tagged() in rules


def test_a_port_leaves_its_old_vlan_before_floods_of_the_new_one_reach_it():
    net = Net()
    net.rules(1)
    net.ports.replace(1, {1: TEN})
    first = {change.key: change.value for change in net.first() if change.dpid == 1}
    assert first[Entry(1)] == (10,) and first[Flood()] == (2, 3, LINK)
    assert first[Flood(0, 10)] == () and Tagged() in first
    assert Flood(0, 10) not in {change.key for change in net.forwarding.deliver()}
    last = {change.key: change.value for change in net.forwarding.grow() if change.dpid == 1}
    assert last[Flood(0, 10)] == (2, 3, LINK, 1 + UNTAGGED)
    net.ports.replace(1, {1: PortSettings()})
    back = {change.key: change.value for change in net.first() if change.dpid == 1}
    assert back[Entry(1)] is None and Tagged() not in back  # only when no flood is of a VLAN any more
    gone = {change.key for change in net.forwarding.deliver() if change.value is None and change.dpid == 1}
    assert gone == {Tagged()}


def test_a_link_carries_every_vlan():
    net = Net()
    net.ports.replace(1, {LINK: TWENTY, 1: TEN})
    rules = net.rules(1)
    assert Entry(LINK) not in rules and LINK in rules[Flood(0, 10)] and LINK in rules[Flood()]


def test_a_host_that_comes_later_has_the_rule_of_its_vlan():
    net = Net()
    net.ports.replace(1, {1: TEN})
    net.rules(1)
    changes = net.forwarding.host_changed(net.routes, MAC, PortKey(1, 1), 10)
    assert [(each.dpid, each.key, each.value) for each in changes] == [
        (1, Deliver(MAC, 0, 0, 10), (1 + UNTAGGED,)),
        (2, Deliver(MAC, 0, 0, 10), (LINK,)),
    ]
    assert net.forwarding.host_changed(net.routes, MAC, None, 0) == []  # that is another host
    assert len(net.forwarding.host_changed(net.routes, MAC, None, 10)) == 2

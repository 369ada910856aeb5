"""The graph of the whole network."""

from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.hosts import HostTable
from fairq_ryu.fabric.topology.whole_graph import with_hosts
from fairq_ryu.model import PortKey

A1, A2, B1, B2 = PortKey(1, 1), PortKey(1, 2), PortKey(2, 1), PortKey(2, 2)


def test_the_whole_network_has_its_hosts():
    topology = Topology(settle=2.0)
    for dpid in (1, 2):
        topology.add_switch(dpid, [(1, True), (2, True)], now=0.0)
    for link in ((A2, B2), (B2, A2)):
        topology.lldp_seen(*link, 0.0)
    hosts = HostTable()
    hosts.seen("02:00:00:00:00:01", A1, "10.0.0.1")
    whole = with_hosts(topology.graph(), hosts)
    mac = "02:00:00:00:00:01"
    assert whole.nodes[mac] == {"at": A1, "mac": mac, "vlan": 0, "addresses": ("10.0.0.1",)}
    assert set(whole["02:00:00:00:00:01"]) == {1} and whole.edges[1, 2]["ports"] == ((A2, B2),)
    hosts.seen(mac, B1, "10.0.0.1", vlan=10)
    whole = with_hosts(topology.graph(), hosts)
    assert whole.nodes[f"{mac}/10"] == {"at": B1, "mac": mac, "vlan": 10, "addresses": ("10.0.0.1",)}
    hosts.forget(mac)
    hosts.forget(mac, 10)
    assert set(with_hosts(topology.graph(), hosts)) == {1, 2}

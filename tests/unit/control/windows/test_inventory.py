"""What is known of bridges in the three ways: ports, names, roles, and what cannot be done."""

from __future__ import annotations

from fairq_ryu import far_queue
from fairq_ryu.channel import oxm
from fairq_ryu.channel.description import Description
from fairq_ryu.control.windows.inventory import FAR, UNKNOWN, Beside
from fairq_ryu.fabric.ways import Way
from fairq_ryu.model import PortKey
from tests.support.fakes import FakeSwitch
from tests.support.site import Site

PORT_ABOVE = far_queue.FAR | 2


def agent_of(site: Site, dpid: int, *ports: int):
    link = site.windows.agent_connected(FakeSwitch(oxm.agent_dpid(dpid)), Description(f"s{dpid}"))
    for number in ports:
        link.ports[number].name = f"s{dpid}-eth{number}"
    return link


def test_a_bridge_of_the_fabric():
    inventory = Site().windows.inventory
    assert inventory.way(1) is Way.PATHS and inventory.is_connected(1)
    assert inventory.name(PortKey(1, 2)) == "s1-eth2" and inventory.role(PortKey(1, 2)) == "undecided"
    assert inventory.limits(1, roles=True) == []


def test_a_bridge_of_which_only_the_agent_is_known():
    site = Site()
    agent_of(site, 7, 2, 1)
    inventory = site.windows.inventory
    assert inventory.way(7) is Way.WINDOWS and not inventory.is_connected(7)
    assert inventory.ports(7) == [PortKey(7, 1), PortKey(7, 2)]
    assert inventory.name(PortKey(7, 2)) == "s7-eth2" and inventory.role(PortKey(7, 2)) == UNKNOWN
    assert dict(inventory.listed()).keys() == {1, 7} and inventory.known == [1, 7]
    assert 7 not in inventory.counted


def test_a_far_queue_is_one_more_port_which_no_bridge_lists():
    site = Site()
    for dpid in (1, 7):
        link = agent_of(site, dpid, 1, 2)
        link.ports[PORT_ABOVE].name = f"s{dpid}-eth2@far"
    inventory = site.windows.inventory
    for dpid in (1, 7):
        key = PortKey(dpid, PORT_ABOVE)
        assert inventory.ports(dpid)[-1] == key and len(set(inventory.ports(dpid))) >= 3
        assert (inventory.name(key), inventory.role(key)) == (f"s{dpid}-eth2@far", FAR)


def test_a_bridge_of_the_fabric_that_is_away_stays_one():
    """Its agent is still there; its ports are not listed, as their state is not known."""
    site = Site()
    site.fabric.bridge_disconnected(site.bridge)
    inventory = site.windows.inventory
    assert inventory.way(1) is Way.PATHS and not inventory.is_connected(1)
    assert dict(inventory.listed()) == {} and inventory.known == [1]
    assert inventory.role(PortKey(1, 2)) == "undecided"


def test_only_a_normal_bridge_beside_the_fabric_has_counters():
    site = Site()
    inventory = site.windows.inventory
    inventory.add(Beside(FakeSwitch(7), Way.NORMAL))
    assert 7 in inventory.counted
    inventory.add(Beside(FakeSwitch(7), Way.WINDOWS))
    assert 7 not in inventory.counted and inventory.is_connected(7)
    assert inventory.remove(7) is not None and inventory.remove(7) is None

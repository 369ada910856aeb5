"""Hosts as the REST interface and the live page show them, beside the switches that they are behind."""

import logging

from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.model import PortKey
from fairq_ryu.packet.parse import Frame
from fairq_ryu.rest.views import FabricView
from tests.support.flownet import BACK, KEY, segment
from tests.support.full_controller import of
from tests.support.site import CLIENT_MAC, SERVER_MAC, Site

SYN, SYN_ACK = segment(KEY, "S"), segment(BACK, "SA")


def test_parts_that_have_just_failed_are_the_state_of_the_controller():
    state = of(Site()).state
    view = FabricView(state)
    assert (view.health()["status"], view.health()["failing"]) == ("ok", [])
    state.counts.faults.add("tick", ZeroDivisionError())
    assert (view.health()["status"], view.health()["failing"]) == ("failing", ["tick"])


def test_hosts_are_listed_beside_switches():
    site = Site()
    site.fabric.hosts.seen(SERVER_MAC, PortKey(1, 2), "10.0.0.2")
    site.fabric.hosts.seen(CLIENT_MAC, PortKey(1, 1), "10.0.0.1")
    assert FabricView(of(site).state).hosts() == [
        {"mac": CLIENT_MAC, "vlan": 0, "at": [f"{1:016x}", 1], "addresses": ["10.0.0.1"]},
        {"mac": SERVER_MAC, "vlan": 0, "at": [f"{1:016x}", 2], "addresses": ["10.0.0.2"]},
    ]


def test_the_first_address_of_a_host_is_of_ipv4():
    site = Site()
    for address in ("fe80::1", "2001:db8::1", "203.0.113.9", "10.0.0.1"):
        site.fabric.hosts.seen(SERVER_MAC, PortKey(1, 2), address)
    (row,) = FabricView(of(site).state).hosts()
    assert row["addresses"] == ["10.0.0.1", "203.0.113.9", "2001:db8::1", "fe80::1"]


def test_both_ends_of_a_connection_are_learnt_from_copies_of_their_syns():
    """The receiver's first frame used IPv6: without this, it would be shown by that address for ever."""
    site = Site()
    site.fabric.hosts.seen(CLIENT_MAC, PortKey(1, 1), "fe80::a")
    site.fabric.hosts.seen(SERVER_MAC, PortKey(1, 2), "fe80::b")
    tracker = FlowTracker(site.fabric, site.flows, site.windows, logging.getLogger(__name__))
    for mac, port, made in ((CLIENT_MAC, 1, SYN), (SERVER_MAC, 2, SYN_ACK)):
        frame = Frame(mac, "ff:ff:ff:ff:ff:ff", (), tcp=made)
        tracker.copied(frame, made, PortKey(1, port), 1.0)
    assert [row["addresses"] for row in FabricView(of(site).state).hosts()] == [
        ["10.0.0.1", "fe80::a"],
        ["10.0.0.2", "fe80::b"],
    ]

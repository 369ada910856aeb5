"""VLANs, bonds, mirrors and foreign segments, as the controller forwards them."""

from __future__ import annotations

import logging
import time

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import pipeline, vlans
from fairq_ryu.packet import build, parse, tags
from fairq_ryu.packet.headers import ARP_REQUEST, mac_bytes
from fairq_ryu.port_settings import IN_PLACE_OF, PortSettings, VlanMode
from tests.support.fakes import FakeSwitch, ryu_decode, wire

TEN, TWENTY = (PortSettings(VlanMode.ACCESS, vlan) for vlan in (10, 20))
TRUNK = PortSettings(trunks=((10, 10), (20, 20)))
BROADCAST = b"\xff" * 6
PORTS = range(1, 6)


class Site:
    """A bridge whose ports 1 to 5 lead to hosts."""

    def __init__(self, settings):
        self.fabric = FabricController(Config(), logging.getLogger(__name__))
        self.bridge = FakeSwitch(1)
        self.fabric.bridge_connected(self.bridge, [PortState(n, True, f"p{n}") for n in PORTS], [], 0.0)
        self.fabric.port_settings(1, settings)
        self.fabric.topology.settle, self.fabric.topology.sweeps = 0, 0
        self.fabric.tick(1e9)
        self.fabric.refresh()
        self.clear()

    def clear(self):
        self.bridge.log.clear()

    def frame(self, number, vlan, port, arp_for=None):
        """A frame of a host, as the bridge copies it: with the tag of its VLAN."""
        ends = mac_bytes(f"02:00:00:00:00:{number:02x}"), bytes((10, 0, 0, number))
        target = bytes(6), bytes((10, 0, 0, arp_for or number))
        data = build.arp_frame(ARP_REQUEST, ends, target, BROADCAST, [vlan] if vlan else []).ljust(60, b"\0")
        in_port, untagged = self.fabric.arrival(PortKey(1, port))
        frame = parse.parse(data, untagged)
        self.fabric.host_seen(self.bridge, frame, in_port, 0.0)
        if arp_for:
            self.fabric.answer_arp(self.bridge, frame, in_port, data, 0.0)

    def out(self):
        """The frames that are sent now: by port, the tags that they leave with."""
        found = {}
        for message in self.bridge.sent:
            if type(message).__name__ != "OFPPacketOut":
                continue
            frame_tags = parse.parse(message.data).tags
            for action in message.actions:
                if action.type == ofp.OFPAT_POP_VLAN:
                    frame_tags = frame_tags[1:]
                else:
                    found[action.port] = frame_tags
        return found


def test_the_same_addresses_in_two_vlans_are_two_hosts():
    site = Site({1: TEN, 2: TWENTY, 3: TRUNK})
    site.frame(1, 10, 1)
    site.frame(1, 20, 2)
    hosts = site.fabric.hosts
    assert {(host.vlan, host.port.port) for host in hosts} == {(10, 1), (20, 2)}
    assert hosts.by_ip("10.0.0.1", 10).port.port == 1 and hosts.by_ip("10.0.0.1", 20).port.port == 2
    site.fabric.host_silent(PortKey(1, 1), "02:00:00:00:00:01", 20)  # not at that port
    assert len(hosts) == 2
    site.fabric.host_silent(PortKey(1, 2), "02:00:00:00:00:01", 20)
    assert [host.vlan for host in hosts] == [10]


def test_arp_is_answered_in_its_own_vlan_and_without_a_tag_at_an_access_port():
    site = Site({1: TEN, 2: TWENTY, 3: TRUNK, 4: TEN})
    site.frame(1, 10, 1)
    site.clear()
    site.frame(4, 10, 4, arp_for=1)
    assert site.out() == {4: ()}
    site.clear()
    site.frame(3, 10, 3, arp_for=1)
    assert site.out() == {3: (10,)}
    site.clear()
    site.frame(2, 20, 2, arp_for=1)  # it is not known there: sent to all of VLAN 20
    assert site.out() == {3: (20,), 5: (20,)}


def test_a_frame_that_comes_before_the_rules_of_its_port_is_in_the_vlan_of_the_port():
    site = Site({1: TEN, 4: TEN})
    site.frame(1, 0, 1, arp_for=9)
    assert site.out() == {4: (), 2: (10,), 3: (10,), 5: (10,)}
    assert site.fabric.hosts.by_ip("10.0.0.1", 10) is not None and len(site.fabric.hosts) == 1


def test_hosts_are_forgotten_when_their_port_changes():
    site = Site({1: TEN, 2: TEN})
    site.frame(1, 10, 1)
    site.frame(2, 10, 2)
    site.fabric.port_settings(1, {1: TWENTY, 2: TEN})
    assert [host.mac for host in site.fabric.hosts] == ["02:00:00:00:00:02"] and site.fabric.stale
    site.fabric.refresh()
    site.fabric.port_settings(1, {1: TWENTY, 2: TEN})
    assert not site.fabric.stale


def test_hosts_that_the_former_rules_of_a_port_put_into_its_former_vlan_are_forgotten():
    site = Site({1: TEN, 2: TEN})
    site.bridge.answer_barriers(site.fabric.barriers)
    site.fabric.port_settings(1, {2: TEN})
    site.frame(1, 10, 1)  # the bridge still gives it the tag
    site.frame(2, 10, 2)
    site.fabric.refresh()
    site.frame(1, 10, 1)
    assert len(site.fabric.hosts) == 2
    site.bridge.answer_barriers(site.fabric.barriers)
    assert [host.mac for host in site.fabric.hosts] == ["02:00:00:00:00:02"] and site.fabric.stale
    site.frame(1, 0, 1)
    site.fabric.refresh()
    site.bridge.answer_barriers(site.fabric.barriers)
    assert {host.vlan for host in site.fabric.hosts} == {0, 10}


def test_a_pinned_path_ends_without_a_tag_at_an_access_port():
    site = Site({1: TEN, 3: TRUNK})
    site.frame(1, 10, 1)
    site.frame(3, 10, 3)
    key = FlowKey("10.0.0.3", "10.0.0.1", 40000, 80, 10)
    assert site.fabric.assign_path(key._replace(vlan=0), PortKey(1, 3), "02:00:00:00:00:01") is None
    path = site.fabric.assign_path(key, PortKey(1, 3), "02:00:00:00:00:01")
    rules = list(site.fabric._pinning.pin(path._replace(pinned=True)))
    actions = {
        message.match["tcp_dst"]: [type(each).__name__ for each in message.instructions[0].actions][1:]
        for _, message in rules
    }
    assert actions == {80: ["OFPActionPopVlan", "OFPActionOutput"], 40000: ["OFPActionOutput"]}
    assert {message.match["vlan_vid"] for _, message in rules} == {0x1000 | 10}
    site.clear()
    data = tags.with_tag(bytes(60), 10)
    site.fabric.forward_held(site.bridge, data, PortKey(1, 3), key, path)
    assert site.out() == {1: ()}
    site.clear()
    site.fabric.forward_held(site.bridge, data, PortKey(1, 3), key, None)
    assert site.out() == {1: (), 2: (10,), 4: (10,), 5: (10,)}


def test_a_host_behind_a_bond_does_not_move_between_its_members():
    site = Site({1: PortSettings(bond="b"), 2: PortSettings(bond="b")})
    site.frame(7, 0, 2)
    sources = [each for each in site.bridge.sent if each.table_id == pipeline.SOURCE and each.command == 0]
    assert [each.match["in_port"] for each in sources] == [1, 2]
    site.clear()
    site.frame(7, 0, 1)
    assert site.bridge.sent == [] and site.fabric.hosts.by_ip("10.0.0.7").port == PortKey(1, 1)
    site.frame(3, 0, 3, arp_for=9)
    assert set(site.out()) == {1, 4, 5}
    path = site.fabric.assign_path(FlowKey("10.0.0.3", "10.0.0.7", 1, 2), PortKey(1, 3), "02:00:00:00:00:07")
    assert path.target == PortKey(1, 1)
    site.fabric.port_changed(1, PortState(1, False, "p1"), 0.0)
    site.clear()
    site.fabric.refresh()
    assert site.fabric.paths.get(path.key) is None  # it follows the rules by destination
    (rule,) = [each for each in site.bridge.sent if each.match.get("eth_dst")]
    assert [each.port for each in rule.instructions[0].actions] == [2]
    site.fabric.host_silent(PortKey(1, 2), "02:00:00:00:00:07")
    assert site.fabric.hosts.by_ip("10.0.0.7") is None


def test_nothing_comes_from_the_output_of_a_mirror_or_an_unused_member():
    site = Site({1: PortSettings(mirror=True), 2: PortSettings(bond="b", standby=True)})
    assert site.fabric.arrival(PortKey(1, 1)) is None and site.fabric.arrival(PortKey(1, 2)) is None
    site.frame(3, 0, 3, arp_for=9)
    assert set(site.out()) == {4, 5}


def probes(site):
    """The probes that the controller sends now, by the ports that they leave by."""
    site.clear()
    for number in PORTS:
        site.fabric.discovery_frame_sent(PortKey(1, number))
    return {each.actions[0].port: each.data for each in site.bridge.sent}


@pytest.mark.parametrize("both", [True, False])
def test_of_two_ports_into_one_segment_only_one_is_used(both, caplog):
    site = Site({})
    site.frame(7, 0, 4)
    key = FlowKey("10.0.0.3", "10.0.0.7", 1, 2)
    assert site.fabric.assign_path(key, PortKey(1, 3), "02:00:00:00:00:07")
    site.fabric.refresh()
    sent = probes(site)
    assert set(sent) == set(PORTS)
    now = time.monotonic()
    site.fabric.segment_probe_arrived(sent[2], PortKey(1, 4), now)
    if both:
        site.fabric.segment_probe_arrived(sent[4], PortKey(1, 2), now)
    assert site.fabric.stale == both
    assert (site.fabric.arrival(PortKey(1, 4)) is None) == both
    assert (site.fabric.paths.get(key) is None) == both, "its path ends at a port that is not used any more"
    assert ("leads to the same segment as port" in caplog.text) == both
    site.fabric.refresh()
    site.clear()
    site.frame(1, 0, 1, arp_for=9)
    assert set(site.out()) & {2, 4} == ({2} if both else {2, 4})
    if both:
        site.fabric.tick(now + 60)
        assert site.fabric.arrival(PortKey(1, 4)) is not None


def test_a_probe_that_is_old_or_in_another_vlan_is_not_believed():
    site = Site({2: TEN, 4: TWENTY})
    sent = probes(site)
    now = time.monotonic()
    for one, other, at in ((2, 4, now), (1, 3, now + 60)):
        site.fabric.segment_probe_arrived(sent[one], PortKey(1, other), at)
        site.fabric.segment_probe_arrived(sent[other], PortKey(1, one), at)
    assert not site.fabric.stale


@pytest.mark.parametrize(
    "value", [(0, 0, 1 + IN_PLACE_OF), (10, 1 + IN_PLACE_OF), (-1, 10 << 16 | 0xFFF, 1 + IN_PLACE_OF)]
)
def test_what_comes_in_by_another_member_of_a_bond_comes_in_by_the_one_in_use(value):
    """Otherwise what is flooded would go back by that one."""
    site = Site({1: PortSettings(bond="b"), 2: PortSettings(bond="b")})
    rules = vlans.entry(site.bridge, 2, value, None)
    found = [ryu_decode(wire(each)) for each in rules]
    assert vlans.read_entry(found) == value
    for rule in found:
        actions = [action for each in rule.instructions for action in each.actions]
        assert not actions or [each.value for each in actions if hasattr(each, "dst")] == [1]


def test_a_restarted_controller_waits_for_the_settings_of_ports_with_rules():
    site = Site({1: TEN})
    rules = [*vlans.entry(site.bridge, 1, (10,), None), pipeline.flood(site.bridge, 0, [2])]
    found = [ryu_decode(wire(each)) for each in rules]
    again = FabricController(Config(), logging.getLogger(__name__))
    bridge = FakeSwitch(1)
    again.bridge_connected(bridge, [PortState(n, True, f"p{n}") for n in PORTS], found, 0.0)
    for port in again.topology.ports(1):
        again.topology.frame_seen(port, 0.0)
    again.topology.decide(1000.0)
    assert again.topology.settled
    bridge.log.clear()
    again.tick(1.0)
    again.refresh()
    assert not any(getattr(each, "table_id", None) == pipeline.DESTINATION for each in bridge.sent)
    again.port_settings(1, {1: TEN})
    again.tick(1.1)
    again.refresh()
    assert any(getattr(each, "table_id", None) == pipeline.DESTINATION for each in bridge.sent)

"""Packet-ins are counted by the rule that they come from, and handed to the part that they concern."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.channel import dropped_packet, oxm
from fairq_ryu.control.arrivals.agent_messages import AgentMessages
from fairq_ryu.control.arrivals.packet_ins import KINDS, PacketIns
from fairq_ryu.control.reports.counters import PACKET_INS, Counts
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import lldp, tags
from fairq_ryu.port_settings import PortSettings, VlanMode
from tests.support.site import Site
from tests.switch.packets import Segment

ETHERNET = bytes.fromhex("ffffffffffff020000000001")
ARP = ETHERNET + bytes.fromhex("0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002")
LLDP = lldp.build(lldp.DiscoveryFrame(2, 8, 0, bytes(16)))
SEGMENT = Segment(flags="S")
SYN = SEGMENT.frame()
KEY = FlowKey(SEGMENT.src, SEGMENT.dst, SEGMENT.sport, SEGMENT.dport)
PORT = PortKey(1, 3)
MAC = SYN[6:12].hex(":")
LOG = logging.getLogger(__name__)


class PacketInParts:
    """Packet-ins of bridge 1 and its agent. ``calls``: the methods of other parts that they have called, with
    their first arguments of interest.
    """

    def __init__(self) -> None:
        site, self.counts = Site(), Counts()
        self.calls: list[tuple[Any, ...]] = []
        self.agent, self.bridge = site.agent, site.bridge
        site.fabric.host_seen = lambda bridge, frame, port, _: self.called("host_seen", frame.src, port)
        site.fabric.answer_arp = lambda bridge, frame, port, data, _: self.called("answer_arp", data, port)
        site.fabric.discovery_frame = lambda data, port, _: self.called("discovery", data, port)
        site.windows.packet_dropped = lambda port, frame, *_: self.called("dropped", port, frame)
        tracker = SimpleNamespace(copied=lambda frame, tcp, port, _: self.called("copied", tcp.key, port))
        admission = SimpleNamespace(hold=lambda _, frame, data, port, now: self.called("hold", data, port))
        rerouting = SimpleNamespace(notify=lambda: self.called("notify"))
        messages = AgentMessages(site.windows, self.called, self.copied, self.counts, LOG)
        self.packet_ins = PacketIns(site.fabric, tracker, admission, messages, rerouting, self.counts)

    def copied(self, link: Any, number: int, frame: bytes, _: float) -> None:
        self.called("copied_by_agent", frame, PortKey(link.dpid, number))

    def called(self, *call: Any) -> None:
        self.calls.append(call)


@pytest.fixture
def parts() -> PacketInParts:
    return PacketInParts()


def receive(parts: PacketInParts, data: bytes, cookie: int, datapath: Any = None) -> dict[str, int]:
    """Handle a packet-in; returns the counts."""
    message = SimpleNamespace(
        datapath=datapath or parts.bridge, data=data, cookie=cookie, match={"in_port": 3}, total_len=len(data)
    )
    parts.packet_ins.packet_in(SimpleNamespace(msg=message))
    return {kind: count for kind, count in parts.counts.packet_ins.items() if count}


SEEN = ("host_seen", "02:00:00:00:00:01", PORT)


@pytest.mark.parametrize(
    ("data", "cookie", "kind", "calls"),
    [
        (ARP, pipeline.COOKIE_ARP, "arp", [SEEN, ("notify",), ("answer_arp", ARP, PORT)]),
        (ARP, pipeline.COOKIE_SOURCE, "source", [SEEN, ("notify",)]),
        (SYN, pipeline.COOKIE_TCP, "tcp", [("copied", KEY, PORT)]),
        (ARP, pipeline.COOKIE_TCP, "tcp", []),
        (SYN, pipeline.COOKIE_HELD, "held", [("hold", SYN, PORT)]),
        (LLDP, pipeline.COOKIE_LLDP, "lldp", [("discovery", LLDP, PORT), ("notify",)]),
        (ARP, 0xBEEF, "other", []),
        (b"\0" * 5, pipeline.COOKIE_TCP, "other", []),  # too short to be parsed
    ],
    ids=["ARP", "source", "SYN", "no segment", "held", "LLDP", "other", "short"],
)
def test_packets_are_counted_by_the_rule_that_sent_them_and_go_to_their_part(
    parts, data, cookie, kind, calls
):
    assert receive(parts, data, cookie) == {kind: 1}
    assert parts.calls == calls


def copy(parts: PacketInParts, data: bytes, datapath: Any = None) -> bool:
    """Hand over the copy of a segment that came in by :data:`PORT`."""
    return parts.packet_ins.segment_copy(datapath or parts.bridge, PORT.port, data)


def test_the_copy_of_a_segment_of_a_known_host_is_counted_and_tracked(parts):
    parts.packet_ins.fabric.hosts.seen(MAC, PORT)
    assert copy(parts, SYN)
    assert parts.calls == [("copied", KEY, PORT)] and parts.counts.packet_ins["tcp"] == 1


@pytest.mark.parametrize("data", [SYN, ARP, LLDP, b"\0" * 5], ids=["SYN", "ARP", "LLDP", "short"])
def test_a_copy_of_an_unknown_host_comes_behind_the_frames_before_it(parts, data):
    """One of them may be that from which its host is learned."""
    assert not copy(parts, data)
    assert parts.calls == [] and not any(parts.counts.packet_ins.values())


def test_a_copy_of_a_host_that_is_known_elsewhere_comes_behind_the_frames_before_it(parts):
    """It may have moved, and one of them tells so."""
    parts.packet_ins.fabric.hosts.seen(MAC, PortKey(1, 2))
    assert not copy(parts, SYN) and parts.calls == []


def test_a_copy_of_a_bridge_that_has_just_connected_again_is_left_to_ryu(parts):
    parts.packet_ins.fabric.hosts.seen(MAC, PORT)
    assert not copy(parts, SYN, SimpleNamespace(id=parts.bridge.id)) and parts.calls == []


def test_only_segments_of_bridges_and_of_carried_vlans_are_taken(parts):
    parts.packet_ins.fabric.hosts.seen(MAC, PORT)
    parts.packet_ins.fabric.hosts.seen(MAC, PORT, vlan=20)
    assert not copy(parts, SYN, parts.agent)
    assert not copy(parts, ARP)
    parts.packet_ins.fabric.logical_ports.replace(PORT.dpid, {PORT.port: PortSettings(VlanMode.ACCESS, 10)})
    assert not copy(parts, tags.with_tag(SYN, 20))
    parts.packet_ins.fabric.logical_ports.replace(PORT.dpid, {PORT.port: PortSettings(mirror=True)})
    assert not copy(parts, SYN)
    assert parts.calls == []


def test_a_frame_of_a_vlan_that_its_port_does_not_carry_is_ignored(parts):
    """It has come before the rules that drop it: its host would be learned in a VLAN of others."""
    settings = {PORT.port: PortSettings(VlanMode.ACCESS, 10)}
    parts.packet_ins.fabric.logical_ports.replace(PORT.dpid, settings)
    foreign, own = (tags.with_tag(ARP, vlan) for vlan in (20, 10))
    assert receive(parts, foreign, pipeline.COOKIE_ARP) == {"other": 1}
    assert receive(parts, tags.with_tag(SYN, 20), pipeline.COOKIE_HELD) == {"other": 2}
    assert parts.calls == []
    assert receive(parts, own, pipeline.COOKIE_SOURCE) == {"other": 2, "source": 1}
    parts.packet_ins.fabric.topology.assume_link(PORT, 1e9)
    assert receive(parts, foreign, pipeline.COOKIE_SOURCE)["source"] == 2  # links carry all


def test_a_packet_in_of_the_current_agent_is_a_loss_and_of_an_older_connection_not(parts):
    assert receive(parts, ARP, dropped_packet.COOKIE_DROPPED, parts.agent) == {"loss": 1}
    assert receive(parts, ARP, 7, parts.agent) == {"loss": 1, "other": 1}
    stranger = SimpleNamespace(id=oxm.agent_dpid(1))  # an older connection of the same agent
    assert receive(parts, ARP, dropped_packet.COOKIE_DROPPED, stranger) == {"loss": 1, "other": 2}
    assert parts.calls == [("dropped", PORT, ARP)]


def test_all_kinds_are_counted():
    assert tuple(Counts().packet_ins) == PACKET_INS
    assert set(KINDS.values()) | {"lldp", "loss", "other"} == set(PACKET_INS)

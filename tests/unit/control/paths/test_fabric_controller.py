"""Bridges, ports and links; a port becomes a host port only after discovery frames could have arrived."""

from __future__ import annotations

import logging
import math
import time

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths.fabric_controller import DISCOVERY_TIME, FabricController, PortState
from fairq_ryu.control.paths.forwarding_rules import SILENT_TIME
from fairq_ryu.fabric.topology.graph import PortRole
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet.parse import Frame
from tests.support.fakes import FakeSwitch

HOST1, LINK1, LINK2, HOST2 = (PortKey(dpid, port) for dpid in (1, 2) for port in (1, 2))
SETTLE = DISCOVERY_TIME
BROADCAST = "ff:ff:ff:ff:ff:ff"


class Pair:
    """Two bridges with two ports each; they answer barriers when the test orders it."""

    def __init__(self) -> None:
        self.log = []
        self.fabric = FabricController(Config(), logging.getLogger(__name__))
        self.bridges = {dpid: FakeSwitch(dpid, self.log) for dpid in (1, 2)}
        for dpid in self.bridges:
            self.come(dpid)

    def come(self, dpid: int, now: float = 0.0) -> None:
        ports = [PortState(number, True, f"s{dpid}-eth{number}") for number in (1, 2)]
        self.fabric.bridge_connected(self.bridges[dpid], ports, [], now)

    def answer(self, *dpids: int) -> None:
        """These bridges answer the barriers that they have received."""
        for dpid in dpids or (1, 2):
            self.bridges[dpid].answer_barriers(self.fabric.barriers)

    def sweep(self) -> None:
        for port in (HOST1, LINK1, LINK2, HOST2):
            self.fabric.discovery_frame_sent(port)

    def confirm(self, now: float) -> None:
        self.fabric.tick(now)
        self.answer()
        self.answer()

    def roles(self) -> set[PortRole]:
        return {self.fabric.topology.role(port) for port in (HOST1, LINK1, LINK2, HOST2)}


@pytest.fixture
def pair():
    return Pair()


def test_a_confirmed_sweep_decides_after_the_discovery_time(pair):
    pair.answer()  # their own rules are installed
    pair.sweep()
    pair.confirm(0.9)
    pair.fabric.tick(SETTLE - 0.01)
    assert pair.roles() == {PortRole.UNDECIDED}
    pair.fabric.tick(SETTLE)
    assert pair.roles() == {PortRole.HOST}


def test_time_alone_does_not_decide(pair):
    pair.answer()
    pair.fabric.tick(5 * SETTLE)  # no frame was sent
    assert pair.roles() == {PortRole.UNDECIDED}
    for port in (HOST1, LINK1, LINK2):
        pair.fabric.discovery_frame_sent(port)
    pair.confirm(5 * SETTLE)
    pair.fabric.tick(6 * SETTLE)  # not by every port
    assert pair.roles() == {PortRole.UNDECIDED}
    pair.fabric.discovery_frame_sent(HOST2)
    pair.confirm(6 * SETTLE)
    pair.fabric.tick(6 * SETTLE)
    assert pair.roles() == {PortRole.HOST}


def test_frames_count_when_every_bridge_has_answered_twice(pair):
    pair.answer()
    pair.sweep()
    pair.fabric.tick(1.0)
    pair.answer(1)
    pair.fabric.tick(5.0)
    pair.answer(1)
    pair.fabric.tick(6.0)
    assert pair.roles() == {PortRole.UNDECIDED}  # bridge 2 has not confirmed that its frames were sent
    pair.answer(2)
    pair.fabric.tick(7.0)
    assert pair.roles() == {PortRole.UNDECIDED}  # nor that it has delivered the frames that it received
    pair.answer()
    pair.fabric.tick(8.0)
    assert pair.roles() == {PortRole.HOST}


def test_frames_to_a_bridge_without_rules_do_not_count(pair):
    pair.answer(1)
    pair.sweep()
    pair.confirm(2.0)
    pair.fabric.tick(3.0)
    assert pair.roles() == {PortRole.UNDECIDED}
    pair.sweep()
    pair.confirm(4.0)
    pair.fabric.tick(4.0)
    assert pair.roles() == {PortRole.HOST}


def test_a_bridge_that_connects_later_must_confirm_too(pair):
    pair.fabric.bridge_disconnected(pair.bridges[2])
    pair.fabric.topology.remove_port(LINK2)
    pair.fabric.topology.remove_port(HOST2)
    pair.answer()
    for port in (HOST1, LINK1):
        pair.fabric.discovery_frame_sent(port)
    pair.fabric.tick(1.0)
    pair.come(2, 1.0)
    pair.answer()
    pair.answer()
    pair.fabric.tick(2.0)
    assert pair.roles() == {PortRole.UNDECIDED}


def test_a_reconnected_bridge_must_send_its_own_frames(pair):
    """Its ports were undecided, and stay undecided while it is disconnected and after it reconnects."""
    pair.answer()
    pair.fabric.bridge_disconnected(pair.bridges[2])
    for port in (HOST1, LINK1):
        pair.fabric.discovery_frame_sent(port)
    pair.confirm(1.0)
    pair.fabric.tick(5.0)
    assert [pair.fabric.topology.role(port) for port in (HOST1, LINK2)] == [
        PortRole.HOST,
        PortRole.UNDECIDED,
    ]
    pair.come(2, 6.0)
    pair.answer()
    pair.fabric.tick(6.0 + 2 * SETTLE)
    assert pair.fabric.topology.role(LINK2) is PortRole.UNDECIDED
    pair.sweep()
    pair.confirm(6.0 + 2 * SETTLE)
    pair.fabric.tick(6.0 + 2 * SETTLE)
    assert pair.fabric.topology.role(LINK2) is PortRole.HOST


def test_frames_sent_before_a_port_was_up_do_not_count_for_it(pair):
    pair.answer()
    role = pair.fabric.topology.role
    pair.fabric.port_changed(1, PortState(2, False, "s1-eth2"), 0.1)
    for port in (HOST1, LINK2, HOST2):
        pair.fabric.discovery_frame_sent(port)
    pair.fabric.port_changed(1, PortState(2, True, "s1-eth2"), 0.2)
    pair.confirm(0.3)
    pair.fabric.tick(2 * SETTLE)
    assert pair.roles() == {PortRole.UNDECIDED}, "it has sent none"
    pair.fabric.discovery_frame_sent(LINK1)
    pair.confirm(2 * SETTLE)
    pair.fabric.tick(2 * SETTLE)
    assert role(HOST1) is role(LINK2) is PortRole.HOST, "it does not delay the others"
    assert role(LINK1) is PortRole.UNDECIDED, "frames to it were sent before"
    pair.sweep()
    pair.confirm(2 * SETTLE)
    pair.fabric.tick(2 * SETTLE)
    assert role(LINK1) is PortRole.HOST


def test_one_confirmation_runs_at_a_time(pair):
    pair.answer()
    waiting = len(pair.fabric.barriers)
    for tick in range(100):
        pair.sweep()
        pair.fabric.tick(tick / 20)
    assert len(pair.fabric.barriers) == waiting + 1


def test_a_connection_whose_host_has_moved_is_not_pinned_to_where_it_was(pair):
    fabric, key = pair.fabric, FlowKey("10.0.0.1", "10.0.0.2", 40000, 80)
    for port, number in ((HOST1, 1), (HOST2, 2)):
        frame = Frame(f"02:00:00:00:00:0{number}", BROADCAST, (), f"10.0.0.{number}")
        fabric.host_seen(pair.bridges[port.dpid], frame, port, 0.1)
    fabric.link_seen(LINK1, LINK2, 0.1)
    fabric.link_seen(LINK2, LINK1, 0.1)
    fabric.refresh()
    assert not fabric.assign_path(key, HOST1, "02:00:00:00:00:02").pinned
    moved = key._replace(sport=40001)
    fabric.assign_path(moved, HOST1, "02:00:00:00:00:02")
    for dpid in (1, 2):
        for number in (3, 4):
            fabric.port_changed(dpid, PortState(number, True, f"s{dpid}-eth{number}"), 0.2)
    fabric.hosts.seen("02:00:00:00:00:02", PortKey(2, 4), "10.0.0.2")
    fabric.link_seen(PortKey(1, 3), PortKey(2, 3), 0.1)
    fabric.link_seen(PortKey(2, 3), PortKey(1, 3), 0.1)
    fabric.refresh()
    assert fabric.paths.get(key) is None and fabric.paths.pinned == 0


def test_where_a_host_was_it_is_not_known_any_more(pair):
    """Otherwise its frames would not be copied there when it comes back."""
    host = Frame("02:00:00:00:00:01", BROADCAST, (), "10.0.0.1")
    pair.fabric.host_seen(pair.bridges[1], host, HOST1, 0.1)
    pair.fabric.topology.decide(100.0)
    pair.fabric.port_changed(1, PortState(1, False, "s1-eth1"), 0.2)
    pair.log.clear()
    pair.fabric.host_seen(pair.bridges[2], host, HOST2, 0.3)
    assert pair.fabric.hosts.by_mac(host.src).port == HOST2
    removed = [dpid for dpid, each in pair.log if getattr(each, "command", None) == ofp.OFPFC_DELETE]
    assert 1 in removed


def test_a_barrier_reply_counts_while_other_requests_are_being_sent(pair):
    done = []
    second = pair.bridges[2]
    send = second.send_msg

    def slow(message):
        pair.answer(1)  # sending has yielded to another greenlet
        send(message)

    second.send_msg = slow
    pair.fabric.after_barriers([pair.bridges[1], second], lambda: done.append(1), math.inf)
    pair.answer(2)
    assert done == [1]


def test_a_disconnected_bridge_is_not_waited_for(pair):
    pair.answer()
    pair.sweep()
    pair.fabric.tick(1.0)
    pair.answer(1)
    pair.fabric.bridge_disconnected(pair.bridges[2])
    pair.answer(1)
    pair.fabric.tick(SETTLE)
    assert [pair.fabric.topology.role(port) for port in (HOST1, LINK1)] == [PortRole.HOST] * 2


def test_a_bridge_that_does_not_answer_only_delays(pair):
    pair.fabric.tick(10.9 * SETTLE)
    assert pair.roles() == {PortRole.UNDECIDED}
    pair.fabric.tick(11 * SETTLE)
    assert pair.roles() == {PortRole.HOST}


def test_a_frame_of_a_host_known_elsewhere_does_not_decide_a_port(pair):
    """It may have been flooded over a link that is not discovered yet."""
    fabric, mac = pair.fabric, "02:00:00:00:00:01"
    fabric.host_seen(pair.bridges[1], Frame(mac, BROADCAST, ()), HOST1, 0.1)
    assert fabric.topology.role(HOST1) is PortRole.HOST
    fabric.host_seen(pair.bridges[2], Frame(mac, BROADCAST, ()), LINK2, 0.2)
    assert fabric.topology.role(LINK2) is PortRole.UNDECIDED
    assert fabric.hosts.by_mac(mac).port == HOST1
    other = "02:00:00:00:00:02"
    fabric.host_seen(pair.bridges[2], Frame(other, BROADCAST, ()), LINK2, 0.3)
    assert fabric.topology.role(LINK2) is PortRole.HOST and fabric.hosts.by_mac(other).port == LINK2
    fabric.host_seen(pair.bridges[2], Frame(mac, BROADCAST, ()), LINK2, 0.4)
    assert fabric.hosts.by_mac(mac).port == HOST1, "it is not decided yet"
    # The host has moved there: this counts once it is known that the port is no link.
    pair.answer()
    pair.sweep()
    pair.confirm(1.0)
    pair.fabric.tick(2.0)
    fabric.host_seen(pair.bridges[2], Frame(mac, BROADCAST, ()), LINK2, 2.1)
    assert fabric.hosts.by_mac(mac).port == LINK2


def test_floods_are_extended_only_after_all_bridges_have_reduced_theirs(pair):
    fabric = pair.fabric
    for port, number in ((HOST1, 1), (HOST2, 2)):
        fabric.host_seen(
            pair.bridges[port.dpid], Frame(f"02:00:00:00:00:0{number}", BROADCAST, ()), port, 0.1
        )
    fabric.link_seen(LINK1, LINK2, 0.1)
    fabric.link_seen(LINK2, LINK1, 0.1)
    fabric.refresh()
    pair.log.clear()
    fabric.topology.link_lost(LINK1, LINK2)
    fabric.refresh()
    pair.answer()
    fabric.link_seen(LINK1, LINK2, 0.1)
    pair.log.clear()
    fabric.refresh()
    pair.log.clear()
    fabric.tick(1000.0)
    fabric.host_seen(pair.bridges[1], Frame("02:00:00:00:00:09", BROADCAST, ()), HOST1, 1000.0)
    fabric.topology.version += 1  # another change meanwhile, which affects no flood
    fabric.refresh()
    assert floods(pair) == 0
    pair.log[:] = [each for each in pair.log if type(each[1]).__name__ == "OFPBarrierRequest"]
    pair.answer(1)
    fabric.tick(2000.0)
    pair.answer(1)
    assert floods(pair) == 0
    pair.answer(2)
    assert floods(pair) == 0  # the rules of the known hosts are sent first
    pair.answer()
    assert floods(pair) == 2


def link_twice(pair):
    """Two links between the bridges, and all their rules are confirmed."""
    for dpid in (1, 2):
        pair.fabric.port_changed(dpid, PortState(3, True, f"s{dpid}-eth3"), 0.0)
    for source, target in ((LINK1, LINK2), (PortKey(1, 3), PortKey(2, 3))):
        pair.fabric.link_seen(source, target, 0.1)
        pair.fabric.link_seen(target, source, 0.1)
    pair.fabric.refresh()
    for _ in range(3):
        pair.answer()


@pytest.mark.parametrize("confirms", [False, True])
def test_a_host_counts_as_known_only_when_every_bridge_has_confirmed_it(pair, confirms):
    """However long that takes: until then the first step of a change leaves its rules as they are."""
    fabric, mac = pair.fabric, "02:00:00:00:00:02"
    link_twice(pair)
    fabric.host_seen(pair.bridges[2], Frame(mac, BROADCAST, ()), HOST2, 0.1)
    fabric.tick(0.2)
    pair.answer(1)
    if confirms:
        pair.answer(2)
    fabric.barriers.expire(time.monotonic() + 1000.0)
    fabric.topology.link_lost(LINK1, LINK2)
    pair.log.clear()
    fabric.refresh()
    changed = [dpid for dpid, each in pair.log if getattr(each, "match", {}).get("eth_dst") == mac]
    assert bool(changed) == confirms


@pytest.mark.parametrize("answers", [True, False])
def test_hosts_are_delivered_to_when_a_slow_bridge_has_reduced_its_floods_or_one_has_failed(pair, answers):
    """It still floods along the old tree what others forward along the new one: a frame would come twice."""
    fabric, mac = pair.fabric, "02:00:00:00:00:02"
    link_twice(pair)
    fabric.topology.link_lost(LINK1, LINK2)
    pair.log.clear()
    changed = time.monotonic()
    fabric.refresh()
    fabric.host_seen(pair.bridges[2], Frame(mac, BROADCAST, ()), HOST2, 0.1)
    pair.answer(1)
    fabric.barriers.expire(changed + SILENT_TIME - 0.1)
    assert not deliveries(pair, mac)
    if answers:
        pair.answer(2)
    else:
        fabric.barriers.expire(changed + SILENT_TIME + 60)
    assert deliveries(pair, mac) == [1, 2]


def deliveries(pair, mac):
    """The bridges that were sent a rule for frames to a host."""
    return sorted({dpid for dpid, each in pair.log if getattr(each, "match", {}).get("eth_dst") == mac})


def floods(pair):
    """The number of rules for flooding that were sent to bridges."""
    flow_mods = [message for _, message in pair.log if type(message).__name__ == "OFPFlowMod"]
    return sum(message.table_id == pipeline.DESTINATION and message.priority < 2 for message in flow_mods)

"""Discovery frames: who sends them when, and which frames count."""

from __future__ import annotations

import logging

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths import link_discovery
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.control.reports.counters import DISCOVERY_IGNORED
from fairq_ryu.fabric.topology.graph import PortRole, Sight
from fairq_ryu.model import PortKey
from fairq_ryu.packet import lldp
from fairq_ryu.packet.parse import Frame
from tests.support.fakes import FakeSwitch

HOST1, LINK1, LINK2, HOST2 = (PortKey(dpid, port) for dpid in (1, 2) for port in (1, 2))
HOST_FRAME = Frame("02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff", ())


class Pair:
    """Two bridges, each with a host and a link to the other; the test carries the frames."""

    def __init__(self, ports: int = 2) -> None:
        self.log: list = []
        self.fabric = FabricController(Config(), logging.getLogger(__name__))
        self.bridges = {dpid: FakeSwitch(dpid, self.log) for dpid in (1, 2)}
        for dpid, bridge in self.bridges.items():
            described = [PortState(number, True, f"s{dpid}-eth{number}") for number in range(1, ports + 1)]
            self.fabric.bridge_connected(bridge, described, [], 0.0)

    def answer_barriers(self, *dpids: int) -> None:
        for dpid, message in list(self.log):
            if dpid in (dpids or (1, 2)) and type(message).__name__ == "OFPBarrierRequest":
                self.fabric.barriers.answered((dpid, message.xid))

    def sent(self, now: float) -> dict[PortKey, bytes]:
        """The discovery frames that leave at this time, by port."""
        self.log.clear()
        self.fabric.discover(now)
        outs = [(dpid, each) for dpid, each in self.log if lldp.parse(bytes(each.data)) is not None]
        return {PortKey(dpid, each.actions[0].port): bytes(each.data) for dpid, each in outs}

    def arrives(self, data: bytes, at: PortKey, now: float) -> None:
        self.fabric.discovery_frame(data, at, now)

    @property
    def ignored(self) -> dict[str, int]:
        return {reason: count for reason, count in self.fabric.discovery.ignored.items() if count}

    @property
    def links(self) -> list[tuple[PortKey, PortKey]]:
        return list(self.fabric.topology.links())


@pytest.fixture
def pair():
    made = Pair()
    made.answer_barriers()
    return made


def test_only_bridges_with_rules_send_frames():
    pair = Pair()
    pair.answer_barriers(1)
    requests = list(pair.log)
    assert pair.sent(0.1).keys() == {HOST1, LINK1}
    pair.log[:] = requests
    pair.answer_barriers(2)
    assert pair.sent(0.2).keys() == {LINK2, HOST2}


def test_every_port_sends_in_each_period_and_more_often_while_a_role_is_not_known(pair):
    everybody = {HOST1, LINK1, LINK2, HOST2}
    assert pair.sent(0.1).keys() == everybody
    assert pair.sent(0.3) == {}
    assert pair.sent(0.55).keys() == everybody
    for port in everybody:
        pair.fabric.topology.frame_seen(port, 0.6)
    pair.fabric.topology.decide(1000.0)
    assert pair.sent(1.4) == {}
    assert pair.sent(1.5).keys() == everybody


def test_a_port_that_comes_up_sends_at_once(pair):
    pair.sent(0.1)
    pair.fabric.port_changed(1, PortState(2, False, "s1-eth2"), 0.2)
    assert pair.sent(0.6).keys() == {HOST1, LINK2, HOST2}
    pair.fabric.port_changed(1, PortState(2, True, "s1-eth2"), 0.7)
    assert pair.sent(0.75).keys() == {LINK1}


def test_many_ports_send_in_turns():
    pair = Pair(ports=300)
    pair.answer_barriers()
    turns = [pair.sent(0.05 * turn) for turn in range(15)]
    assert {len(turn) for turn in turns} == {40}
    assert len(set().union(*turns)) == 600
    assert pair.fabric.topology.period == 600 * link_discovery.INTERVAL / 20


def test_frames_make_a_link_when_they_have_come_both_ways(pair):
    frames = pair.sent(0.1)
    pair.arrives(frames[LINK1], LINK2, 0.1)
    assert pair.links == []
    pair.arrives(frames[LINK2], LINK1, 0.1)
    assert pair.links == [(LINK1, LINK2)] and pair.ignored == {}


def test_a_forged_frame_changes_nothing(pair):
    forged = lldp.build(lldp.DiscoveryFrame(1, 2, 0, bytes(16)))
    altered = bytearray(pair.sent(0.1)[LINK1])
    altered[62] ^= 1  # the time slot
    before = pair.fabric.topology.version
    for data in (forged, bytes(altered), forged[:-1], b"\x01\x80\xc2\0\0\x0e" + bytes(6) + b"\x88\xcc"):
        pair.arrives(data, LINK2, 0.2)
    assert pair.ignored == {"foreign": 2, "tag": 2}
    assert pair.fabric.topology.version == before


def test_a_frame_that_is_kept_is_too_old(pair):
    frames = pair.sent(0.1)
    pair.arrives(frames[LINK1], LINK2, 10.0)
    assert pair.ignored == {"tag": 1} and pair.fabric.topology.role(LINK2) is PortRole.UNDECIDED


def test_a_fresh_frame_that_a_host_replays_cuts_no_host_off(pair, caplog):
    pair.sent(0.1)
    later = 0.1 + pair.fabric.topology.settle + 0.1
    pair.fabric.host_seen(pair.bridges[1], HOST_FRAME, HOST1, later)
    frames = pair.sent(later + 1)
    for _ in range(2):
        pair.arrives(frames[HOST2], HOST1, later + 1)
    assert pair.fabric.topology.role(HOST1) is PortRole.HOST
    assert pair.fabric.hosts.by_mac(HOST_FRAME.src).port == HOST1
    assert pair.ignored == {"hosts": 2}
    assert caplog.text.count("one of these ports has hosts") == 1  # once a minute


def test_hosts_that_a_new_bridge_forwarded_itself_do_not_keep_its_link_away(pair):
    """A frame of a host behind the second bridge passed it before it had its rules, and arrived late."""
    pair.fabric.host_seen(pair.bridges[1], HOST_FRAME, LINK1, 0.1)
    frames = pair.sent(0.2)
    pair.arrives(frames[LINK1], LINK2, 0.2)
    pair.arrives(frames[LINK2], LINK1, 0.2)
    assert pair.links == [(LINK1, LINK2)] and pair.ignored == {}


def test_a_frame_that_comes_back_makes_no_link(pair):
    frames = pair.sent(0.1)
    pair.arrives(frames[HOST1], HOST1, 0.1)
    assert pair.fabric.topology.role(HOST1) is PortRole.UNDECIDED and pair.ignored == {"reflected": 1}


def test_each_controller_has_its_own_key(pair):
    other = Pair()
    other.answer_barriers()
    pair.arrives(other.sent(0.1)[LINK1], LINK2, 0.1)
    assert pair.ignored == {"tag": 1}


def test_a_starved_controller_loses_no_link(pair):
    frames = pair.sent(0.1)
    pair.arrives(frames[LINK1], LINK2, 0.1)
    pair.arrives(frames[LINK2], LINK1, 0.1)
    for turn in range(400):
        pair.fabric.tick(0.25 * turn)
    assert pair.links == [(LINK1, LINK2)]


def test_every_reason_is_counted():
    shown = {str(each) for each in Sight} - {Sight.NEW, Sight.KNOWN}
    assert {*DISCOVERY_IGNORED} == {"foreign", "tag"} | shown


def test_the_ports_are_looked_for_only_when_the_network_has_changed(pair, monkeypatch):
    looked, ports_up = [], pair.fabric.topology.ports_up
    monkeypatch.setattr(pair.fabric.topology, "ports_up", lambda: looked.append(1) or ports_up())
    assert len(pair.sent(0.1)) == 4
    assert len(looked) == 1
    for now in (0.2, 0.55, 0.6):
        pair.sent(now)
    assert len(looked) == 1
    pair.fabric.topology.port_changed(HOST1, False, 0.7)
    assert pair.sent(1.0).keys() == {LINK1, LINK2, HOST2} and len(looked) == 2
    pair.fabric.topology.port_changed(HOST1, True, 1.1)
    assert pair.sent(1.15).keys() == {HOST1}  # a new port sends at once
    pair.fabric.bridge_disconnected(pair.bridges[2])
    assert pair.sent(2.0).keys() == {HOST1, LINK1}


def test_the_ports_that_have_waited_longest_send_first():
    pair = Pair(ports=30)
    pair.answer_barriers()
    first = pair.sent(0.1)
    second = pair.sent(0.15)
    assert len(first) == 40 and len(second) == 20 and not first.keys() & second.keys()
    assert pair.sent(0.2) == {}
    assert pair.sent(0.51).keys() == first.keys()

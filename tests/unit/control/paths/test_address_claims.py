"""Claims to addresses of live hosts: what the controller asks, learns and forwards meanwhile."""

from __future__ import annotations

import logging

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.fabric.topology.claims import QUESTIONS
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import addresses, build, parse
from fairq_ryu.packet.headers import ARP_REPLY, ARP_REQUEST, mac_bytes
from tests.support.fakes import FakeSwitch

VICTIM, LIAR, OTHER = (PortKey(1, number) for number in (1, 2, 3))
VICTIM_IP, LIAR_IP, OTHER_IP = "10.0.0.1", "10.0.0.2", "10.0.0.3"
BROADCAST = b"\xff" * 6


def mac(port: PortKey) -> str:
    return f"02:00:00:00:00:{port.port:02x}"


def arp(
    source: str,
    ip: str,
    wanted: str,
    operation: int = ARP_REQUEST,
    dst: bytes = BROADCAST,
    sender: str | None = None,
) -> bytes:
    """An ARP frame from a MAC address, which has an IP address and wants another. ``sender``: the MAC address
    in the message, if it is another one.
    """
    message = mac_bytes(sender or source), addresses.packed(ip)
    data = build.arp_frame(operation, message, (bytes(6), addresses.packed(wanted)), dst)
    return data[:6] + mac_bytes(source) + data[12:]


class Network:
    """A bridge with three hosts that are known."""

    def __init__(self) -> None:
        self.fabric = FabricController(Config(), logging.getLogger(__name__))
        self.bridge = FakeSwitch(1)
        ports = [PortState(number, True, f"s1-eth{number}") for number in (1, 2, 3)]
        self.fabric.bridge_connected(self.bridge, ports, [], 0.0)
        for port, ip in ((VICTIM, VICTIM_IP), (LIAR, LIAR_IP), (OTHER, OTHER_IP)):
            self.comes(arp(mac(port), ip, "10.0.0.99"), port, 1.0)
        self.fabric.topology.decide(1000.0)
        self.bridge.log.clear()

    def comes(self, data: bytes, port: PortKey, now: float) -> list[tuple[bytes, list[int]]]:
        """A broadcast ARP frame comes in. Returns the frames that the controller sends, with their ports."""
        frame = parse.parse(data)
        assert frame is not None
        self.fabric.host_seen(self.bridge, frame, port, now)
        self.fabric.answer_arp(self.bridge, frame, port, data, now)
        return self.sent()

    def wait(self, now: float, replies: bool = True) -> list[tuple[bytes, list[int]]]:
        """The controller decides at a time, twice; between both the bridge replies to barriers."""
        self.fabric.decide_claims(now)
        barriers = [each.xid for each in self.bridge.sent if type(each).__name__ == "OFPBarrierRequest"]
        for xid in barriers if replies else ():
            self.fabric.barriers.answered((self.bridge.id, xid))
        self.fabric.decide_claims(now)
        return self.sent()

    def wait_long(self, since: float, replies: bool = True) -> list[tuple[bytes, list[int]]]:
        """Wait until a claim is decided. Returns the last frames that were sent."""
        for turn in range(1, QUESTIONS):
            self.wait(since + 0.3 * turn)
        return self.wait(since + 4, replies)

    def sent(self) -> list[tuple[bytes, list[int]]]:
        outs = [each for each in self.bridge.sent if type(each).__name__ == "OFPPacketOut"]
        self.bridge.log.clear()
        return [(bytes(each.data), [action.port for action in each.actions]) for each in outs]

    def at(self, ip: str) -> PortKey | None:
        host = self.fabric.hosts.by_ip(ip)
        return None if host is None else host.port

    def answer(self, now: float, port: PortKey = VICTIM, source: str = mac(VICTIM)) -> None:
        reply = arp(source, VICTIM_IP, "0.0.0.0", ARP_REPLY, dst=mac_bytes(pipeline.PROBE_MAC))
        assert self.comes(reply, port, now) == []

    @property
    def outcomes(self) -> dict[str, int]:
        return {outcome: count for outcome, count in self.fabric.claims.outcomes.items() if count}


@pytest.fixture
def network():
    return Network()


# Who has the address of the victim? The liar says that it does.
CLAIM = arp(mac(LIAR), VICTIM_IP, VICTIM_IP)


def test_the_holder_is_asked_and_nobody_else_learns_of_the_claim(network):
    ((question, ports),) = network.comes(CLAIM, LIAR, 2.0)
    assert ports == [VICTIM.port]
    frame = parse.parse(question)
    assert frame is not None and frame.arp is not None
    assert (frame.dst, frame.arp.sender_mac) == (mac(VICTIM), pipeline.PROBE_MAC)
    assert (frame.arp.sender_ip, frame.arp.target_ip) == ("0.0.0.0", VICTIM_IP)
    assert network.at(VICTIM_IP) == VICTIM


def test_a_holder_that_answers_keeps_its_address(network):
    network.comes(CLAIM, LIAR, 2.0)
    network.answer(2.1)
    assert network.wait(2.5) == [] and network.at(VICTIM_IP) == VICTIM
    for turn in range(100):  # a flood of claims: no questions, and no frames to others
        assert network.comes(CLAIM, LIAR, 2.5 + turn / 1000) == []
    assert network.outcomes == {"refused": 1}


def test_a_holder_that_is_silent_loses_it_and_the_frame_goes_on(network):
    network.comes(CLAIM, LIAR, 2.0)
    assert [len(network.wait(2.0 + 0.3 * turn)) for turn in range(1, QUESTIONS + 1)] == [1] * 9 + [0]
    assert network.wait(6.0) == [(CLAIM, [VICTIM.port, OTHER.port])]
    assert network.at(VICTIM_IP) == LIAR and network.outcomes == {"believed": 1}


def test_an_answer_that_the_bridge_has_sent_and_nobody_has_read_refutes_a_claim(network):
    """The controller had no processor, or reads what a flood has put in front of the answer."""
    network.comes(CLAIM, LIAR, 2.0)
    assert network.wait_long(2.0, replies=False) == [] and network.wait(9.0, replies=False) == []
    network.answer(9.1)
    assert network.wait(9.5) == [] and network.at(VICTIM_IP) == VICTIM
    assert network.outcomes == {"refused": 1}


def test_a_claim_about_a_host_of_a_bridge_that_has_gone_is_believed(network):
    network.comes(CLAIM, LIAR, 2.0)
    network.wait_long(2.0, replies=False)
    network.fabric.bridge_disconnected(network.bridge)
    network.fabric.decide_claims(7.0)
    assert network.outcomes == {"believed": 1}


@pytest.mark.parametrize(("port", "source"), [(LIAR, mac(VICTIM)), (VICTIM, mac(LIAR)), (OTHER, mac(OTHER))])
def test_nobody_else_can_answer_for_it(network, port, source):
    network.comes(CLAIM, LIAR, 2.0)
    network.comes(arp(source, VICTIM_IP, "0.0.0.0", ARP_REPLY, dst=mac_bytes(pipeline.PROBE_MAC)), port, 2.1)
    assert network.outcomes == {}


def test_arp_of_others_is_answered_meanwhile(network):
    network.comes(CLAIM, LIAR, 2.0)
    ((reply, ports),) = network.comes(arp(mac(OTHER), OTHER_IP, VICTIM_IP), OTHER, 2.01)
    frame = parse.parse(reply)
    assert ports == [OTHER.port] and frame is not None and frame.arp is not None
    assert frame.arp.sender_mac == mac(VICTIM)


def test_a_mac_address_at_another_port_is_a_claim_too(network):
    spoofed = arp(mac(VICTIM), VICTIM_IP, OTHER_IP)
    network.comes(spoofed, LIAR, 2.0)
    assert network.fabric.hosts.by_mac(mac(VICTIM)).port == VICTIM
    network.answer(2.1)
    network.wait(2.5)
    assert network.fabric.hosts.by_mac(mac(VICTIM)).port == VICTIM
    network.wait(3.5)
    network.comes(spoofed, LIAR, 4.0)
    network.wait_long(4.0)
    assert network.fabric.hosts.by_mac(mac(VICTIM)).port == LIAR  # it has moved


def test_a_host_whose_port_is_down_has_moved_at_once(network):
    network.fabric.refresh()
    own, others = FlowKey(OTHER_IP, VICTIM_IP, 1, 2), FlowKey(OTHER_IP, LIAR_IP, 1, 2)
    assert network.fabric.assign_path(own, OTHER, mac(VICTIM))
    assert network.fabric.assign_path(others, OTHER, mac(LIAR))
    network.fabric.port_changed(1, PortState(VICTIM.port, False, ""), 2.0)
    network.comes(arp(mac(VICTIM), VICTIM_IP, OTHER_IP), LIAR, 2.1)
    assert network.fabric.hosts.by_mac(mac(VICTIM)).port == LIAR and network.outcomes == {}
    assert network.fabric.paths.get(own) is None, "its connections do not end there any more"
    assert network.fabric.paths.get(others) is not None


def test_an_address_without_a_live_holder_is_believed_at_once(network):
    network.fabric.port_changed(1, PortState(VICTIM.port, False, ""), 2.0)
    network.comes(CLAIM, LIAR, 2.1)
    assert network.at(VICTIM_IP) == LIAR


def test_arp_that_contradicts_its_frame_goes_to_nobody(network):
    """The Ethernet source is that of the holder, and the ARP message names another MAC address."""
    poison = arp(mac(VICTIM), VICTIM_IP, OTHER_IP, sender=mac(LIAR))
    assert network.comes(poison, VICTIM, 2.0) == []


def test_a_source_address_of_ip_is_a_claim(network):
    frame = parse.Frame(mac(LIAR), "ff:ff:ff:ff:ff:ff", (), VICTIM_IP)
    network.fabric.host_seen(network.bridge, frame, LIAR, 2.0)
    assert len(network.sent()) == 1 and network.at(VICTIM_IP) == VICTIM

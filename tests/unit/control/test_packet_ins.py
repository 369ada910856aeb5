"""Packet-ins are counted by the rule that they come from, and handed to the part that they concern."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.channel import dropped_packet, oxm
from fairq_ryu.control.agent_messages import AgentMessages
from fairq_ryu.control.counters import PACKET_INS, Counts
from fairq_ryu.control.packet_ins import KINDS, PacketIns
from fairq_ryu.openflow import pipeline
from tests.unit.site import Site

ETHERNET = bytes.fromhex("ffffffffffff020000000001")
ARP = ETHERNET + bytes.fromhex("0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002")
LLDP = ETHERNET + bytes.fromhex("88cc") + bytes(46)
LOG = logging.getLogger(__name__)


class Parts:
    """Parts of the controller that take what packet-ins carry, and do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Made:
    """Packet-ins of bridge 1 and its agent."""

    def __init__(self) -> None:
        site, nothing, self.counts = Site(), Parts(), Counts()
        site.fabric.host_seen = site.fabric.answer_arp = site.windows.packet_dropped = nothing.take
        self.agent, self.bridge = site.agent, site.bridge
        messages = AgentMessages(site.windows, nothing.recorded, self.counts, LOG)
        self.packet_ins = PacketIns(
            site.fabric, nothing, nothing, messages, nothing, nothing, self.counts, LOG
        )


@pytest.fixture
def made() -> Made:
    return Made()


def came(made: Made, data: bytes, cookie: int, datapath: Any = None) -> dict[str, int]:
    """A packet-in; returns what was counted."""
    message = SimpleNamespace(
        datapath=datapath or made.bridge, data=data, cookie=cookie, match={"in_port": 3}, total_len=len(data)
    )
    made.packet_ins.packet_in(SimpleNamespace(msg=message))
    return {kind: count for kind, count in made.counts.packet_ins.items() if count}


@pytest.mark.parametrize(
    ("data", "cookie", "kind"),
    [
        (ARP, pipeline.COOKIE_ARP, "arp"),
        (ARP, pipeline.COOKIE_SOURCE, "source"),
        (ARP, pipeline.COOKIE_TCP, "tcp"),
        (ARP, pipeline.COOKIE_HELD, "held"),
        (LLDP, 0, "lldp"),
        (ARP, 0xBEEF, "other"),
        (b"\0" * 5, pipeline.COOKIE_TCP, "other"),  # what cannot be read
    ],
)
def test_packets_are_counted_by_the_rule_that_sent_them(made, data, cookie, kind):
    assert came(made, data, cookie) == {kind: 1}


def test_what_agents_hand_over_is_a_loss_and_what_strangers_send_is_not(made):
    assert came(made, ARP, dropped_packet.COOKIE_DROPPED, made.agent) == {"loss": 1}
    assert came(made, ARP, 7, made.agent) == {"loss": 1, "other": 1}
    stranger = SimpleNamespace(id=oxm.agent_dpid(1))  # an older connection of the same agent
    assert came(made, ARP, dropped_packet.COOKIE_DROPPED, stranger) == {"loss": 1, "other": 2}


def test_kinds_are_the_ones_that_are_told():
    assert tuple(Counts().packet_ins) == PACKET_INS
    assert set(KINDS.values()) | {"lldp", "loss", "other"} == set(PACKET_INS)

"""Uplinks in the controller: who has which part, when it is sent, and what is kept for those that are
away.
"""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import pytest

from fairq_ryu.channel import far_queues, oxm
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.far_queues import RateLease
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.uplink_shares import UplinkShares
from fairq_ryu.far_queue import FAR
from fairq_ryu.uplink import FLOOR, Member, Uplink
from tests.support.fakes import FakeSwitch

RATE, LEASE = 1_200_000_000, 2
UPLINK = Uplink("rack1", tuple(Member(f"br{number}", "eth0") for number in (1, 2, 3)), RATE)
EQUAL = RATE // 3
FLOOR_OF_THREE = int(FLOOR * EQUAL)


class Rack:
    """Three agents, each with eth0 as port 1 and its far queue."""

    def __init__(self, *uplinks: Uplink) -> None:
        self.links: dict[int, AgentLink] = {}
        self.shares = UplinkShares(uplinks or (UPLINK,), self.links, LEASE)
        for dpid in (1, 2, 3):
            self.connect(dpid)

    def connect(self, dpid: int, bridge: str = "", active: int = 0) -> None:
        link = AgentLink(FakeSwitch(oxm.agent_dpid(dpid)), Description(bridge or f"br{dpid}"))
        link.ports[1].name, link.ports[FAR | 1].name = "eth0", "eth0@far"
        self.links[dpid] = link
        self.flows(dpid, active)

    def flows(self, dpid: int, active: int) -> None:
        depth = QueueDepth(FAR | 1, active, 0, 0, 10**6, EQUAL, 0, 0, 1)
        self.links[dpid].ports[FAR | 1].depth = depth

    def tick(self, now: float) -> dict[int, RateLease]:
        """The leases that are sent, by bridge."""
        for link in self.links.values():
            link.datapath.log.clear()
        self.shares.tick(now)
        return {
            dpid: lease_of(message) for dpid, link in self.links.items() for message in link.datapath.sent
        }

    def parts(self, *times: float) -> dict[int, int | None]:
        for now in times:
            self.tick(now)
        return {dpid: self.shares.leased(dpid, "eth0") for dpid in (1, 2, 3)}


def lease_of(message: Any) -> RateLease:
    assert message.exp_type == far_queues.EXP_TYPE_LEASE_FAR_RATES
    return far_queues.decode_lease(message.data)


def total(parts: dict[int, int | None]) -> int:
    return sum(part or 0 for part in parts.values())


LONG = [number / 4 for number in range(1, 200)]


def test_each_has_an_equal_part_while_nobody_sends():
    assert Rack().tick(0.0) == {dpid: RateLease(LEASE, {"eth0": EQUAL}) for dpid in (1, 2, 3)}


def test_active_flows_decide_and_the_sum_is_always_the_rate():
    rack = Rack()
    rack.flows(1, 30)
    rack.flows(2, 10)
    for now in LONG:
        assert total(rack.parts(now)) == RATE
    first, second, third = (part or 0 for part in rack.parts(100.0).values())
    assert first > EQUAL > second > third >= FLOOR_OF_THREE


def test_small_moves_are_not_leased():
    rack = Rack()
    rack.flows(1, 30)
    parts, sent = [rack.parts(now) for now in LONG], 0
    for one, other in pairwise(parts):
        moved = [abs((other[dpid] or 0) - (one[dpid] or 0)) for dpid in parts[0]]
        assert max(moved) == 0 or max(moved) > 0.05 * EQUAL
        sent += max(moved) > 0
    assert 0 < sent < 10
    goal = RATE - 2 * FLOOR_OF_THREE
    assert abs((parts[-1][1] or 0) - goal) <= 0.06 * EQUAL


def test_a_lease_is_renewed_though_nothing_changes():
    rack = Rack()
    assert len(rack.tick(0.0)) == 3
    assert rack.tick(0.25) == rack.tick(0.5) == rack.tick(0.75) == {}
    assert len(rack.tick(1.0)) == 3


def test_for_those_that_are_away_an_equal_part_is_kept():
    """Without the controller that is what they have."""
    rack = Rack()
    del rack.links[3]
    rack.flows(1, 10)
    parts = rack.parts(*LONG)
    assert parts[3] is None and total(parts) == RATE - EQUAL


def test_until_its_lease_ends_an_agent_that_has_gone_has_what_it_was_leased():
    rack = Rack()
    rack.flows(3, 10)
    leased = rack.parts(*LONG)[3] or 0
    sent = LONG[-1]
    del rack.links[3]
    rack.tick(sent + 0.25)
    assert total(rack.parts(sent + 0.5)) == max(RATE - leased, 2 * FLOOR_OF_THREE)
    assert total(rack.parts(sent + LEASE)) == RATE - EQUAL
    rack.connect(3)
    back = rack.parts(sent + LEASE + 0.25)
    assert back[3] is not None and total(back) == RATE


def test_a_new_connection_is_told_at_once():
    rack = Rack()
    rack.tick(0.0)
    rack.connect(2)
    assert rack.shares.leased(2, "eth0") is None
    assert list(rack.tick(0.25)) == [2]


def test_a_far_queue_that_was_not_read_yet_is_not_there():
    rack = Rack()
    rack.links[2].ports[FAR | 1].depth = None
    assert set(rack.tick(0.0)) == {1, 3}


def test_bridges_with_the_same_name_are_told_apart_by_dpid(caplog: pytest.LogCaptureFixture):
    rack = Rack()
    rack.connect(4, "br2")
    with caplog.at_level(logging.WARNING):
        assert set(rack.tick(0.0)) == {1, 3}
        rack.tick(0.25)
    assert [record.getMessage() for record in caplog.records] == [
        "uplink port br2/eth0: several bridges have this name: write the dpid of the one meant"
    ]
    named = Rack(Uplink("rack1", (Member("br1", "eth0"), Member("4", "eth0")), RATE))
    named.connect(4, "br1")
    assert set(named.tick(0.0)) == {4}, "the other member is doubtful"


def test_two_uplinks_of_one_bridge_are_in_one_lease():
    rack = Rack(
        Uplink("a", (Member("br1", "eth0"), Member("br2", "eth0")), RATE),
        Uplink("b", (Member("br1", "eth1"), Member("br3", "eth0")), RATE),
    )
    link = rack.links[1]
    link.ports[2].name, link.ports[FAR | 2].name = "eth1", "eth1@far"
    link.ports[FAR | 2].depth = QueueDepth(FAR | 2, 0, 0, 0, 10**6, EQUAL, 0, 0, 1)
    assert rack.tick(0.0)[1] == RateLease(LEASE, {"eth0": RATE // 2, "eth1": RATE // 2})
    assert [rack.shares.uplink_of(link, port) for port in ("eth0", "eth1", "eth2")] == ["a", "b", None]


def test_without_uplinks_nothing_is_sent():
    rack = Rack()
    rack.shares = UplinkShares((), rack.links, LEASE)
    assert rack.tick(0.0) == {}

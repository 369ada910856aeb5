"""Agents are asked for copies of segments where their bridges send none, and only there."""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.segment_copies import COOKIE_COPY
from fairq_ryu.control.agents.agent_copies import LEASE, AgentCopies
from fairq_ryu.control.sender import Sender
from tests.support.agent_link import agent_link

ASKED, WITHDRAWN = "asked", "withdrawn"


class Made:
    """An agent; its bridge is connected when it is in ``bridges``."""

    def __init__(self) -> None:
        self.link = agent_link()
        self.bridges: dict[int, Any] = {}
        self.links = {self.link.dpid: self.link}
        self.copies = AgentCopies(self.bridges, self.links)

    def renew(self, now: float) -> str | None:
        log = self.links[5].datapath.log
        log.clear()
        Sender.send(self.copies.renew(now))
        if not log:
            return None
        messages = [message for _, message in log]
        if all(each.command == ofp.OFPFC_ADD for each in messages):
            assert all((each.cookie, each.hard_timeout) == (COOKIE_COPY, LEASE) for each in messages)
            return ASKED
        assert all(each.command == ofp.OFPFC_DELETE_STRICT for each in messages)
        return WITHDRAWN


def test_the_lease_is_renewed_before_it_ends():
    made = Made()
    assert made.renew(0.0) == ASKED
    assert made.renew(LEASE / 4) is None
    assert made.renew(LEASE / 3) == ASKED


def test_a_bridge_that_joins_the_fabric_copies_segments_itself():
    made = Made()
    made.bridges[5] = object()
    assert made.renew(0.0) is None
    del made.bridges[5]
    assert made.renew(1.0) == ASKED
    made.bridges[5] = object()
    assert made.renew(2.0) == WITHDRAWN
    assert made.renew(3.0) is None


def test_an_agent_that_connects_again_is_asked_again():
    made = Made()
    made.renew(0.0)
    made.links[5] = agent_link()
    assert made.renew(0.1) == ASKED
    made.links[5] = agent_link()
    made.bridges[5] = object()
    assert made.renew(0.2) is None  # this one was never asked


def test_nothing_is_kept_of_an_agent_that_has_gone():
    made = Made()
    made.renew(0.0)
    made.links.clear()
    assert list(made.copies.renew(0.1)) == []
    made.links[5] = made.link
    assert made.renew(0.2) == ASKED

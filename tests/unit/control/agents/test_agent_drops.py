"""Thresholds and recovery of losses: an agent is told what it does not know, and what must be renewed."""

from __future__ import annotations

from typing import Any

from fairq_ryu.channel import congestion, recovery
from fairq_ryu.channel.congestion import REPORT_DROPS
from fairq_ryu.channel.recovery import REINJECT, SetRecovery
from fairq_ryu.control.agents.agent_drops import AgentDrops
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.model import Thresholds
from tests.support.agent_link import agent_link
from tests.support.fakes import DATAPATH

WANTED = Thresholds(40_000, 20_000, drops=True)
ORDER = SetRecovery(2, REINJECT, 1 << 20, 1000, 500, lease=2)


def thresholds(messages: list[Any]) -> list[bool]:
    """Whether each of these messages asks for dropped packets."""
    return [bool(congestion.decode_set(bytes(each.data)).flags & REPORT_DROPS) for each in messages]


def orders(messages: list[Any]) -> list[SetRecovery]:
    return [recovery.decode_set(bytes(each.data)) for each in messages]


def test_thresholds_are_set_once():
    drops = agent_link().drops
    assert len(drops.set_thresholds(2, WANTED)) == 1
    assert drops.set_thresholds(2, WANTED) == drops.set_thresholds(2, None) == []
    assert len(drops.set_thresholds(3, WANTED)) == 1, "another port"


def test_a_kernel_that_reports_no_drops_is_not_asked_for_them():
    able, unable = (AgentDrops(DATAPATH, AgentPorts(), reported) for reported in (True, False))
    assert thresholds(able.set_thresholds(2, WANTED)) == [True]
    assert orders(able.set_recovery(ORDER, 10.0)) == [ORDER]
    assert thresholds(unable.set_thresholds(2, WANTED)) == [False]
    assert unable.set_thresholds(2, WANTED) == []
    assert unable.set_recovery(ORDER, 20.0) == [] and not unable.recovers(2)


def test_an_order_is_repeated_when_it_changes_or_a_quarter_of_its_lease_has_passed():
    drops = agent_link().drops
    assert orders(drops.set_recovery(ORDER, 10.0)) == [ORDER]
    assert drops.set_recovery(ORDER, 10.4) == []
    assert orders(drops.set_recovery(ORDER, 10.5)) == [ORDER]
    other = ORDER._replace(below=700)
    assert orders(drops.set_recovery(other, 10.6)) == [other]


def test_what_was_not_ordered_is_not_ended():
    drops = agent_link().drops
    end = SetRecovery(2, 0, 0, 0, 0, 0)
    assert drops.set_recovery(end, 10.0) == []
    drops.set_recovery(ORDER, 10.0)
    assert drops.recovers(2)
    assert orders(drops.set_recovery(end, 10.1)) == [end]
    assert not drops.recovers(2) and drops.set_recovery(end, 10.2) == []

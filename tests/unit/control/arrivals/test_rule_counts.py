"""The numbers of a bridge's rules come in four replies, of the present connection only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fairq_ryu.control.arrivals.rule_counts import RuleCounts
from fairq_ryu.fabric.ways import RuleCount
from tests.support.fakes import FakeSwitch


class Made:
    def __init__(self) -> None:
        self.counts, self.bridge = RuleCounts(), FakeSwitch(1)
        self.found: list[RuleCount] = []

    def ask(self, bridge: Any = None) -> list[int]:
        """The transaction ids of the requests."""
        return [request.xid for _, request in self.counts.ask(bridge or self.bridge, self.found.append)]

    def reply(self, xid: int, count: int, bridge: Any = None) -> None:
        body = SimpleNamespace(flow_count=count)
        self.counts.reply(SimpleNamespace(datapath=bridge or self.bridge, xid=xid, body=body))


def test_four_replies_in_any_order_are_the_answer():
    made = Made()
    every, pipeline, normal, discovery = made.ask()
    made.reply(normal, 1)
    made.reply(every, 10)
    made.reply(discovery, 1)  # it does not count
    assert not made.found
    made.reply(pipeline, 3)
    assert made.found == [RuleCount(9, 3, 1)] and len(made.counts) == 0


def test_other_replies_are_ignored():
    made = Made()
    made.reply(1, 5)  # not asked
    xids = made.ask()
    made.reply(xids[0] + 100, 5)
    for xid in xids:
        made.reply(xid, 5, FakeSwitch(1))  # another connection
    assert not made.found and len(made.counts) == 1


def test_a_new_question_replaces_the_former():
    made = Made()
    former = made.ask()
    latter = made.ask()
    for xid in former:
        made.reply(xid, 1)
    assert not made.found
    for xid in latter:
        made.reply(xid, 2)
    assert made.found == [RuleCount(0, 2, 2)]


def test_the_question_ends_with_its_connection():
    made = Made()
    made.ask()
    made.counts.disconnected(FakeSwitch(1))
    assert len(made.counts) == 1
    made.counts.disconnected(made.bridge)
    assert len(made.counts) == 0

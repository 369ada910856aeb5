"""Held SYNs go on when their path and windows are installed; one that fails harms no other."""

from __future__ import annotations

import pytest

from fairq_ryu.control import syn_admission
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import WindowPlan
from tests.support.fakes import FakeSwitch
from tests.support.flownet import KEY, B
from tests.support.workers import Holding


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Holding:
    return Holding(monkeypatch)


def test_they_go_on_in_the_order_in_which_they_came(holding):
    for number in range(5):
        holding.hold(number)
    assert holding.gone_on == []
    late = [5, 6]
    holding.meanwhile = lambda: late and holding.hold(late.pop(0))  # while the worker is at it
    holding.work()
    assert holding.gone_on == holding.counted == list(range(7))
    # And the worker is woken again by what comes after.
    holding.hold(7)
    holding.work()
    assert holding.gone_on == list(range(8))


def test_those_with_deadlines_go_on_by_these_and_the_time_they_waited_counts(holding):
    """Deadlines count from when a SYN came, not from when its turn was."""
    site = holding.site
    for number, deadline in ((0, None), (1, 0.5), (2, 0.1), (3, 0.3)):
        if deadline is not None:
            key = KEY._replace(sport=KEY.sport + number)
            wanted = Request(key.src, key.dst, key.dport, sport=key.sport, size=5000, deadline=deadline)
            site.windows.announce(wanted, 10.9)
        holding.hold(number, 11.0)
    holding.now = 11.25
    holding.work()
    assert holding.gone_on == [2, 0, 3, 1]
    said = [site.windows.announcements.of(KEY._replace(sport=KEY.sport + number)) for number in range(4)]
    assert said[0] is None
    assert [each.deadline for each in said[1:]] == pytest.approx([11.5, 11.1, 11.3])


def test_others_have_their_turn_after_each(holding):
    """Answers to barriers come meanwhile: they are not to wait for a whole volley."""
    seen = []
    holding.meanwhile = lambda: seen.append(list(holding.gone_on))
    for number in range(3):
        holding.hold(number)
    holding.work()
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_a_syn_goes_on_when_its_window_stands(holding):
    site = holding.site
    site.policy.plan = WindowPlan(window=1460)
    site.sample(B, 10.0)
    site.windows.agent_disconnected(site.link)
    site.connect_agent()  # it knows nothing, and is told with the flow
    holding.hold(0)
    holding.work()
    assert holding.gone_on == [] and holding.counted == [0]
    site.answer_barriers()
    assert holding.gone_on == [0]


def test_when_too_many_wait_the_next_is_worked_on_at_once(holding, monkeypatch):
    """Then whoever sends them waits as well, and what is remembered has a bound."""
    monkeypatch.setattr(syn_admission, "MAX_QUEUED", 3)
    for number in range(5):
        holding.hold(number)
    assert holding.gone_on == [3, 4]
    holding.work()
    assert holding.gone_on == [3, 4, 0, 1, 2]
    holding.hold(5)  # there is room again
    assert holding.gone_on == [3, 4, 0, 1, 2]
    holding.work()
    assert holding.gone_on == [3, 4, 0, 1, 2, 5]


def test_what_fails_with_one_does_not_end_the_worker(holding, monkeypatch, caplog):
    holding.fail_with(1, monkeypatch)
    for number in range(3):
        holding.hold(number)
    holding.work()
    assert holding.gone_on == [0, 2]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "a bad day" in caplog.text
    holding.hold(3)
    holding.work()
    assert holding.gone_on == [0, 2, 3]


def test_a_bridge_that_goes_while_its_syn_waits_does_no_harm(holding, caplog):
    """Nobody can send it on: it counts nowhere, and has no path. Its sender repeats it."""
    site = holding.site
    holding.hold(0)
    holding.hold(1)
    holding.meanwhile = lambda: site.fabric.bridge_disconnected(site.bridge)
    holding.work()
    assert holding.gone_on == holding.counted == [0]
    assert len(site.fabric.paths) == 1
    assert not caplog.records


def test_a_bridge_that_is_back_is_not_sent_what_its_old_connection_held(holding, caplog):
    site = holding.site
    holding.hold(0)
    old = site.bridge
    site.fabric.bridge_disconnected(old)
    site.fabric.bridge_connected(FakeSwitch(1), [], [], 12.0)
    site.log.clear()
    holding.work()
    assert not old.sent and not holding.counted and not caplog.records

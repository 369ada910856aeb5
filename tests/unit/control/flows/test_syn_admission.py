"""Queued SYNs are forwarded when their path and windows are installed; a SYN that fails does not affect
others.
"""

from __future__ import annotations

import pytest

from fairq_ryu.control.flows import syn_admission
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import WindowPlan
from tests.support.fakes import FakeSwitch
from tests.support.flownet import KEY, B
from tests.support.workers import Workers


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    return Workers(monkeypatch)


def test_syns_are_forwarded_in_the_order_of_arrival(workers):
    for number in range(5):
        workers.queue_syn(number)
    assert workers.forwarded == []
    late = [5, 6]
    workers.meanwhile = lambda: late and workers.queue_syn(late.pop(0))  # while the worker runs
    workers.admit()
    assert workers.forwarded == workers.counted == list(range(7))
    # The worker is woken again by the next SYN.
    workers.queue_syn(7)
    workers.admit()
    assert workers.forwarded == list(range(8))


def test_syns_are_forwarded_by_deadline_and_the_time_in_the_queue_counts(workers):
    """Deadlines count from the arrival of a SYN, not from its processing."""
    site = workers.site
    for number, deadline in ((0, None), (1, 0.5), (2, 0.1), (3, 0.3)):
        if deadline is not None:
            key = KEY._replace(sport=KEY.sport + number)
            wanted = Request(key.src, key.dst, key.dport, sport=key.sport, size=5000, deadline=deadline)
            site.windows.announce(wanted, 10.9)
        workers.queue_syn(number, 11.0)
    workers.now = 11.25
    workers.admit()
    assert workers.forwarded == [2, 0, 3, 1]
    announced = [site.windows.announcements.of(KEY._replace(sport=KEY.sport + number)) for number in range(4)]
    assert announced[0] is None
    assert [each.deadline for each in announced[1:]] == pytest.approx([11.5, 11.1, 11.3])


def test_other_greenlets_run_after_each_syn(workers):
    """Replies to barriers arrive meanwhile: they must not wait for a whole volley."""
    seen = []
    workers.meanwhile = lambda: seen.append(list(workers.forwarded))
    for number in range(3):
        workers.queue_syn(number)
    workers.admit()
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_a_syn_is_forwarded_when_its_window_is_installed(workers):
    site = workers.site
    site.policy.plan = WindowPlan(window=1460)
    site.sample(B, 10.0)
    site.windows.agent_disconnected(site.link)
    site.connect_agent()  # it has no rules; the rule is sent when the flow starts
    workers.queue_syn(0)
    workers.admit()
    assert workers.forwarded == [] and workers.counted == [0]
    site.answer_barriers()
    assert workers.forwarded == [0]


def test_with_a_full_queue_the_next_syn_is_processed_at_once(workers, monkeypatch):
    """Then the senders wait as well, and the queue stays bounded."""
    monkeypatch.setattr(syn_admission, "MAX_QUEUED", 3)
    for number in range(5):
        workers.queue_syn(number)
    assert workers.forwarded == [3, 4]
    workers.admit()
    assert workers.forwarded == [3, 4, 0, 1, 2]
    workers.queue_syn(5)  # there is room again
    assert workers.forwarded == [3, 4, 0, 1, 2]
    workers.admit()
    assert workers.forwarded == [3, 4, 0, 1, 2, 5]


def test_a_syn_that_fails_does_not_end_the_worker(workers, monkeypatch, caplog):
    workers.fail_with(1, monkeypatch)
    for number in range(3):
        workers.queue_syn(number)
    workers.admit()
    assert workers.forwarded == [0, 2]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "a bad day" in caplog.text
    workers.queue_syn(3)
    workers.admit()
    assert workers.forwarded == [0, 2, 3]


def test_a_bridge_may_disconnect_while_its_syn_is_queued(workers, caplog):
    """It cannot be forwarded: it counts nowhere, and has no path. Its sender retransmits it."""
    site = workers.site
    workers.queue_syn(0)
    workers.queue_syn(1)
    workers.meanwhile = lambda: site.fabric.bridge_disconnected(site.bridge)
    workers.admit()
    assert workers.forwarded == workers.counted == [0]
    assert len(site.fabric.paths) == 1
    assert not caplog.records


def test_syns_of_an_earlier_connection_are_not_sent_to_a_reconnected_bridge(workers, caplog):
    site = workers.site
    workers.queue_syn(0)
    old = site.bridge
    site.fabric.bridge_disconnected(old)
    site.fabric.bridge_connected(FakeSwitch(1), [], [], 12.0)
    site.log.clear()
    workers.admit()
    assert not old.sent and not workers.counted and not caplog.records

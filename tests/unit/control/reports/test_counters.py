"""The controller's own counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import oxm, queue_depth
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.reports.counters import PEAK_SHOWN, Delays, Histogram, Peak
from fairq_ryu.model import NO_WINDOWS, Announcement, FlowKey, FlowProgress, PortKey, WindowPlan
from fairq_ryu.policies.parts.deadline_table import GifTable
from fairq_ryu.policies.parts.installed_rules import InstalledRules
from tests.support.fakes import FakeSwitch, info
from tests.support.flownet import KEY, B
from tests.support.site import Site

VALUES = st.lists(st.floats(0, 3) | st.sampled_from([0.001, 0.01, 1.0]), max_size=50)


@given(VALUES)
def test_a_histogram_counts_values_up_to_each_bound(values):
    made = Histogram()
    for value in values:
        made.observe(value)
    expected = [sum(value <= bound for value in values) for bound in made.bounds]
    assert list(made.cumulative) == [*expected, len(values)]
    assert (made.count, made.sum) == (len(values), pytest.approx(sum(values)))


def test_percentiles_of_the_last_delays():
    late = Delays()
    assert late.recent(0.99) is None
    for _ in range(5000):
        late.observe(0.5)
    for number in range(1024):
        late.observe(number / 1000)
    assert 1.0 < late.recent(0.99) < 1.02
    assert late.recent(1.0) == 1.023 and late.recent(0.0) == 0.0
    assert late.histogram.count == 6024


@given(st.lists(st.tuples(st.floats(0.002, 10), st.integers(0, 100)), min_size=1, max_size=60))
def test_a_peak_is_shown_for_its_time_and_not_for_more_than_twice_that(readings):
    peak, now, noted = Peak(0.0), 0.0, []
    for step, value in readings:
        now += step
        peak.note(value, now)
        noted.append((now, value))
        shown = peak.value(now)
        assert shown >= max(v for at, v in noted if now - at < PEAK_SHOWN)
        assert shown <= max(v for at, v in noted if now - at <= 2 * PEAK_SHOWN + 10)


def test_a_peak_expires_without_readings():
    peak = Peak(0.0)
    peak.note(70, 1.0)
    assert peak.value(2.0) == 70
    assert peak.value(100.0) == 0


# Rules and their leases


def test_a_rule_that_is_renewed_too_late_has_lapsed():
    rules, flow = InstalledRules(B, 0.5, 2.0), {KEY: info(KEY)}
    plan = WindowPlan(pool=9000)
    rules.changes(plan, flow, 0.0)
    assert (len(rules), rules.alive(1.9), rules.alive(2.1), rules.lapsed) == (1, 1, 0, 0)
    rules.changes(plan, flow, 1.9)
    assert rules.lapsed == 0
    rules.changes(plan, flow, 4.0)
    assert rules.lapsed == 1
    rules.changes(WindowPlan(pool=8000), flow, 5.0)
    assert rules.lapsed == 1
    rules.changes(NO_WINDOWS, flow, 7.5)  # removed after it had already expired
    assert (rules.lapsed, len(rules)) == (2, 0)


def test_the_engine_counts_rules_by_switch_and_lapsed_rules_of_removed_ports_too():
    site = Site()
    site.policy.plan = WindowPlan(pool=9000)
    site.open(now=0.0)
    site.sample(B, 0.1)
    engine = site.windows.engine
    assert engine.rules(0.2) == {1: 1} and engine.rules(9.0)[1] == 0
    site.sample(B, 9.0)
    assert engine.lapsed == 1
    engine.port_gone(B)
    assert engine.lapsed == 1


def test_installed_rules_of_a_disconnected_agent_are_counted_as_cut():
    site = Site()
    site.policy.plan = WindowPlan(pool=9000)
    site.open()
    site.sample(B, 0.1)
    assert site.link.rule_messages == 1
    site.windows.agent_disconnected(site.link)
    assert site.windows.leases_cut == 1 and site.windows.engine.rules(0.1)[1] == 0
    site.connect_agent()
    assert site.windows.leases_cut == 1


# The channel


def test_a_round_trip_is_from_the_request_to_its_reply_and_timeouts_are_counted():
    link = AgentLink(FakeSwitch(oxm.agent_dpid(5)), Description("s5"))
    link.request_queues(10.0)
    link.request_queues(10.5)  # no request is sent: the reply may still arrive
    link.queue_reply_complete(10.6)
    assert (link.round_trip.count, link.unanswered) == (1, 0)
    assert link.round_trip.sum == pytest.approx(0.6)
    link.queue_reply_complete(10.7)  # there was no request
    link.request_queues(11.0)
    link.request_queues(12.5)
    assert (link.round_trip.count, link.unanswered) == (1, 1)


def test_a_reading_returns_the_previous_one_and_its_peak_is_kept_for_a_while():
    link = AgentLink(FakeSwitch(oxm.agent_dpid(5)), Description("s5"))
    first, second = (QueueDepth(2, 0, 10, peak, 1000, 0, 0, 0, 0) for peak in (900, 20))
    assert link.replace_reading(first, 1.0) is None
    assert link.replace_reading(second, 1.002) is first
    assert link.ports[2].depth is second and link.ports[2].peak.value(1.1) == 900
    link.port_removed(2)
    assert not link.ports


def test_queue_depths_reach_the_agent_link_through_the_window_controller():
    site = Site()
    record = QueueDepth(B.port, 0, 5, 70_000, 125_000, 0, 0, 0, 10**9)
    site.windows.queues_read(site.link, [record], 1.0)
    assert queue_depth.decode_reply(queue_depth.encode_reply([site.link.ports[B.port].depth])) == [record]
    assert site.link.ports[B.port].peak.value(1.0) == 70_000


# Deadlines


@pytest.mark.parametrize(
    ("announced", "acked", "now", "expected"),
    [
        (None, 0, 1.0, None),
        (Announcement(1000, None), 0, 1.0, None),
        (Announcement(1000, 2.0), 0, 1.0, "open"),
        (Announcement(None, 2.0), 0, 1.0, "open"),
        (Announcement(1000, 2.0), 1000, 1.0, "met"),
        (Announcement(1000, 2.0), 999, 3.0, "missed"),
        (Announcement(None, 2.0), 999, 3.0, "missed"),
        (Announcement(1000, 2.0), 1000, 3.0, "ended"),
    ],
)
def test_the_state_of_a_deadline_is_that_of_the_rest_interface(announced, acked, now, expected):
    from fairq_ryu.rest.announcement_rows import gif_rows

    table = GifTable()
    entry = table.add(info(KEY), 0.0, announced)
    table.progressed(KEY, FlowProgress(acked, acked, 0.001, True), 0.5)
    assert entry.state(now) == expected
    (row,) = gif_rows(PortKey(1, 1), table.rows(now), now)
    assert row["state"] == expected


# Connections


def test_connections_are_counted_by_state():
    site = Site()
    keys = [FlowKey("10.0.0.1", "10.0.0.2", 33000 + n, 80) for n in range(5)]
    site.syn(keys[0], 0.0, seq=100)
    for key in keys[1:]:
        site.open(key)
    site.reset(keys[1])
    assert {str(state): n for state, n in site.flows.states.items()} == {
        "syn-seen": 1,
        "established": 3,
        "half-closed": 0,
        "closed": 1,
    }
    assert site.flows.opened == 5

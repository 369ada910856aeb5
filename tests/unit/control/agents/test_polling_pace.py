"""How often agents are read whose laws run in the switches."""

from __future__ import annotations

import pytest

from fairq_ryu.control.agents import polling_pace
from fairq_ryu.control.agents.polling_pace import look_interval, records_interval
from fairq_ryu.model import PortKey
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from tests.support.flownet import A, B
from tests.unit.control.windows.test_window_controller_laws import Network, policy


@pytest.mark.parametrize(("ports", "wanted"), [(0, 0.05), (60, 0.05), (125, 0.1), (750, 0.6), (5000, 0.8)])
def test_queues_are_read_at_a_rate_and_before_their_leases_are_renewed(ports, wanted):
    assert look_interval(ports, lease=2.0) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("records", "idle", "wanted"),
    [
        (0, 60.0, 1.0),
        (1000, 60.0, 1.0),
        (4000, 60.0, 4.0),
        (99_000, 60.0, 20.0),
        (99_000, 300.0, 30.0),
        (99_000, 12.0, 4.0),
    ],
)
def test_records_are_read_at_a_rate_and_often_enough_to_keep_flows_alive(records, idle, wanted):
    assert records_interval(1.0, records, idle) == pytest.approx(wanted)


def test_a_longer_interval_that_was_set_stays():
    assert records_interval(30.0, 99_000, 60.0) == 30.0


def test_the_more_ports_have_laws_in_switches_the_less_often_each_is_read(monkeypatch):
    net = Network()
    link = net.site.link
    net.read(A, B)
    assert net.windows.interval(link) == LOOK_INTERVAL
    monkeypatch.setattr(polling_pace, "QUEUES_PER_SECOND", 10)
    assert net.windows.interval(link) == pytest.approx(0.2)
    monkeypatch.setattr(polling_pace, "QUEUES_PER_SECOND", 1)
    assert net.windows.interval(link) == pytest.approx(0.4 * net.windows.lease)


def test_leases_are_renewed_at_every_reading_of_very_many_ports():
    """Readings that come a little early, too: the next one may come a whole interval later."""
    net = Network()
    net.read(B)
    before = net.data.laws[B.port][2]
    for _ in range(4):
        net.read(B, after=0.49)
        assert net.data.laws[B.port][2] > before
        before = net.data.laws[B.port][2]


def test_a_law_in_the_controller_reads_queues_as_often_as_its_policy_wants(monkeypatch):
    net = Network(policy("fixed"))
    net.read(A, B)
    monkeypatch.setattr(polling_pace, "QUEUES_PER_SECOND", 1)
    assert net.windows.interval(net.site.link) == policy("fixed").interval


@pytest.mark.parametrize(
    ("name", "announced", "wanted"), [("fairq", 0, 7.0), ("fairq", 1, 1.0), ("fixed", 0, 1.0)]
)
def test_records_are_read_as_set_where_somebody_needs_them(name, announced, wanted):
    """Only laws of the switch do not, unless flows were announced."""
    net = Network(policy(name))
    net.read(A, B)
    link = net.site.link
    link.records = 7000
    net.windows.interval(link)
    net.windows._reporter.outcomes = [None] * announced
    assert net.windows.records_interval(link, 1.0, 60.0) == wanted


def test_an_agent_without_busy_ports_has_its_records_read_as_set():
    net = Network()
    link = net.site.link
    link.records = 7000
    assert net.windows.interval(link) is None
    assert not net.windows.engine.busy(PortKey(1, 1))
    assert net.windows.records_interval(link, 1.0, 60.0) == 1.0


def test_a_shared_sum_is_worked_out_from_time_to_time_and_when_agents_come_and_go():
    numbers, clock = iter(range(10, 30)), Clock()
    shared = polling_pace.SharedSum(lambda: next(numbers), lambda: clock.now)
    assert [shared.get(100) for _ in range(7)] == [10] * 7
    clock.now += 1.01 * LOOK_INTERVAL
    assert [shared.get(100), shared.get(100)] == [11, 11]
    assert [shared.get(99), shared.get(99), shared.get(100)] == [12, 12, 13]
    assert [shared.get(1), shared.get(1)] == [14, 15]


class Clock:
    now = 7.0

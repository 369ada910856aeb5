"""SED with a fluid model of a bottleneck: deadlines are met that equal shares miss."""

from __future__ import annotations

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.droptail.policy import DropTail
from fairq_ryu.laws.sed.policy import Sed
from fairq_ryu.policies.engine import PolicyEngine
from tests.support.fluid_model import Bottleneck, Transfer
from tests.support.host_laws import NO_WINDOW

LEASE = 2.0
GIGABIT = 125_000_000
SIZES, DEADLINES = (8, 12, 30, 50, 64), (0.3, 0.8, 1.0, 3.0, 5.0)


def sed(**settings) -> Sed:
    return Sed(Config().changed("sed", settings).section("sed"))


def bottleneck(policy, rate: int = GIGABIT, buffer: int = 150_000, rtt: float = 0.0002) -> Bottleneck:
    made = Bottleneck(PolicyEngine(policy, LEASE), rate, buffer, rtt)
    made.run(0.02)
    return made


def small(policy, scale: int = 1, **port) -> tuple[Bottleneck, Transfer]:
    """The paper's small experiment, on 1/scale of a gigabit."""
    line = bottleneck(policy, GIGABIT // scale, **port)
    endless = Transfer(None, None)
    line.start(endless)
    for size, deadline in zip(SIZES, DEADLINES, strict=True):
        line.start(Transfer(size * 1_000_000 // scale, deadline))
    line.run(5.2)
    return line, endless


PORTS = [
    pytest.param(1, {}, id="1 Gbit/s"),
    pytest.param(5, {"buffer": 125_000, "rtt": 0.0005}, id="200 Mbit/s"),
    pytest.param(5, {"buffer": 125_000, "rtt": 0.003}, id="200 Mbit/s, 3 ms"),
]


@pytest.mark.parametrize(("scale", "port"), PORTS)
def test_the_paper_s_small_experiment(scale, port):
    line, endless = small(sed(), scale, **port)
    assert [transfer.missed for transfer in line.transfers] == [False] * 6
    # The endless flow never starves, and gets the rest of the capacity.
    assert endless.least_window >= 1460
    assert endless.acked > 0.1 * 5 * GIGABIT / scale
    assert line.engine.failures == 0


@pytest.mark.parametrize(("scale", "port"), PORTS)
def test_equal_shares_miss_deadlines(scale, port):
    line, _ = small(DropTail({}), scale, **port)
    assert any(transfer.missed for transfer in line.transfers)


def test_flows_that_are_planned_to_the_deadline_end_at_the_deadline():
    """The paper's own remark: transmission lasts until the deadline. A margin of 1 restores that."""
    ends = {}
    for margin in (1.0, 0.9, 0.5):
        line = bottleneck(sed(margin=margin))
        line.start(Transfer(None, None))
        line.start(Transfer(10_000_000, 1.0))
        line.run(1.2)
        ends[margin] = line.transfers[1].ended - line.transfers[1].start
    assert 0.95 < ends[1.0] < 1.05
    assert 0.85 < ends[0.9] < 0.97
    assert 0.45 < ends[0.5] < 0.55


def test_overload_serves_the_earliest_deadlines_and_pauses_the_rest():
    """Five flows that each need 45 % of the line: two are in time, the others are paused."""
    line = bottleneck(sed(missed="pause"))
    for place in range(5):
        line.start(Transfer(int(0.45 * 0.9 * GIGABIT), 1.0 + place / 1000))
    line.run(1.1)
    assert [transfer.missed for transfer in line.transfers] == [False, False, True, True, True]
    assert [transfer.least_window > 0 for transfer in line.transfers] == [True, True, False, False, False]


def test_a_paused_flow_is_woken_when_there_is_capacity_again():
    line = bottleneck(sed())
    line.start(Transfer(int(0.6 * 0.5 * GIGABIT), 0.5))
    line.start(Transfer(int(0.6 * 1.0 * GIGABIT), 1.4))
    line.start(Transfer(None, None))
    line.run(1.5)
    assert [transfer.missed for transfer in line.transfers[:2]] == [False, False]


def test_a_flow_that_sends_does_not_flap():
    """Two flows that need a little more than the capacity: the later one is not paused for that."""
    line = bottleneck(sed(margin=1.0))
    line.start(Transfer(None, None))
    line.start(Transfer(int(0.50 * GIGABIT), 1.0))
    line.start(Transfer(int(0.46 * GIGABIT), 1.01))
    line.run(0.05)
    line.transfers[2].least_window = float("inf")
    line.run(0.9)
    assert line.wakes == 0
    assert line.transfers[2].least_window > 20_000


def test_two_hundred_flows_cost_a_bounded_number_of_messages():
    """Each flow's rule is sent a few times and renewed, not at every T: 10 ms would make 20,000 a second."""
    line = bottleneck(sed(), GIGABIT, 1_000_000)
    for place in range(200):
        line.start(Transfer(400_000, 0.9 + place / 1000))
        if place % 20 == 19:
            line.run(0.001)
    line.run(1.5)
    assert not any(transfer.missed for transfer in line.transfers)
    renewals = 200 * 1.5 / (LEASE / 4)
    assert line.messages < 200 * 2 + renewals
    # The law of the switch stays, and limits nobody.
    assert set(line.rules) == {None}
    assert line.law is not None and line.law.window(1) == NO_WINDOW


def test_a_hundred_small_flows_do_not_overflow_the_buffer():
    """One segment each exceeds the buffer: they take turns, the earliest deadline first."""
    line = bottleneck(sed(), GIGABIT // 5, 125_000, 0.0005)
    for size, deadline in ((4, 0.2), (12, 0.3), (20, 0.35), (28, 0.4), (40, 0.45)):
        for _ in range(20):
            line.start(Transfer(size * 1000, deadline))
    line.run(0.02)
    assert line.queue < 60_000
    line.run(0.5)
    assert not any(transfer.missed for transfer in line.transfers)


def test_a_volley_of_two_hundred_costs_few_messages_while_it_starts():
    """Flows that start within 4 ms are computed together: not 200 times for 200 flows."""
    line = bottleneck(sed(), GIGABIT // 5, 125_000)
    for _ in range(4):
        line.start(Transfer(None, None))
    line.run(0.1)
    before = line.messages
    for _ in range(200):
        line.start(Transfer(20_000, None))
    assert line.messages - before <= 1 + 4
    line.run(0.05)
    assert line.messages - before <= 20

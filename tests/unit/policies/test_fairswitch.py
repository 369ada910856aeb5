"""FairSwitch's law in the controller: worked by hand, and with the parameters that the switch has."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import sections
from fairq_ryu.model import NO_WINDOWS, FlowKey, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies import base
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.fairswitch import FairSwitch, FairSwitchParameters, FairSwitchPort
from tests.support.fakes import info

PORT = PortKey(1, 1)
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 1000, 80)
LIMIT, RATE, TARGET = 100_000, 25_000_000, 25_000
STEP = 40  # RATE * 0.2 ms / 125
DEAD = 1460 // 4


def sample(queue: int, active: int = 2, limit: int = LIMIT) -> QueueSample:
    return QueueSample(queue, queue, limit, RATE, 0, active, float(queue))


class Driven:
    """A port that is sampled every 2 ms: ten intervals of the law."""

    def __init__(self, **values) -> None:
        self.port = FairSwitchPort(FairSwitchParameters(**values))
        self.now = 10.0

    def feed(self, *queues: int, active: int = 2, limit: int = LIMIT) -> WindowPlan | None:
        plan = None
        for queue in queues:
            self.now += 0.002
            plan = self.port.queue_sampled(sample(queue, active, limit), active, self.now)
        return plan

    def start(self, mss: int = 1460) -> WindowPlan | None:
        return self.port.flow_started(info(FLOW, mss), 1, self.now)


def pool(flows: int, base_window: int, trim: int = 0) -> WindowPlan:
    return WindowPlan(pool=flows * (base_window + trim))


def policy(**values) -> FairSwitch:
    return FairSwitch(Config().section("fairswitch") | values)


def test_the_parameters_are_the_settings():
    assert dataclasses.asdict(policy().parameters) == Config().section("fairswitch")
    assert set(sections()["fairswitch"]) == {field.name for field in dataclasses.fields(FairSwitchParameters)}
    assert FairSwitchParameters() == policy().parameters
    assert base.find("fairswitch") is FairSwitch
    assert base.same(policy(), policy()) and not base.same(policy(), policy(alpha=0.5))
    assert policy(interval=0.004).interval == 0.004


def test_a_port_starts_with_the_target_for_all_flows():
    assert Driven().feed(5000) == pool(2, TARGET // 2)


def test_the_trim_grows_by_a_step_for_each_interval_while_the_queue_is_short():
    port = Driven()
    assert port.feed(0, 5000) == pool(2, TARGET // 2, 10 * STEP)
    assert port.feed(5000, 5000) == pool(2, TARGET // 2, 30 * STEP)


def test_the_trim_shrinks_while_the_queue_is_long_but_not_below_zero():
    port = Driven()
    port.feed(0, *[5000] * 5)
    assert port.feed(60_000, 60_000) == pool(2, TARGET // 2, 30 * STEP)
    assert port.feed(*[60_000] * 5) == pool(2, TARGET // 2)


@pytest.mark.parametrize("queue", [TARGET - DEAD, TARGET, TARGET + DEAD, 80, 0])
def test_the_trim_rests_near_the_target_and_with_an_empty_queue(queue):
    port = Driven()
    port.feed(0, 5000)
    assert port.feed(queue) == pool(2, TARGET // 2, 10 * STEP)


@pytest.mark.parametrize(("queue", "trim"), [(TARGET - DEAD - 1, 20), (TARGET + DEAD + 1, 0), (81, 20)])
def test_the_trim_moves_beyond_that(queue, trim):
    port = Driven()
    port.feed(0, 5000)
    assert port.feed(queue) == pool(2, TARGET // 2, trim * STEP)


def test_the_dead_band_is_a_quarter_of_the_largest_segment():
    port = Driven()
    port.start(mss=8000)
    assert port.feed(0, TARGET - 2000) == pool(2, TARGET // 2)
    assert port.feed(TARGET - 2001) == pool(2, TARGET // 2, 10 * STEP)


def test_a_window_is_at_least_2048_bytes_before_the_trim():
    port = Driven()
    assert port.feed(0, active=40) == pool(40, 2048)
    assert port.feed(5000, active=40) == pool(40, 2048, 10 * STEP)


def test_no_window_is_more_than_the_port_holds():
    port = Driven()
    assert port.feed(0, *[5000] * 400, active=1) == WindowPlan(pool=LIMIT + RATE // 1000)


def test_without_flows_the_trim_is_gone_and_the_next_volley_finds_the_target():
    port = Driven()
    port.feed(0, 5000)
    assert port.feed(0, active=0) == pool(1, TARGET)
    assert port.feed(0, active=2) == pool(2, TARGET // 2)


def test_a_new_flow_raises_the_pool_at_once_if_all_need_more():
    port = Driven()
    port.feed(0, active=14)  # 14 * 2048 = 28,672
    assert [port.start(), port.start()] == [None, None]  # 16 * 2048 is 1.14 times that
    assert port.start() == pool(17, 2048)


def test_the_first_flow_of_a_known_port_gets_its_pool_at_once():
    port = Driven()
    assert port.start() is None
    assert port.feed(0, active=0) == NO_WINDOWS
    assert port.start() == pool(1, TARGET)


def test_windows_stay_for_a_while_after_the_last_flow():
    port = Driven(linger=0.01)
    port.feed(0)
    assert port.feed(0, 0, 0, 0, active=0) == pool(1, TARGET)
    assert port.feed(0, 0, active=0) == NO_WINDOWS
    assert port.feed(0) == pool(2, TARGET // 2)
    assert port.feed(0, active=0) == pool(1, TARGET), "the time starts anew"


def test_a_late_reading_counts_for_all_intervals_since():
    port = Driven()
    port.feed(0, *[5000] * 6)
    port.now += 0.008
    assert port.feed(60_000) == pool(2, TARGET // 2, 10 * STEP)


def test_a_queue_of_unknown_size_has_no_windows():
    port = Driven()
    port.feed(0)
    assert port.feed(0, limit=0) == NO_WINDOWS
    assert (port.start(), port.port.display().target) == (None, None)


def test_another_buffer_keeps_the_trim():
    port = Driven()
    port.feed(0, 5000)
    assert port.feed(10_000, limit=200_000) == pool(2, TARGET, 20 * STEP)
    assert port.port.display().target == 2 * TARGET


def test_replayed_flows_are_not_counted_twice():
    """The engine replays the last sample and the flows to a fresh law."""
    engine = PolicyEngine(policy(where="controller"), 2.0)
    engine.sampled(PORT, sample(0, active=0), 1.0)
    for number in range(20):
        engine.flow_started(PORT, info(FLOW._replace(sport=number)), 1.0)
    engine.sampled(PORT, sample(5000, active=20), 1.1)
    engine.use(policy(where="controller", alpha=0.2), 1.2)
    assert engine.view()[PORT].plan == pool(20, 2048)


def test_the_controller_runs_the_law_if_the_setting_says_so():
    assert policy(where="controller").switch_law(PORT) is None
    assert isinstance(policy().port_law(PORT), FairSwitchPort)


@given(
    st.floats(0.01, 1),
    st.floats(0, 1),
    st.floats(0.00005, 0.01),
    st.integers(1500, 1 << 30),
    st.integers(1000, 12_500_000_000),
)
def test_the_controller_s_law_has_the_parameters_of_the_switch_s(alpha, base_rtt, interval, limit, rate):
    """Rounded to microseconds and millionths on the channel."""
    base_rtt, interval = round(base_rtt, 6), round(interval, 6)
    chosen = policy(alpha=round(alpha, 6), base_rtt=base_rtt, switch_interval=interval)
    port = chosen.port_law(PORT)
    port.queue_sampled(QueueSample(0, 0, limit, rate, 0, 1, 0.0), 1, 1.0)
    law = parameters(chosen.switch_law(PORT), QueueLimits("htb", limit, rate))
    for name in ("kind", "rate", "limit", "target", "interval_ns", "base_rtt_ns", "trim_step"):
        assert getattr(port.law.parameters, name) == getattr(law, name), name

"""The policy iqm-paper: which events are which lines, and nothing outside an incast."""

from __future__ import annotations

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.iqm_paper.policy import IqmPaper, IqmPaperParameters, IqmPaperPort
from fairq_ryu.model import NO_WINDOWS, FlowInfo, FlowKey, PortKey, QueueSample, RuleChange, WindowPlan
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import make
from fairq_ryu.policies.engine import PolicyEngine
from tests.support.fakes import info
from tests.support.laws import parameters

PORT = PortKey(1, 1)


def flow(number: int, mss: int = 1000) -> FlowInfo:
    return info(FlowKey("10.0.0.1", "10.0.0.2", number, 80), mss)


def sample(queue: int, limit: int = 100_000) -> QueueSample:
    return QueueSample(queue, queue, limit, 25_000_000, 0, 0, queue)


def port(**values: int) -> IqmPaperPort:
    return IqmPaperPort(parameters(IqmPaper, **values))


def test_a_volley_is_noticed_at_the_end_of_the_interval_and_over_when_the_queue_is_short() -> None:
    law = port()
    assert law.queue_sampled(sample(90_000), 0, 0.0) == NO_WINDOWS
    for number in range(11):  # x = 1: 11 * 1,000 + 90,000 is more than the buffer
        assert law.flow_started(flow(number), number + 1, 0.0) is None
    assert not law.display().incast
    assert law.queue_sampled(sample(90_000), 11, 0.0) == WindowPlan(window=1000)
    assert law.display().incast
    assert law.queue_sampled(sample(20_000), 11, 0.0) == WindowPlan(window=1000)
    assert law.queue_sampled(sample(19_999), 11, 0.0) == NO_WINDOWS


def test_a_flow_that_ends_takes_one_away() -> None:
    law = port()
    for number in range(11):
        law.flow_started(flow(number), number + 1, 0.0)
    assert law.flow_ended(flow(0), 10, 0.0) is None
    assert law.queue_sampled(sample(90_000), 10, 0.0) == NO_WINDOWS


def test_x_is_the_initial_window_of_the_hosts() -> None:
    law = port(initial_window=10)
    for number in range(2):
        law.flow_started(flow(number), number + 1, 0.0)
    assert law.queue_sampled(sample(80_001), 2, 0.0) == WindowPlan(window=1000)


def test_without_a_buffer_there_is_no_incast() -> None:
    law = port()
    law.flow_started(flow(1), 1, 0.0)
    assert law.queue_sampled(sample(100_000), 1, 0.0) == WindowPlan(window=1000)
    law.flow_started(flow(2), 2, 0.0)
    assert law.queue_sampled(sample(100_000, limit=0), 2, 0.0) == NO_WINDOWS
    assert law.queue_sampled(sample(100_000), 2, 0.0) == NO_WINDOWS


def test_a_full_queue_of_unknown_flows_pauses_nobody() -> None:
    law = port()
    assert law.queue_sampled(sample(100_001), 0, 0.0) == NO_WINDOWS


def test_flows_that_were_there_before_are_no_volley() -> None:
    engine = PolicyEngine(make("droptail", Config()), lease=2)
    engine.sampled(PORT, sample(99_000), 0.0)
    for number in range(5):
        engine.flow_started(PORT, flow(number), 0.0)
    assert engine.use(make("iqm-paper", Config()), 1.0) == []
    assert engine.sampled(PORT, sample(99_000), 2.0) == []
    engine.flow_started(PORT, flow(7), 2.0)
    engine.flow_started(PORT, flow(8), 2.0)
    (change,) = engine.sampled(PORT, sample(99_000), 3.0)
    assert isinstance(change, RuleChange) and change.rule is not None and change.rule.bytes == 1000


def test_it_runs_in_the_controller_only() -> None:
    policy = make("iqm-paper", Config())
    assert base.find("iqm-paper") is IqmPaper
    assert base.switch_law(policy, PORT) is None
    assert isinstance(policy.port_law(PORT), IqmPaperPort)


def test_its_settings_are_the_paper_s_parameters() -> None:
    values = {"interval": 0.002, "alpha": 0.3, "initial_window": 10}
    config = Config({("iqm-paper", name): value for name, value in values.items()})
    policy = IqmPaper(config.section("iqm-paper"))
    assert policy.parameters == IqmPaperParameters(0.002, 0.3, 10)
    assert policy.interval == 0.002

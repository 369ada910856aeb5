"""The policy fairq-paper: which events are which lines, and what becomes of the window."""

from __future__ import annotations

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.fairq_paper.policy import FairQPaper, FairQPaperParameters, FairQPaperPort
from fairq_ryu.model import LARGEST_WINDOW, NO_WINDOWS, FlowInfo, FlowKey, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import make
from tests.support.fakes import info
from tests.support.laws import parameters

PORT = PortKey(1, 1)


def flow(number: int, mss: int = 1000) -> FlowInfo:
    return info(FlowKey("10.0.0.1", "10.0.0.2", number, 80), mss)


def sample(queue: int, limit: int = 100_000) -> QueueSample:
    return QueueSample(queue, queue, limit, 25_000_000, 0, 0, queue)


def port(**values: float) -> FairQPaperPort:
    return FairQPaperPort(parameters(FairQPaper, increments=2, slow_start=False, **values))


def test_each_flow_gets_the_window_when_the_first_ones_start() -> None:
    law = port()
    assert law.queue_sampled(sample(0), 0, 0.0) == NO_WINDOWS
    assert law.flow_started(flow(1), 1, 0.0) == WindowPlan(window=25_000)
    assert law.flow_started(flow(2), 2, 0.0) == WindowPlan(window=12_500)
    assert law.flow_ended(flow(1), 1, 0.0) == WindowPlan(window=25_000)
    assert law.flow_ended(flow(2), 0, 0.0) == NO_WINDOWS


def test_a_reading_is_a_timeout_and_every_m_th_moves_the_window() -> None:
    law = port()
    law.queue_sampled(sample(0), 0, 0.0)
    law.flow_started(flow(1), 1, 0.0)
    assert law.queue_sampled(sample(0), 1, 0.0) is None
    assert law.queue_sampled(sample(50_000), 1, 0.0) == WindowPlan(window=25_000)  # 1 and -1
    assert law.queue_sampled(sample(0), 1, 0.0) is None
    assert law.queue_sampled(sample(0), 1, 0.0) == WindowPlan(window=26_000)


def test_the_queue_is_its_length_now() -> None:
    law = port()
    law.queue_sampled(sample(0), 0, 0.0)
    law.flow_started(flow(1), 1, 0.0)
    law.queue_sampled(sample(0), 1, 0.0)
    longer = QueueSample(0, 90_000, 100_000, 25_000_000, 0, 0, 90_000.0)
    assert law.queue_sampled(longer, 1, 0.0) == WindowPlan(window=26_000)


def test_flows_count_that_started_before_the_buffer_was_known() -> None:
    law = port()
    assert law.flow_started(flow(1), 1, 0.0) is None
    assert law.flow_started(flow(2, mss=1460), 2, 0.0) is None
    assert law.queue_sampled(sample(0, limit=0), 2, 0.0) == NO_WINDOWS
    assert law.flow_ended(flow(1), 1, 0.0) is None
    assert law.flow_started(flow(3), 2, 0.0) is None
    assert law.queue_sampled(sample(0), 2, 0.0) == WindowPlan(window=12_500)
    assert law.algorithm is not None and law.algorithm.max_size == 1460


def test_without_a_buffer_there_are_no_windows() -> None:
    law = port()
    law.queue_sampled(sample(0), 0, 0.0)
    law.flow_started(flow(1), 1, 0.0)
    assert law.queue_sampled(sample(0, limit=0), 1, 0.0) == NO_WINDOWS
    assert law.display().target is None


def test_another_buffer_moves_the_target_and_not_the_window() -> None:
    law = port()
    law.queue_sampled(sample(0), 0, 0.0)
    law.flow_started(flow(1), 1, 0.0)
    law.queue_sampled(sample(0, limit=200_000), 1, 0.0)
    assert law.display().target == 50_000
    assert law.queue_sampled(sample(50_000, limit=200_000), 1, 0.0) == WindowPlan(window=25_500)


def test_no_window_pauses_a_flow_and_none_is_larger_than_tcp_has() -> None:
    law = port()
    law.queue_sampled(sample(0), 0, 0.0)
    law.flow_started(flow(1), 1, 0.0)
    assert law.algorithm is not None
    law.algorithm.q_rwnd = 10.0
    law.queue_sampled(sample(100_000), 1, 0.0)
    assert law.queue_sampled(sample(100_000), 1, 0.0) == WindowPlan(window=1)
    law.algorithm.q_rwnd = 2.0 * LARGEST_WINDOW
    law.queue_sampled(sample(0), 1, 0.0)
    assert law.queue_sampled(sample(0), 1, 0.0) == WindowPlan(window=LARGEST_WINDOW)


def test_it_runs_in_the_controller_only() -> None:
    policy = make("fairq-paper", Config())
    assert base.find("fairq-paper") is FairQPaper
    assert base.switch_law(policy, PORT) is None
    assert base.recovery_of(policy) is None
    assert isinstance(policy.port_law(PORT), FairQPaperPort)


def test_its_settings_are_the_paper_s_parameters() -> None:
    values = {"interval": 0.002, "increments": 10, "alpha": 0.2, "slow_start": False}
    config = Config({("fairq-paper", name): value for name, value in values.items()})
    policy = FairQPaper(config.section("fairq-paper"))
    assert policy.parameters == FairQPaperParameters(0.002, 10, 0.2, False)
    assert policy.interval == pytest.approx(0.002)

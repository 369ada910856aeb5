"""The policy sed-paper: which events are which of the paper's, and which windows become rules."""

from __future__ import annotations

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.sed_paper.policy import SedPaper, SedPaperParameters, SedPaperPort
from fairq_ryu.model import (
    LARGEST_WINDOW,
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowInfo,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    RuleTarget,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies import base
from fairq_ryu.policies.base import takes_announcements
from fairq_ryu.policies.choice import make
from fairq_ryu.policies.engine import PolicyEngine
from tests.support.fakes import info
from tests.support.laws import parameters

PORT = PortKey(1, 1)
A, B = (FlowKey("10.0.0.1", "10.0.0.2", number, 80) for number in (1, 2))
# K = 0.3 * 100,000; 10 MB/s * 1 ms = 10,000: Twin = 40,000.
K, TWIN = 30_000, 40_000


def flow(key: FlowKey) -> FlowInfo:
    return info(key, 1000)


def sample(queue: int, limit: int = 100_000, rate: int = 10_000_000) -> QueueSample:
    return QueueSample(queue, queue, limit, rate, 0, 0, queue)


def port(*keys: FlowKey) -> SedPaperPort:
    law = SedPaperPort(parameters(SedPaper))
    law.queue_sampled(sample(0), 0, 0.0)
    for number, key in enumerate(keys, 1):
        assert law.flow_started(flow(key), number, 0.0) == NO_WINDOWS
    return law


def test_the_switch_tells_of_k_and_of_anything_below() -> None:
    law = SedPaperPort(parameters(SedPaper))
    assert law.thresholds() is None and law.display().target is None
    law.queue_sampled(sample(0), 0, 0.0)
    assert law.thresholds() == Thresholds(K, K - 1, drops=False)
    assert law.display().target == K


def test_windows_in_congestion_only_and_for_each_flow_its_own() -> None:
    law = port(A, B)
    assert law.congestion(Congestion.CNG, K, 0.1) == WindowPlan(flows={A: 20_000, B: 20_000})
    assert law.congestion(Congestion.CNG, K, 0.1) is None
    assert law.congestion(Congestion.NOM, K - 1, 0.2) == NO_WINDOWS
    assert law.congestion(Congestion.NOM, K - 1, 0.2) is None


def test_the_readings_of_the_queue_show_what_a_lost_message_did_not() -> None:
    law = port(A)
    assert law.queue_sampled(sample(K - 1), 1, 0.1) is None
    assert law.queue_sampled(sample(K), 1, 0.1) == WindowPlan(flows={A: TWIN})
    assert law.queue_sampled(sample(K), 1, 0.2) is None
    assert law.queue_sampled(sample(K - 1), 1, 0.3) == NO_WINDOWS


def test_without_a_buffer_there_is_no_congestion() -> None:
    law = port(A)
    law.queue_sampled(sample(K), 1, 0.1)
    assert law.queue_sampled(sample(K, limit=0), 1, 0.2) == NO_WINDOWS


def test_flows_that_come_and_go_in_congestion_change_all_windows() -> None:
    law = port(A)
    law.congestion(Congestion.CNG, K, 0.0)
    assert law.flow_started(flow(B), 2, 0.1) == WindowPlan(flows={A: 20_000, B: 20_000})
    assert law.flow_ended(flow(A), 1, 0.2) == WindowPlan(flows={B: TWIN})


def test_a_deadline_is_met_by_what_is_announced_and_acknowledged() -> None:
    law = port(A, B)
    assert not law.wants_progress()
    law.announced(A, Announcement(2_000_000, 0.4), 0.0)
    assert law.wants_progress()
    assert law.progressed({A: FlowProgress(1_000_000, 1_100_000, 0.001, True)}, 0.2) is None
    # 1 MB in 200 ms is 5,000 a round trip; B has the rest.
    assert law.congestion(Congestion.CNG, K, 0.2) == WindowPlan(flows={A: 5_000, B: 35_000})


def test_a_need_of_a_part_of_a_byte_is_no_pause() -> None:
    law = port(A)
    law.announced(A, Announcement(10, 0.1), 0.0)  # 0.1 bytes in a round trip
    assert law.congestion(Congestion.CNG, K, 0.0) == WindowPlan(flows={A: 1})


def test_no_window_is_larger_than_tcp_has() -> None:
    law = SedPaperPort(parameters(SedPaper, rtt=10.0))
    law.flow_started(flow(A), 1, 0.0)
    plan = law.queue_sampled(sample(K, rate=1_000_000_000), 1, 0.0)
    assert plan == WindowPlan(flows={A: LARGEST_WINDOW})


def test_a_flow_that_misses_its_deadline_has_no_window_any_more() -> None:
    law = port(A, B)
    law.announced(A, Announcement(1_000_000, 0.1), 0.0)
    assert law.congestion(Congestion.CNG, K, 0.2) == WindowPlan(flows={A: 0, B: TWIN})
    assert law.congestion(Congestion.NOM, 0, 0.3) == WindowPlan(flows={A: 0})
    assert law.flow_ended(flow(A), 1, 0.4) == NO_WINDOWS


def test_a_paused_flow_that_gets_a_window_is_woken() -> None:
    engine = PolicyEngine(make("sed-paper", Config()), lease=2)
    engine.sampled(PORT, sample(0), 0.0)
    for key in (A, B):
        engine.flow_started(PORT, flow(key), 0.0)
        engine.announced(PORT, key, Announcement(3_000_000, 0.1), 0.0)
    there = {change.target: change for change in engine.congestion(PORT, Congestion.CNG, K, 0.0)}
    # Each needs 30,000 of 40,000; equal deadlines are in the order of their keys.
    assert {target.flow: c.rule.bytes for target, c in there.items() if c.rule} == {A: 30_000, B: 0}
    changes = {change.target: change for change in engine.flow_ended(PORT, A, 0.01)}
    woken = changes[RuleTarget(PORT, B)]
    assert woken.wake and woken.rule is not None and woken.rule.bytes == 33_334  # 3 MB in 90 ms


def test_it_runs_in_the_controller_and_uses_announcements() -> None:
    policy = make("sed-paper", Config())
    assert base.find("sed-paper") is SedPaper
    assert base.switch_law(policy, PORT) is None
    assert base.recovery_of(policy) is None
    assert takes_announcements(policy)


def test_its_settings_are_the_paper_s_parameters() -> None:
    values = {"threshold": 0.5, "rtt": 0.0002}
    config = Config({("sed-paper", name): value for name, value in values.items()})
    policy = SedPaper(config.section("sed-paper"))
    assert policy.parameters == SedPaperParameters(0.5, 0.0002)
    assert policy.interval == 0.01

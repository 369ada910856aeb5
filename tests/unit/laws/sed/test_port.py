"""SED and RSED on one port: when windows are set, and which."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import settings_of
from fairq_ryu.laws.rsed.policy import Rsed
from fairq_ryu.laws.sed import port as sed_port
from fairq_ryu.laws.sed.policy import Sed
from fairq_ryu.laws.sed.port import SedPort
from fairq_ryu.laws.sed.rtt import MeanRtt
from fairq_ryu.laws.sed.settings import SedParameters
from fairq_ryu.model import (
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies import base
from fairq_ryu.policies.base import Recovery
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.layered_port import LayeredPort
from tests.support.fakes import info
from tests.support.laws import parameters

LIMIT, RATE = 125_000, 25_000_000
K = 31_250
PORT = PortKey(1, 1)
FLOWS = [FlowKey(f"10.0.{n // 250}.{n % 250}", "10.1.0.1", 80, 1000) for n in range(1, 400)]
ENDLESS, FIRST, SECOND = FLOWS[:3]
# Twin with the fallback of 1 ms.
TOTAL = K + 25_000


def sample(backlog: int, limit: int = LIMIT, peak: int | None = None, rate: int = RATE) -> QueueSample:
    return QueueSample(backlog, backlog if peak is None else peak, limit, rate, 0, 1, float(backlog))


def port(drops: bool = False, **values) -> SedPort:
    law = SedPort(parameters(Sed, **values), drops)
    law.queue_sampled(sample(0), 0, 0.0)
    return law


def start(law: SedPort, *flows: FlowKey, now: float = 0.0, step: int = 1) -> WindowPlan | None:
    answer = None
    for count, flow in enumerate(flows, 1):
        answer = law.flow_started(info(flow, step=step), count, now) or answer
    return answer


def moving(*flows: FlowKey, acked: int = 0, sent: int = 1, rtt: float = 0.0) -> dict[FlowKey, FlowProgress]:
    return {flow: FlowProgress(acked, sent, rtt, True) for flow in flows}


# Settings


def test_the_parameters_are_the_settings():
    policy = Sed(Config().section("sed"))
    assert dataclasses.asdict(policy.parameters) == Config().section("sed")
    assert policy.parameters == SedParameters(0.25, 0.001, 1, 0.9, "demote", 10)
    assert {field.name for field in dataclasses.fields(SedParameters)} == set(settings_of("sed"))
    assert base.find("sed") is Sed
    assert base.recovery_of(policy) is None
    assert policy.interval == 0.01


@pytest.mark.parametrize(
    ("mode", "dupack", "reinject"),
    [("dupack", True, False), ("reinject", False, True), ("both", True, True), ("none", False, False)],
)
def test_rsed_is_sed_and_recovery(mode, dupack, reinject):
    values = {("rsed", "recovery"): mode, ("sed", "threshold"): 0.5}
    policy = Rsed(Config(values).section("rsed"))
    assert policy.recovery == base.recovery_of(policy) == Recovery(dupack, reinject, 1 << 20, 1.0)
    assert policy.parameters == parameters(Sed, threshold=0.5)
    assert base.find("rsed") is Rsed
    law = policy.port_law(PORT)
    law.queue_sampled(sample(0), 0, 0.0)
    assert law.thresholds() == Thresholds(62_500, 12_500, drops=dupack or reinject)
    assert not base.same(policy, Rsed(Config().section("rsed")))


# When windows are set


def test_the_switch_gets_the_thresholds_of_congestion():
    law = SedPort(parameters(Sed))
    assert law.thresholds() is None
    law.queue_sampled(sample(0), 0, 0.0)
    assert law.thresholds() == Thresholds(K, 6_250)
    law.queue_sampled(sample(0, limit=2), 0, 0.1)
    assert law.thresholds() == Thresholds(1, 0)
    law.queue_sampled(sample(0, limit=0), 0, 0.2)
    assert law.thresholds() is None


def test_windows_in_congestion_only():
    law = port()
    assert start(law, ENDLESS) is None
    law.progressed(moving(ENDLESS), 0.01)
    assert law.queue_sampled(sample(K - 1), 1, 0.01) is None
    plan = law.congestion(Congestion.CNG, K, 0.02)
    assert plan == WindowPlan(flows={ENDLESS: TOTAL})
    # They linger: the queue is short because of them.
    assert law.congestion(Congestion.NOM, 6_000, 0.03) is None
    assert law.queue_sampled(sample(0), 1, 0.129) != NO_WINDOWS
    assert law.governing
    assert law.queue_sampled(sample(0), 1, 0.131) == NO_WINDOWS
    assert law.congestion(Congestion.NOM, 6_000, 0.14) is None


def test_windows_that_linger_stay_when_the_queue_is_long_again():
    law = port()
    start(law, ENDLESS)
    law.congestion(Congestion.CNG, K, 0.02)
    law.congestion(Congestion.NOM, 6_000, 0.03)
    law.congestion(Congestion.CNG, K, 0.12)
    law.congestion(Congestion.NOM, 6_000, 0.13)
    # A repeated message does not restart the time.
    law.congestion(Congestion.NOM, 6_000, 0.2)
    assert law.queue_sampled(sample(0), 1, 0.229) != NO_WINDOWS
    assert law.queue_sampled(sample(0), 1, 0.231) == NO_WINDOWS


def test_samples_replace_a_lost_congestion_message():
    law = port()
    start(law, ENDLESS)
    law.progressed(moving(ENDLESS), 0.01)
    assert law.queue_sampled(sample(K), 1, 0.01) == WindowPlan(flows={ENDLESS: TOTAL})
    assert law.queue_sampled(sample(6_000), 1, 0.02) is None
    # The peak shows that it was not below all the time.
    assert law.queue_sampled(sample(6_000, peak=7_000), 1, 0.03) is not NO_WINDOWS
    law.queue_sampled(sample(6_000), 1, 0.04)
    assert law.governing
    assert law.queue_sampled(sample(6_000), 1, 0.139) is not NO_WINDOWS
    assert law.queue_sampled(sample(6_000), 1, 0.141) == NO_WINDOWS


def test_a_port_with_an_unknown_buffer_is_not_governed():
    law = SedPort(parameters(Sed))
    start(law, *FLOWS[:100])
    assert law.congestion(Congestion.CNG, 50_000, 0.0) is None
    assert not law.governing
    law.queue_sampled(sample(50_000), 100, 0.01)
    assert law.governing
    assert law.queue_sampled(sample(50_000, limit=0), 100, 0.02) == NO_WINDOWS


def test_a_volley_is_anticipated():
    """2 first windows of ten segments are less than K, and three are not."""
    law = port()
    start(law, *FLOWS[:2], now=0.001)
    assert not law.governing
    start(law, FLOWS[2], now=0.001)
    assert law.governing
    # The volley did not arrive: the windows are removed, without a message of the switch.
    for tick in range(1, 11):
        law.queue_sampled(sample(0), 9, 0.002 + tick / 100)
        assert law.governing
    assert law.queue_sampled(sample(0), 9, 0.113) == NO_WINDOWS and not law.governing


def test_an_anticipated_volley_that_arrives_keeps_its_windows():
    law = port()
    start(law, *FLOWS[:9], now=0.001)
    for tick in range(2, 20):
        law.queue_sampled(sample(20_000), 9, tick / 100)
    assert law.governing
    law.congestion(Congestion.CNG, K, 0.2)
    assert law.congestion(Congestion.NOM, 0, 0.21) is None
    assert law.queue_sampled(sample(0), 9, 0.309) != NO_WINDOWS
    assert law.queue_sampled(sample(0), 9, 0.311) == NO_WINDOWS


def test_flows_that_start_one_after_another_are_no_volley():
    law = port()
    for place in range(100):
        start(law, FLOWS[place], now=place * 0.0015)
    assert not law.governing


def test_flows_that_start_faster_than_the_port_drains_their_first_windows_are_a_volley():
    """14,600 bytes each, and 25,000 bytes a millisecond; K is 31,250."""
    law = port()
    governing = []
    for place in range(4):
        start(law, FLOWS[place], now=place * 0.0003)
        governing.append(law.governing)
    assert governing == [False] * 3 + [True]


def test_outstanding_first_windows_are_bounded_with_an_unknown_rate():
    law = port()
    law.rate = 0
    for place in range(100):
        start(law, FLOWS[place], now=place * 0.01)
    assert not law.governing


def test_a_flood_of_syns_is_anticipated_for_a_moment_only():
    engine = PolicyEngine(Sed(Config().section("sed")), 2.0)
    opener = PortKey(2, 7)
    governed = 0
    engine.sampled(PORT, sample(3_000), 0.0)
    for tick in range(300):
        now = 0.001 + tick / 100
        for place in range(50):
            key = FlowKey("10.9.0.1", "10.1.0.1", place, tick)
            engine.flow_started(PORT, dataclasses.replace(info(key), opener=opener), now)
        engine.sampled(PORT, sample(3_000), now + 0.009)
        engine.progressed(PORT, {}, now + 0.009)
        governed += law_above(engine).governing
    assert 0 < governed < 15


# While the switch limits flows


def test_a_report_that_the_switch_limits_flows_is_congestion():
    law = port()
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    assert law.limited(False, 0.01) is None and not law.governing
    assert law.limited(True, 0.05) == WindowPlan(flows={FIRST: TOTAL})
    assert law.limited(True, 0.1) is None, "known"


def test_shares_stay_as_long_as_the_switch_limits_flows():
    """Without its share, a flow would be left with its base window."""
    law = port()
    law.flow_started(info(FIRST), 1, 0.0)
    law.congestion(Congestion.CNG, K, 0.0)
    law.limited(True, 0.0)
    for tick in range(1, 41):
        law.progressed(moving(FIRST, sent=tick), tick / 100)
        assert law.queue_sampled(sample(0), 1, tick / 100) != NO_WINDOWS
    law.limited(False, 0.4)
    assert law.queue_sampled(sample(0), 1, 0.41) == NO_WINDOWS


def test_what_the_law_of_a_silent_port_reports_is_old():
    """A law runs with the packets of its port: without any, it stays in the mode that it was in."""
    law = port()
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    law.congestion(Congestion.CNG, K, 0.0)
    law.limited(True, 0.0)
    silent = sample(0)._replace(active=0)
    over = [tick for tick in range(1, 60) if law.queue_sampled(silent, 1, tick / 100) == NO_WINDOWS]
    assert over == [20], "0.2 s after the last progress, and linger had ended before"
    assert law.limited(True, 0.65) is None and not law.governing
    law.queue_sampled(sample(0), 1, 0.7)
    assert law.limited(True, 0.7) is not None and law.governing


def test_a_port_of_unknown_size_is_not_governed_by_a_report():
    law = SedPort(parameters(Sed))
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    assert law.limited(True, 0.0) is None and not law.governing


# Which windows


def test_a_flow_with_a_deadline_gets_the_window_it_needs():
    """500,000 bytes in 100 ms are a fifth of 25 MB/s: with a margin of 1, a fifth of all windows."""
    law = port(margin=1.0)
    start(law, ENDLESS, FIRST)
    law.announced(FIRST, Announcement(500_000, 0.2), 0.1)
    plan = law.congestion(Congestion.CNG, K, 0.1)
    assert plan.flows == {FIRST: TOTAL // 5, ENDLESS: TOTAL - TOTAL // 5}
    # Half of it is acknowledged after half of the time: the same window again.
    plan = law.progressed(moving(FIRST, acked=250_000) | moving(ENDLESS), 0.15)
    assert plan.flows[FIRST] == TOTAL // 5
    # It is late: more.
    plan = law.progressed(moving(FIRST, acked=300_000, sent=2) | moving(ENDLESS, sent=2), 0.18)
    assert plan.flows[FIRST] == 2 * TOTAL // 5


def test_flows_are_planned_to_end_before_their_deadline():
    law = port(margin=0.5)
    start(law, ENDLESS, FIRST)
    law.announced(FIRST, Announcement(500_000, 0.3), 0.1)
    plan = law.congestion(Congestion.CNG, K, 0.1)
    assert plan.flows[FIRST] == TOTAL // 5
    # The target has passed: its window is all its remaining bytes, the maximum.
    law.progressed(moving(FIRST, acked=490_000) | moving(ENDLESS), 0.25)
    plan = law.progressed(moving(FIRST, acked=495_000, sent=2) | moving(ENDLESS, sent=2), 0.29)
    assert plan.flows[FIRST] == 5_000


def test_a_deadline_that_has_passed():
    for missed, window in (("demote", TOTAL // 2), ("pause", 0)):
        law = port(missed=missed)
        start(law, ENDLESS, FIRST)
        law.announced(FIRST, Announcement(500_000, 0.05), 0.0)
        plan = law.congestion(Congestion.CNG, K, 0.1)
        assert plan.flows[FIRST] == window
        # A flow whose bytes are all acknowledged has not missed its deadline.
        plan = law.progressed(moving(FIRST, acked=500_000) | moving(ENDLESS), 0.11)
        assert plan.flows[FIRST] == TOTAL // 2


def test_a_deadline_without_size_or_a_size_without_deadline_is_ignored():
    law = port()
    start(law, ENDLESS, FIRST, SECOND)
    law.announced(FIRST, Announcement(None, 9.0), 0.0)
    law.announced(SECOND, Announcement(1_000_000, None), 0.0)
    plan = law.congestion(Congestion.CNG, K, 0.1)
    assert set(plan.flows.values()) == {TOTAL // 3}


def test_flows_that_have_not_sent_yet_are_under_the_base_window():
    """The silent side of a connection needs no more; where the switch does not report it, all flows have
    their share.
    """
    law = port()
    start(law, ENDLESS, FIRST)
    law.progressed(moving(ENDLESS) | moving(FIRST, sent=0), 0.01)
    assert law.congestion(Congestion.CNG, K, 0.01) == WindowPlan(flows={ENDLESS: TOTAL})
    plan = law.progressed(moving(ENDLESS, sent=2) | moving(FIRST, sent=1), 0.02)
    assert plan.flows == {ENDLESS: TOTAL // 2, FIRST: TOTAL // 2}
    blind = port()
    start(blind, ENDLESS, FIRST)
    assert blind.congestion(Congestion.CNG, K, 0.099).flows == {}
    assert set(blind.queue_sampled(sample(K), 2, 0.12).flows) == {ENDLESS, FIRST}


def test_flows_that_send_nothing_take_no_share():
    law = port()
    start(law, ENDLESS, FIRST)
    plan = law.congestion(Congestion.CNG, K, 0.01)
    for tick in range(1, 31):
        progress = moving(ENDLESS, sent=tick) | moving(FIRST, sent=1)
        plan = law.progressed(progress, 0.01 + tick / 100) or plan
        if tick < 20:
            assert plan.flows == {ENDLESS: TOTAL // 2, FIRST: TOTAL // 2}
    assert plan.flows == {ENDLESS: TOTAL}
    plan = law.progressed(moving(ENDLESS, sent=99) | moving(FIRST, sent=2), 0.4)
    assert plan.flows == {ENDLESS: TOTAL // 2, FIRST: TOTAL // 2}


def test_half_open_connections_get_no_share():
    """Neither a share nor, under a service's deadline, a need."""
    law = port(initcwnd=1)
    start(law, ENDLESS)
    law.progressed(moving(ENDLESS), 0.0)
    start(law, *FLOWS[1:30], now=0.1)
    for flow in FLOWS[10:30]:
        law.announced(flow, Announcement(100_000, 5.0), 0.1)
    law.congestion(Congestion.CNG, K, 0.11)
    half_open = {flow: FlowProgress(0, 0, 0.0, False) for flow in FLOWS[1:20]}
    assert law.progressed(half_open | moving(ENDLESS, sent=2), 0.13).flows == {ENDLESS: TOTAL}


def test_the_round_trip_time_is_measured():
    law = port()
    start(law, ENDLESS, FIRST)
    law.congestion(Congestion.CNG, K, 0.01)
    plan = law.progressed(moving(ENDLESS, rtt=0.002) | moving(FIRST), 0.02)
    assert plan.flows[ENDLESS] == (K + 50_000) // 2
    law.progressed(moving(ENDLESS, rtt=0.009), 0.03)  # it has only a handshake
    assert law.rtt.value == 0.002
    law.progressed(moving(FIRST, rtt=0.010), 0.04)
    assert law.rtt.value == pytest.approx(0.003)
    law.progressed(moving(FLOWS[9], rtt=0.010), 0.05)  # not of this port
    assert law.rtt.value == pytest.approx(0.003)


def test_queueing_delay_is_no_part_of_the_round_trip():
    """Otherwise a longer queue would allow a still longer one."""
    rtt = MeanRtt(0.001)
    assert rtt.value == 0.001
    rtt.sample(0.006, 0.004)
    assert rtt.value == pytest.approx(0.002)
    rtt.sample(0.006, 0.0059)
    assert rtt.value == pytest.approx(0.0015)
    rtt.sample(0.0055, 0.0)
    assert rtt.value == pytest.approx(0.002)
    fast = MeanRtt(0.001)
    fast.sample(0.0002, 0.004)
    assert fast.value == 0.0002


def test_a_port_of_unknown_rate():
    law = SedPort(parameters(Sed, margin=1.0))
    law.queue_sampled(sample(0, rate=0), 0, 0.0)
    start(law, ENDLESS, FIRST)
    law.announced(FIRST, Announcement(500_000, 0.1), 0.0)
    law.progressed(moving(ENDLESS, FIRST, rtt=0.002), 0.0)
    plan = law.congestion(Congestion.CNG, K, 0.0)
    assert plan.flows == {FIRST: 10_000, ENDLESS: K - 10_000}


# How often


def test_flows_that_start_or_end_together_are_computed_together():
    law = port()
    start(law, ENDLESS)
    law.progressed(moving(ENDLESS), 0.1)
    law.congestion(Congestion.CNG, K, 0.1)
    assert start(law, FIRST, now=0.1) is None
    assert law.announced(FIRST, Announcement(10_000, 0.2), 0.1039) is None
    start(law, SECOND, now=0.1039)
    plan = law.announced(SECOND, Announcement(10_000, 0.2), 0.1041)
    assert set(plan.flows) == {ENDLESS, FIRST, SECOND}
    assert law.flow_ended(info(FIRST), 2, 0.105) is None
    # The postponed computation is done with the next sample.
    plan = law.queue_sampled(sample(K), 2, 0.11)
    assert set(plan.flows) == {ENDLESS, SECOND}
    assert law.queue_sampled(sample(K), 2, 0.12) is None
    assert law.queue_sampled(sample(K), 2, 0.125) is not None


def test_windows_that_hardly_change_are_not_sent_again():
    law = port(margin=1.0)
    start(law, ENDLESS, FIRST, step=512)
    law.announced(FIRST, Announcement(500_000, 0.2), 0.1)
    before = law.congestion(Congestion.CNG, K, 0.1)
    assert before.flows[FIRST] == 11_264
    # 4 % more are needed, and then 10 %.
    at = 0.15
    after = law.progressed(moving(FIRST, acked=240_000) | moving(ENDLESS), at)
    assert after == before
    after = law.progressed(moving(FIRST, acked=225_000, sent=2) | moving(ENDLESS, sent=2), at + 0.005)
    assert after.flows[FIRST] > before.flows[FIRST]


def test_progress_is_requested_while_it_is_needed():
    law = port()
    assert not law.wants_progress()
    start(law, ENDLESS)
    assert law.wants_progress()  # it may only be a SYN
    law.progressed(moving(ENDLESS), 0.01)
    assert not law.wants_progress()
    law.announced(ENDLESS, Announcement(1000, 9.0), 0.02)
    assert law.wants_progress()
    law.announced(ENDLESS, None, 0.03)
    assert not law.wants_progress()
    law.congestion(Congestion.CNG, K, 0.04)
    assert law.wants_progress()


def test_the_last_flow_leaves_nothing_behind():
    law = port()
    start(law, *FLOWS[:50])
    law.progressed(moving(*FLOWS[:50], rtt=0.001), 0.01)
    for flow in FLOWS[:50]:
        law.flow_ended(info(flow), 0, 0.02)
    assert law.queue_sampled(sample(0), 0, 0.03) == WindowPlan()
    law.congestion(Congestion.NOM, 0, 0.04)
    assert not len(law.gif) and not len(law.half_open)
    assert not law._untimed and not law._uncounted and not law.windows


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(0, 9), st.integers(0, 0)),
        st.tuples(st.just("end"), st.integers(0, 9), st.integers(0, 0)),
        st.tuples(st.just("announce"), st.integers(0, 9), st.integers(1, 2_000_000)),
        st.tuples(st.just("sample"), st.integers(0, LIMIT), st.integers(0, 1)),
        st.tuples(st.just("congestion"), st.integers(0, 1), st.integers(0, LIMIT)),
        st.tuples(st.just("progress"), st.integers(0, 9), st.integers(0, 2_000_000)),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(STEPS, st.sampled_from(["demote", "pause"]))
def test_windows_are_sound_after_any_events(steps, missed):
    """Only while governing, for flows of the port, none between 0 and one segment, and together at most the
    total, the tolerated change (5 %) and the floors.
    """
    law = SedPort(parameters(Sed, missed=missed))
    plan, now, there = NO_WINDOWS, 0.0, {}
    for what, one, two in steps:
        now += 0.003
        flow = FLOWS[one % 10]
        answer = None
        if what == "start" and flow not in there:
            there[flow] = None
            answer = law.flow_started(info(flow, step=512), len(there), now)
        elif what == "end" and flow in there:
            del there[flow]
            answer = law.flow_ended(info(flow, step=512), len(there), now)
        elif what == "announce" and flow in there:
            answer = law.announced(flow, Announcement(two, now + two / 4e6), now)
        elif what == "sample":
            answer = law.queue_sampled(sample(one), len(there), now)
        elif what == "congestion":
            answer = law.congestion(list(Congestion)[one], two, now)
        elif what == "progress":
            answer = law.progressed(moving(flow, acked=two, sent=two, rtt=two / 1e9), now)
        plan = plan if answer is None else answer
        assert law.governing or not plan
        assert all(window == 0 or window >= 1460 for window in plan.flows.values())
        if answer:
            assert set(answer.flows) <= set(there)
            floors = 1536 * len(there)
            assert sum(answer.flows.values()) <= 1.05 * law.total + floors + 512 * len(there)


# A new law


def law_above(engine: PolicyEngine) -> SedPort:
    """The controller's part of the law of the port."""
    law = engine._ports[PORT].law
    assert isinstance(law, LayeredPort) and isinstance(law.above, SedPort)
    return law.above


def fresh(backlog: int, flows: int = 40, state: Congestion | None = None) -> SedPort:
    """The law of a port that has long had flows when SED is chosen at 5 s."""
    engine = PolicyEngine(base.find("droptail")({}), 2.0)
    engine.sampled(PORT, sample(backlog), 0.0)
    for flow in FLOWS[:flows]:
        engine.flow_started(PORT, info(flow), 0.0)
    if state is not None:
        engine.congestion(PORT, state, backlog, 0.0)
    engine.use(Sed(Config().section("sed")), 5.0)
    law = engine._ports[PORT].law
    assert isinstance(law, LayeredPort) and isinstance(law.above, SedPort)
    return law.above


def test_flows_that_were_there_before_the_law_are_no_volley():
    law = fresh(backlog=0)
    assert not law.governing
    # They are not counted: two first windows fit below K, and three do not.
    start(law, *FLOWS[100:102], now=5.0)
    assert not law.governing
    start(law, FLOWS[102], now=5.0)
    assert law.governing


@pytest.mark.parametrize(("backlog", "state"), [(K, None), (K, Congestion.CNG), (K - 1, Congestion.CNG)])
def test_a_queue_that_is_congested_when_the_law_begins_is_governed(backlog, state):
    law = fresh(backlog=backlog, state=state)
    assert law.governing


def test_flows_that_were_there_before_the_law_do_not_use_up_the_allowance(monkeypatch):
    monkeypatch.setattr(sed_port, "SYN_ALLOWANCE", 3)
    law = fresh(backlog=K)
    assert len(law.half_open) == 0
    law.progressed({}, 5.005)
    # All flows count until the switch could have reported them, beyond the allowance too.
    law.announced(FLOWS[30], Announcement(10_000, 6.0), 5.01)
    law.progressed({}, 5.012)
    assert law.windows[FLOWS[30]] > 0

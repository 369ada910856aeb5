"""SED with its base windows in the switch: the law that is requested, and the controller's part above it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.config.loader import Config
from fairq_ryu.law_spec import LawFlags, LawKind, LawSpec, out_of_bounds
from fairq_ryu.model import (
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    WindowPlan,
)
from fairq_ryu.policies import base
from fairq_ryu.policies.parts.allocation import base_window
from fairq_ryu.policies.rsed import Rsed
from fairq_ryu.policies.sed import Sed
from fairq_ryu.policies.sed_above import SedAbove
from fairq_ryu.policies.sed_port import SedPort
from fairq_ryu.policies.sed_settings import SedParameters, deadline_settings
from fairq_ryu.policies.switch_laws import NO_WINDOW, Law, LawInput, LawParameters
from tests.support.fakes import info

LIMIT, RATE, K = 125_000, 25_000_000, 31_250
PORT = PortKey(1, 1)
FIRST, SECOND, THIRD = (FlowKey("10.0.0.1", "10.1.0.1", 80, 1000 + n) for n in range(3))
TWIN = K + RATE // 1000
MS = 1_000_000


def sample(backlog: int, active: int = 1, limit: int = LIMIT) -> QueueSample:
    return QueueSample(backlog, backlog, limit, RATE, 0, active, float(backlog))


def above(**parameters) -> SedAbove:
    law = SedAbove(SedParameters(**parameters))
    law.queue_sampled(sample(0), 0, 0.0)
    return law


def moving(*flows: FlowKey, sent: int = 1) -> dict[FlowKey, FlowProgress]:
    return {flow: FlowProgress(0, sent, 0.0, True) for flow in flows}


def twin(spec: LawSpec, limit: int = LIMIT) -> Law:
    """The law as the agent would run it, after its first tick."""
    made = parameters(spec, QueueLimits("model", limit, RATE))
    law = Law(LawParameters(**{name: getattr(made, name) for name in LawParameters.__slots__}))
    law.tick(LawInput(MS, 0, 0, 0))
    return law


# What is requested


def test_the_law_has_the_settings_of_sed():
    policy = Sed(Config().section("sed"))
    assert base.switch_law(policy, PORT) == LawSpec(
        LawKind.SED_BASE,
        flags=LawFlags.ANTICIPATE,
        interval_us=200,
        linger_us=100_000,
        target_ppm=250_000,
        calm_ppm=50_000,
        first_window=10,
        limiting_segments=1,
    )
    changed = {"anticipate": False, "base_segments": 3, "initial_window": 4, "linger": 0.0, "nom": 0.5}
    changed |= {"syn_allowance": 9}
    spec = Sed(Config().section("sed") | changed | {"switch_interval": 0.001}).switch_law(PORT)
    assert spec is not None
    assert (spec.flags, spec.limiting_segments, spec.first_window, spec.syn_allowance) == (0, 3, 4, 9)
    assert (spec.linger_us, spec.calm_ppm, spec.interval_us) == (0, 125_000, 1000)


@pytest.mark.parametrize(("policy", "drops"), [(Sed, False), (Rsed, True)])
def test_where_the_law_runs(policy, drops):
    values = Config().section(policy.name)
    chosen = policy(values)
    flows = base.flow_law(chosen, PORT)
    assert type(flows) is SedAbove and flows.drops == drops
    assert type(chosen.port_law(PORT)) is SedPort and chosen.port_law(PORT).drops == drops
    alone = policy(values | {"where": "controller"})
    assert base.switch_law(alone, PORT) is None
    assert not base.same(chosen, alone)


@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_an_agent_accepts_the_bounds_of_every_setting(end):
    for setting in deadline_settings("sed"):
        bound = getattr(setting, end)
        if bound is not None and not setting.choices:
            spec = Sed(Config().section("sed") | {setting.name: bound}).switch_law(PORT)
            assert spec is not None and out_of_bounds(spec) is None, setting.name


@given(
    st.floats(0.01, 1), st.floats(0, 0.95), st.integers(3_000, 1 << 30).filter(lambda limit: limit % 2 == 0)
)
def test_the_switch_and_the_controller_have_the_same_thresholds(threshold, nom, limit):
    """To one byte and the millionths of the buffer in which the channel counts."""
    values = {"threshold": threshold, "nom": nom}
    policy = Sed(Config().section("sed") | values)
    law = SedAbove(policy.parameters)
    law.queue_sampled(sample(0, limit=limit), 0, 0.0)
    controller, switch = law.thresholds(), twin(policy.switch_law(PORT), limit).parameters
    off = limit / 1e6 + 2
    assert abs(switch.target - controller.cng) <= off
    # The switch's queue is short below `calm`, the controller's at NOM.
    assert abs(switch.calm - 1 - controller.nom) <= off


class NothingLeft(SedAbove):
    """Only the base windows can be given."""

    total = 0.0


@given(st.integers(1, 10), st.integers(1, 65_535), st.integers(0, 14), st.integers(1, 65_535))
def test_the_switch_gives_each_flow_the_base_window_of_the_controller(segments, mss, scale, other):
    """Whatever segments other flows of the port have. The switch rounds up to the step, as with all laws."""
    step = 1 << scale
    controller = NothingLeft(SedParameters(base_segments=segments, anticipate=False))
    controller.queue_sampled(sample(0), 0, 0.0)
    for each in (info(FIRST, mss, step), info(SECOND, other), info(THIRD, other)):
        controller.flow_started(each, 1, 0.0)
    controller.progressed(moving(FIRST, SECOND, THIRD), 0.0)
    plan = controller.congestion(Congestion.CNG, K, 0.0)
    assert plan is not None and plan.flows == {}, "no flow needs a rule of its own"

    switch = twin(Sed(Config().section("sed") | {"base_segments": segments}).switch_law(PORT))
    for size in (mss, other):
        switch.saw_segment(size, 0, 0)
    switch.tick(LawInput(2 * MS, 0, K, 2))
    granted = -(-switch.window(2, 0, 0, mss) // step) * step
    assert granted == controller.windows[FIRST] == base_window(mss, step, segments)


# The part in the controller


def test_shares_and_grants_of_flows_are_those_of_the_whole_law():
    plans = []
    for law in (SedAbove(SedParameters(anticipate=False)), SedPort(SedParameters(anticipate=False))):
        law.queue_sampled(sample(0), 0, 0.0)
        for number, flow in enumerate((FIRST, SECOND, THIRD), 1):
            law.flow_started(info(flow), number, 0.0)
        law.progressed(moving(FIRST, SECOND), 0.0)
        law.announced(SECOND, Announcement(500_000, 0.2), 0.1)
        plans.append(law.congestion(Congestion.CNG, K, 0.1))
    assert plans[0] == plans[1]
    assert set(plans[0].flows) == {FIRST, SECOND, THIRD}


def test_a_report_that_the_switch_limits_flows_is_congestion():
    law = above()
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    assert law.limited(False, 0.01) is None and not law.governing
    assert law.limited(True, 0.05) == WindowPlan(window=1460, flows={FIRST: TWIN})
    assert law.limited(True, 0.1) is None, "known"


def test_shares_stay_as_long_as_the_switch_limits_flows():
    """Without its share, a flow would be left with its base window."""
    law = above()
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
    law = above()
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    law.congestion(Congestion.CNG, K, 0.0)
    law.limited(True, 0.0)
    over = [
        tick for tick in range(1, 60) if law.queue_sampled(sample(0, active=0), 1, tick / 100) == NO_WINDOWS
    ]
    assert over == [20], "0.2 s after the last progress, and linger had ended before"
    assert law.limited(True, 0.65) is None and not law.governing
    law.queue_sampled(sample(0, active=1), 1, 0.7)
    assert law.limited(True, 0.7) is not None and law.governing


def test_a_port_of_unknown_size_is_not_governed_by_a_report():
    law = SedAbove(SedParameters())
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    assert law.limited(True, 0.0) is None and not law.governing


def test_the_paper_s_windows_end_with_the_message():
    law = above(linger=0.0)
    law.flow_started(info(FIRST), 1, 0.0)
    law.progressed(moving(FIRST), 0.0)
    law.congestion(Congestion.CNG, K, 0.0)
    law.limited(True, 0.0)
    assert law.congestion(Congestion.NOM, 0, 0.01) == NO_WINDOWS


# The law in the switch, by its twin


def test_a_volley_is_anticipated_by_both_at_the_same_flow():
    switch, controller = twin(Sed(Config().section("sed")).switch_law(PORT)), above()
    granted = []
    for number, flow in enumerate((FIRST, SECOND, THIRD), 1):
        switch.flow_began(0, 2 * MS)
        controller.flow_started(info(flow), number, 0.002)
        granted.append((switch.window(number, 0, 0, 1460), controller.governing))
    assert granted == [(NO_WINDOW, False), (NO_WINDOW, False), (1460, True)]


def test_flows_that_begin_under_base_windows_do_not_prolong_them():
    switch = twin(Sed(Config().section("sed")).switch_law(PORT))
    switch.tick(LawInput(2 * MS, 0, K, 1))
    until = None
    for now in range(3 * MS, 300 * MS, MS):
        switch.tick(LawInput(now, 0, 0, 1))
        if not switch.mode:
            until = now
            break
        for _ in range(5):
            switch.flow_began(0, now)
    assert until == 102 * MS, "0.1 s after the queue was short"


def test_a_silence_counts_as_a_short_queue():
    """A tick comes with a packet only: the first after a silence finds windows that have lingered enough."""
    switch = twin(Sed(Config().section("sed")).switch_law(PORT))
    for now, backlog in ((2, K), (3, 0), (1000, 0)):
        switch.tick(LawInput(now * MS, 0, backlog, 1))
    assert not switch.mode
    for now in range(1001, 1020):
        switch.tick(LawInput(now * MS, 0, 0, 1))
    assert switch.window(1, 0, 0, 1460) == NO_WINDOW


def test_windows_open_in_steps_and_in_proportion_to_segments():
    switch = twin(Sed(Config().section("sed") | {"linger": 0.0}).switch_law(PORT))
    switch.tick(LawInput(2 * MS, 0, K, 2))
    sizes = []
    now = 2 * MS
    while (window := switch.window(2, 0, 0, 1460)) != NO_WINDOW:
        sizes.append((window, switch.window(2, 0, 0, 536)))
        now += MS // 5
        switch.tick(LawInput(now, 0, 0, 2))
    assert sizes[0] == (1460, 536)
    assert all(before[0] * 9 // 8 == after[0] for before, after in pairwise(sizes[1:]))
    assert all(small == large * 536 // 1460 for large, small in sizes)
    assert LIMIT * 8 // 9 - 2 < sizes[-1][0] < LIMIT

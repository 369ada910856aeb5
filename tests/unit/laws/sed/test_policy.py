"""What SED asks of the switch, and that switch and controller have the same thresholds and base windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.config.loader import Config
from fairq_ryu.laws.rsed.policy import Rsed
from fairq_ryu.laws.sed import SedLaw
from fairq_ryu.laws.sed.allocation import base_window
from fairq_ryu.laws.sed.policy import Sed
from fairq_ryu.laws.sed.port import SedPort
from fairq_ryu.laws.sed.settings import SETTINGS
from fairq_ryu.model import Congestion, FlowKey, FlowProgress, PortKey, QueueSample
from fairq_ryu.policies import base
from tests.support.fakes import info
from tests.support.host_laws import LIMIT, RATE, FedPort, HostLaw, in_force
from tests.support.laws import parameters

K = 31_250
PORT = PortKey(1, 1)
FIRST, SECOND, THIRD = (FlowKey("10.0.0.1", "10.1.0.1", 80, 1000 + n) for n in range(3))


def sample(limit: int = LIMIT) -> QueueSample:
    return QueueSample(0, 0, limit, RATE, 0, 1, 0.0)


def test_the_law_has_the_settings_of_sed():
    policy = Sed(Config().section("sed"))
    assert base.switch_law(policy, PORT) == SedLaw(
        anticipate=1,
        linger_us=100_000,
        target_ppm=250_000,
        calm_ppm=50_000,
        first_window=10,
        limiting_segments=1,
    )
    changed = {"base_segments": 3, "initcwnd": 4, "threshold": 0.5}
    spec = Sed(Config().section("sed") | changed).switch_law(PORT)
    assert (spec.limiting_segments, spec.first_window) == (3, 4)
    assert (spec.target_ppm, spec.calm_ppm) == (500_000, 100_000)


@pytest.mark.parametrize(("policy", "drops"), [(Sed, False), (Rsed, True)])
def test_the_controller_has_the_windows_of_single_flows(policy, drops):
    above = base.port_law(policy(Config().section(policy.name)), PORT)
    assert isinstance(above, SedPort) and above.drops == drops


@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_an_agent_accepts_the_bounds_of_every_setting(end):
    for setting in SETTINGS:
        bound = getattr(setting, end)
        if bound is not None and not setting.choices:
            spec = Sed(Config().section("sed") | {setting.name: bound}).switch_law(PORT)
            assert spec.wrong() is None, setting.name


@given(st.floats(0.01, 1), st.integers(3_000, 1 << 30).filter(lambda limit: limit % 2 == 0))
def test_the_switch_and_the_controller_have_the_same_thresholds(threshold, limit):
    """To one byte and the millionths of the buffer in which the channel counts."""
    policy = Sed(Config().section("sed") | {"threshold": threshold})
    law = SedPort(policy.parameters)
    law.queue_sampled(sample(limit), 0, 0.0)
    controller, switch = law.thresholds(), in_force(policy.switch_law(PORT), limit)
    assert controller is not None
    off = limit / 1e6 + 2
    assert abs(switch.target - controller.cng) <= off
    # The switch's queue is short below `calm`, the controller's at NOM.
    assert abs(layout.own("sed_law", switch).calm - 1 - controller.nom) <= off


class NothingLeft(SedPort):
    """Only the base windows can be given."""

    total = 0.0


@given(st.integers(1, 10), st.integers(1, 65_535), st.integers(0, 14), st.integers(1, 65_535))
def test_the_switch_gives_each_flow_the_base_window_of_the_controller(segments, mss, scale, other):
    """Whatever segments other flows of the port have. The switch rounds up to the step, as with all laws."""
    step = 1 << scale
    controller = NothingLeft(parameters(Sed, base_segments=segments))
    controller.queue_sampled(sample(), 0, 0.0)
    for each in (info(FIRST, mss, step), info(SECOND, other), info(THIRD, other)):
        controller.flow_started(each, 1, 0.0)
    controller.progressed({key: FlowProgress(0, 1, 0.0, True) for key in (FIRST, SECOND, THIRD)}, 0.0)
    controller.congestion(Congestion.CNG, K, 0.0)
    plan = controller.queue_sampled(sample()._replace(backlog=K), 3, 0.1)
    assert plan is not None and plan.flows == {}, "no flow needs a rule of its own"

    switch = FedPort(
        HostLaw(in_force(Sed(Config().section("sed") | {"base_segments": segments}).switch_law(PORT)))
    )
    for size in (mss, other):
        switch.law.saw_segment(size, 0, switch.now)
    switch.feed(0, K)
    granted = -(-switch.law.window(2, mss=mss) // step) * step
    assert granted == controller.windows[FIRST] == base_window(mss, step, segments)


def test_a_volley_is_anticipated_by_both_at_the_same_flow():
    switch = FedPort(HostLaw(in_force(Sed(Config().section("sed")).switch_law(PORT))))
    switch.feed(0)
    controller = SedPort(parameters(Sed))
    controller.queue_sampled(sample(), 0, 0.0)
    found = []
    for number, flow in enumerate((FIRST, SECOND, THIRD), 1):
        switch.law.flow_began(0, switch.now)
        controller.flow_started(info(flow), number, 0.002)
        found.append((switch.law.limits, controller.governing))
    assert found == [(False, False), (False, False), (True, True)]

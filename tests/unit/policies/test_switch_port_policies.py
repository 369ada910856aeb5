"""The policies whose law runs in the switch, and nowhere else: settings, and what they ask of the switch."""

from __future__ import annotations

import dataclasses

import pytest

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import settings_of
from fairq_ryu.far_queue import FAR
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import PortKey, QueueSample
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import make
from fairq_ryu.policies.switch_port import LOOK_INTERVAL, SwitchPort

PORT = PortKey(1, 1)
NAMES = ["fairq", "fairswitch", "iqm", "las", "acdc"]


def asked(name: str, **settings: object) -> LawSpec:
    policy = make(name, Config().changed(name, settings))
    spec = base.switch_law(policy, PORT)
    assert spec is not None and spec.wrong() is None
    return spec


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_are_the_settings(name):
    policy = make(name, Config())
    assert dataclasses.asdict(policy.parameters) == Config().section(name)
    assert base.same(policy, make(name, Config()))
    assert policy.interval == LOOK_INTERVAL
    assert base.port_law(policy, PORT) is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_an_agent_accepts_the_bounds_of_every_setting(name, end):
    for setting in settings_of(name).values():
        bound = getattr(setting, end)
        if bound is not None:
            asked(name, **{setting.name: type(setting.default)(bound)})


def test_settings_reach_the_law():
    assert asked("fairq") == FairQLaw()
    assert asked("fairswitch") == FairSwitchLaw()
    assert asked("las") == LasLaw(target_ppm=150_000)
    assert asked("fairq", alpha=0.5, base_rtt=0.01) == FairQLaw(base_rtt_us=10_000, target_ppm=500_000)
    assert asked("las", young_bytes=5, base_rtt=0.02).base_rtt_us == 20_000
    assert asked("fairswitch", turns="on").turns
    assert asked("iqm", interval=0.002, alpha=0.1, initcwnd=4, standing=0.6) == IqmLaw(
        interval_us=2000,
        target_ppm=600_000,
        calm_ppm=100_000,
        first_window=4,
    )


@pytest.mark.parametrize(("number", "kind"), [(7, "netem"), (FAR | 7, FAR_KIND)])
def test_what_is_shown_is_the_target_that_the_agent_works_out(number, kind):
    port = SwitchPort(FairQLaw(), PortKey(1, number))
    port.queue_sampled(QueueSample(0, 0, 100_000, 1000, 0, 0, 0.0), 0, 0.0)
    assert port.display().target == parameters(FairQLaw(), QueueLimits(kind, 100_000, 1000)).target

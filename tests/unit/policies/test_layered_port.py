"""A governed port whose law has a part in the switch and a part in the controller."""

from __future__ import annotations

import pytest

from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.sed import SedLaw
from fairq_ryu.model import (
    NO_WINDOWS,
    Congestion,
    FlowKey,
    FlowProgress,
    PortKey,
    Thresholds,
    WindowKind,
    WindowPlan,
    WindowRule,
)
from fairq_ryu.policies.base import Display
from fairq_ryu.policies.governed_port import REST_AFTER_FAILURE, GovernedPort
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from tests.support.fakes import info
from tests.support.flownet import BACK, KEY
from tests.support.laws import ANNOUNCED, LEASE, SAMPLE, SettledRecorder, rule, window

INTERVAL = 0.01
PORT = PortKey(1, 7)
SPEC = SedLaw()
LAW = WindowRule(WindowKind.LAW, PORT.port, SPEC)
UNKNOWN, KNOWN = SAMPLE._replace(limit=0), SAMPLE._replace(rate=1000)
PROGRESS = {KEY: FlowProgress(1, 1, 0.0, True)}


class Above(SettledRecorder):
    """A law for the flows of a port above its law in the switch."""

    def __init__(self) -> None:
        super().__init__()
        self.wants = Thresholds(500, 100)

    def limited(self, limiting, now):
        return self._record("limited", limiting)

    def display(self) -> Display:
        return Display(target=500.0)


# By the name of the call that follows.
EVENTS = {
    "started": lambda port: port.flow_started(info(BACK), 1.0),
    "ended": lambda port: port.flow_ended(KEY, 1.0),
    "sampled": lambda port: port.sampled(KNOWN, 1.0),
    "congestion": lambda port: port.congestion(Congestion.CNG, 500, 1.0),
    "announced": lambda port: port.announced(KEY, ANNOUNCED, 1.0),
    "progressed": lambda port: port.progressed(PROGRESS, 1.0),
    "limited": lambda port: port.law_reported(True, 1.0),
}


class Layered:
    """A policy with both parts."""

    name, interval = "layered", INTERVAL

    def __init__(self) -> None:
        self.above: list[Above] = []

    def switch_law(self, port: PortKey) -> LawSpec:
        return SPEC

    def port_law(self, port: PortKey) -> Above:
        assert port == PORT
        self.above.append(Above())
        return self.above[-1]


@pytest.fixture
def policy() -> Layered:
    return Layered()


@pytest.fixture
def port(policy: Layered) -> GovernedPort:
    """A port with the flow KEY, whose law is installed."""
    made = GovernedPort(PORT, policy, LEASE / 4, LEASE)
    made.flow_started(info(KEY), 0.0)
    made.sampled(KNOWN, 0.0)
    made.sampled(KNOWN, 0.99)
    return made


def installed(port: GovernedPort) -> dict[FlowKey | None, WindowRule]:
    return {flow: rule.window for flow, rule in port.installed._rules.items()}


@pytest.mark.parametrize("event", EVENTS)
def test_the_flows_of_any_plan_stand_above_the_law(port, policy, event):
    """Nothing else of the plan counts: the rule of the port is the switch's law."""
    above = policy.above[0]
    above.answer = WindowPlan(window=1460, flows={KEY: 9000, BACK: 0})
    EVENTS[event](port)
    assert above.calls[-1][0] == event
    assert installed(port) == {None: LAW, KEY: window(9000), BACK: window(0)}
    above.answer = None
    EVENTS["sampled"](port)
    assert len(installed(port)) == 3, "no plan: the last one stays"
    above.answer = NO_WINDOWS
    changes = port.sampled(KNOWN, 1.1)
    assert set(changes) == {rule(PORT, None, KEY), rule(PORT, None, BACK, wake=BACK in port.flows)}
    assert installed(port) == {None: LAW}


def test_the_law_does_not_move_when_windows_of_flows_do(port, policy):
    sent = []
    for size in (2000, 3000, 4000):
        policy.above[0].answer = WindowPlan(flows={KEY: size})
        sent += port.congestion(Congestion.CNG, 500, 1.0)
    assert sent == [rule(PORT, size, KEY) for size in (2000, 3000, 4000)]


def test_a_queue_of_unknown_size_has_no_law(policy):
    port = GovernedPort(PORT, policy, LEASE / 4, LEASE)
    assert port.flow_started(info(KEY), 0.0) == []
    assert port.sampled(UNKNOWN, 0.1) == []
    policy.above[0].answer = WindowPlan(window=1, flows={KEY: 2000})
    assert port.sampled(UNKNOWN, 0.2) == [rule(PORT, 2000, KEY)]
    assert port.sampled(KNOWN, 0.3) == [rule(PORT, LAW)]
    assert port.flow_started(info(BACK), 0.31) == []
    policy.above[0].answer = NO_WINDOWS
    assert set(port.sampled(UNKNOWN, 0.4)) == {rule(PORT, None), rule(PORT, None, KEY)}


def test_the_controller_s_part_says_what_it_needs(port):
    assert port.wants_progress() and port.thresholds() == Thresholds(500, 100)
    shown = port.display()
    assert (shown.target, shown.where, shown.missing) == (500, "switch", None)
    assert port.interval == INTERVAL
    port.flow_ended(KEY, 1.0)
    assert port.interval == LOOK_INTERVAL, "without flows, the switch needs no controller"


def test_a_refused_law_leaves_no_windows_of_flows_either(port, policy):
    policy.above[0].answer = WindowPlan(flows={KEY: 0})
    port.sampled(KNOWN, 1.0)
    changes = port.law_refused("too fast", 1.1)
    assert set(changes) == {rule(PORT, None), rule(PORT, None, KEY, wake=True)}
    assert (port.display().where, port.display().missing) == (None, "too fast")
    assert (port.wants_progress(), port.law_reported(True, 1.2)) == (False, [])
    calls = len(policy.above[0].calls)
    port.sampled(KNOWN, 1.3)
    assert len(policy.above[0].calls) == calls


def test_a_law_that_another_controller_has_deleted(port, policy):
    policy.above[0].answer = WindowPlan(flows={KEY: 2000})
    port.sampled(KNOWN, 1.0)
    port.law_lost()
    assert port.sampled(KNOWN, 1.05) == [rule(PORT, LAW)]


def test_leases_of_both_parts_are_renewed(port, policy):
    policy.above[0].answer = WindowPlan(flows={KEY: 2000})
    port.sampled(KNOWN, 1.0)
    assert set(port.sampled(KNOWN, 1.6)) == {rule(PORT, LAW), rule(PORT, 2000, KEY)}


@pytest.mark.parametrize("answer", [7, WindowPlan, RuntimeError("a bad day")])
def test_a_controller_s_part_that_fails_harms_its_port_only_for_a_while(port, policy, answer):
    policy.above[0].answer = answer
    assert port.sampled(KNOWN, 1.0) == [rule(PORT, None)]
    assert port.failures == 1
    assert port.sampled(KNOWN, 1.0 + REST_AFTER_FAILURE) == [rule(PORT, LAW)]

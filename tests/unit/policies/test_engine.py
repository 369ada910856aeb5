"""The policy engine: plans become rule changes, and a law that fails harms its own port only."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairq_ryu import laws, policies
from fairq_ryu.errors import UserError
from fairq_ryu.laws.droptail.policy import DropTail
from fairq_ryu.laws.fairq.policy import FairQ
from fairq_ryu.model import (
    NO_WINDOWS,
    FlowInfo,
    FlowKey,
    PortKey,
    QueueSample,
    RuleChange,
    RuleTarget,
    WindowKind,
    WindowPlan,
    WindowRule,
)
from fairq_ryu.policies import base
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.governed_port import REST_AFTER_FAILURE
from tests.support.fakes import info

LEASE = 2.0
PORT, OTHER = PortKey(1, 1), PortKey(1, 2)
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 1000, 80)
FLOWS = [FLOW._replace(sport=1000 + n) for n in range(3)]
SAMPLE = QueueSample(0, 0, 100_000, 0, 0, 0, 0.0)
Answer = WindowPlan | None | Exception


class Law(base.PortLaw):
    """A law that answers from its policy's script for its port."""

    def __init__(self, answer: Callable[[], Answer]) -> None:
        self.answer = answer
        self.calls: list[tuple[str, int]] = []

    def _answer(self, what: str, flows: int) -> WindowPlan | None:
        self.calls.append((what, flows))
        answer = self.answer()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        return self._answer("started", flows)

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        return self._answer("ended", flows)

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        return self._answer("sampled", flows)


class Scripted:
    """A policy whose next answer the test sets, by port."""

    name = "scripted"
    interval = 0.01

    def __init__(self, parameters: base.Parameters | None = None) -> None:
        self.answers: dict[PortKey, Answer] = {}
        self.laws: dict[PortKey, list[Law]] = {}

    def port_law(self, port: PortKey) -> Law:
        law = Law(lambda: self.answers.get(port))
        self.laws.setdefault(port, []).append(law)
        return law


@pytest.fixture
def policy() -> Scripted:
    return Scripted()


@pytest.fixture
def engine(policy: Scripted) -> PolicyEngine:
    return PolicyEngine(policy, LEASE)


def pool(size: int, port: PortKey = PORT) -> RuleChange:
    return RuleChange(RuleTarget(port, None), WindowRule(WindowKind.POOL, size))


def window(size: int, flow: FlowKey | None = None) -> RuleChange:
    return RuleChange(RuleTarget(PORT, flow), WindowRule(WindowKind.WINDOW, size))


def gone(flow: FlowKey | None = None, port: PortKey = PORT) -> RuleChange:
    return RuleChange(RuleTarget(port, flow), None)


def test_a_plan_is_sent_once_and_again_when_it_changes(engine, policy):
    policy.answers[PORT] = WindowPlan(pool=1000)
    assert engine.sampled(PORT, SAMPLE, 0.0) == [pool(1000)]
    assert engine.sampled(PORT, SAMPLE, 0.1) == []
    policy.answers[PORT] = None  # unchanged
    assert engine.sampled(PORT, SAMPLE, 0.2) == []
    policy.answers[PORT] = WindowPlan(pool=2000)
    assert engine.sampled(PORT, SAMPLE, 0.3) == [pool(2000)]
    policy.answers[PORT] = WindowPlan(window=2000)
    assert engine.sampled(PORT, SAMPLE, 0.4) == [window(2000)]
    policy.answers[PORT] = NO_WINDOWS
    assert engine.sampled(PORT, SAMPLE, 0.5) == [gone()]
    assert engine.sampled(PORT, SAMPLE, 0.6) == []


def test_a_rule_is_renewed_when_almost_a_quarter_of_its_lease_has_passed(engine, policy):
    """Not later: a reading that comes a little early must not leave it to the next one."""
    policy.answers[PORT] = WindowPlan(pool=1000)
    engine.sampled(PORT, SAMPLE, 10.0)
    policy.answers[PORT] = None
    assert engine.sampled(PORT, SAMPLE, 10.44) == []
    assert engine.sampled(PORT, SAMPLE, 10.46) == [pool(1000)]
    assert engine.sampled(PORT, SAMPLE, 10.90) == []
    assert engine.sampled(PORT, SAMPLE, 10.95) == [pool(1000)]


def test_windows_of_single_flows(engine, policy):
    policy.answers[PORT] = WindowPlan(pool=1000, flows={FLOWS[0]: 0, FLOWS[1]: 3000})
    changes = engine.sampled(PORT, SAMPLE, 0.0)
    assert sorted(changes, key=str) == sorted(
        [pool(1000), window(0, FLOWS[0]), window(3000, FLOWS[1])], key=str
    )
    policy.answers[PORT] = WindowPlan(flows={FLOWS[1]: 4000})
    changes = engine.sampled(PORT, SAMPLE, 0.1)
    assert sorted(changes, key=str) == sorted([gone(), gone(FLOWS[0]), window(4000, FLOWS[1])], key=str)


def test_a_plan_has_one_kind_of_rule_for_the_port():
    with pytest.raises(ValueError, match="at most one rule"):
        WindowPlan(pool=1, window=1)


@pytest.mark.parametrize("plan", [{"pool": -1}, {"window": 1.5}, {"pool": 10.0}, {"flows": {FLOW: -1}}])
def test_an_invalid_plan_is_refused_when_it_is_made(plan):
    """Not when it is sent: then it would affect the windows of other ports."""
    with pytest.raises(ValueError, match="whole number of bytes"):
        WindowPlan(**plan)


def test_the_law_gets_the_number_of_flows(engine, policy):
    for flow in (FLOWS[0], FLOWS[1], FLOWS[0]):
        engine.flow_started(PORT, info(flow), 0.0)
    engine.flow_ended(PORT, FLOWS[0], 0.0)
    engine.flow_ended(PORT, FLOWS[0], 0.0)  # already ended
    engine.flow_ended(PORT, FLOWS[2], 0.0)  # never started
    engine.flow_ended(OTHER, FLOWS[2], 0.0)
    engine.sampled(PORT, SAMPLE, 0.0)
    assert policy.laws[PORT][0].calls == [("started", 1), ("started", 2), ("ended", 1), ("sampled", 1)]
    assert OTHER not in policy.laws


def test_a_failing_law_removes_its_own_windows_only(engine, policy, caplog):
    policy.answers = {PORT: WindowPlan(pool=1000), OTHER: WindowPlan(pool=2000)}
    engine.flow_started(PORT, info(FLOW), 0.0)
    engine.sampled(PORT, SAMPLE, 0.0)
    engine.sampled(OTHER, SAMPLE, 0.0)
    policy.answers[PORT] = RuntimeError("a bad day")
    assert engine.sampled(PORT, SAMPLE, 1.0) == [gone()]
    assert engine.sampled(OTHER, SAMPLE, 1.0) == [pool(2000, OTHER)]
    assert engine.failures == 1
    assert "scripted failed on port 0000000000000001:1" in caplog.text
    # The law is suspended: it gets no calls, nothing is sent, and the other port is governed.
    policy.answers[PORT] = WindowPlan(pool=5)
    assert engine.sampled(PORT, SAMPLE, 1.0 + REST_AFTER_FAILURE / 2) == []
    assert engine.flow_started(PORT, info(FLOWS[1]), 1.0 + REST_AFTER_FAILURE / 2) == []
    assert engine.sampled(OTHER, SAMPLE, 2.0) == [pool(2000, OTHER)]
    # Then a new law starts, and gets all current flows.
    assert engine.sampled(PORT, SAMPLE, 1.0 + REST_AFTER_FAILURE) == [pool(5)]
    assert len(policy.laws[PORT]) == 2
    assert policy.laws[PORT][1].calls == [("sampled", 2), ("started", 1), ("started", 2)]


def test_a_policy_that_cannot_make_a_law_is_a_failure_as_well(engine, policy, monkeypatch):
    def refuse(port: PortKey) -> Law:
        raise ZeroDivisionError

    monkeypatch.setattr(policy, "port_law", refuse)
    assert engine.sampled(PORT, SAMPLE, 0.0) == []
    assert engine.failures == 1


def test_a_reconnected_switch_gets_all_rules_again(engine, policy):
    far = PortKey(2, 1)
    policy.answers = {PORT: WindowPlan(pool=1000), far: WindowPlan(pool=7)}
    engine.sampled(PORT, SAMPLE, 0.0)
    engine.sampled(far, SAMPLE, 0.0)
    engine.switch_gone(1)
    assert engine.sampled(PORT, SAMPLE, 0.1) == [pool(1000)]
    assert engine.sampled(far, SAMPLE, 0.1) == []


def test_a_removed_port_is_forgotten_by_the_engine(engine, policy):
    policy.answers[PORT] = WindowPlan(pool=1000)
    engine.flow_started(PORT, info(FLOW), 0.0)
    engine.port_gone(PORT)
    engine.port_gone(PORT)
    assert engine.flow_ended(PORT, FLOW, 0.1) == []
    assert not engine.view()
    assert engine.sampled(PORT, SAMPLE, 0.2) == [pool(1000)]
    assert len(policy.laws[PORT]) == 2


def test_busy_while_a_port_has_flows_or_windows(engine, policy):
    assert not engine.busy(PORT)
    engine.flow_started(PORT, info(FLOW), 0.0)
    assert engine.busy(PORT)
    assert not engine.busy(OTHER)
    policy.answers[PORT] = WindowPlan(pool=9)
    engine.flow_ended(PORT, FLOW, 0.0)
    assert engine.busy(PORT)
    policy.answers[PORT] = NO_WINDOWS
    engine.sampled(PORT, SAMPLE, 0.0)
    assert not engine.busy(PORT)


def test_a_port_with_nothing_to_govern_costs_nothing(engine, policy):
    assert engine.sampled(PORT, SAMPLE._replace(limit=0), 0.0) == []
    assert not policy.laws
    engine.sampled(PORT, SAMPLE, 0.0)
    assert engine.view()[PORT][:3] == (0, NO_WINDOWS, SAMPLE)


PLANS = st.one_of(
    st.none(),
    st.just(RuntimeError("failed")),
    st.builds(
        WindowPlan,
        pool=st.none() | st.integers(0, 3),
        flows=st.dictionaries(st.sampled_from(FLOWS), st.integers(0, 3)),
    ),
    st.builds(WindowPlan, window=st.integers(0, 3)),
)
PORTS = st.sampled_from([PORT, OTHER, PortKey(2, 1)])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["sampled", "started", "ended", "switch_gone", "port_gone"]),
        PORTS,
        st.sampled_from(FLOWS),
        PLANS,
        st.floats(0, 12),
    ),
    max_size=40,
)


@given(STEPS)
@example(
    [
        ("started", PORT, FLOWS[0], WindowPlan(flows={FLOWS[0]: 0}), 0.0),
        ("switch_gone", PORT, FLOWS[0], None, 0.0),
        ("sampled", PORT, FLOWS[0], NO_WINDOWS, 0.0),
    ]
)
def test_a_switch_that_applies_the_changes_has_the_plan(steps):
    policy = Scripted()
    engine = PolicyEngine(policy, LEASE)
    rules: dict[RuleTarget, tuple[int, bool, float]] = {}
    now = 0.0
    for what, port, flow, answer, pause in steps:
        now += pause
        policy.answers[port] = answer
        if what == "switch_gone":
            engine.switch_gone(port.dpid)
            rules = {target: rule for target, rule in rules.items() if target.port.dpid != port.dpid}
            continue
        if what == "port_gone":
            engine.port_gone(port)
            rules = {target: rule for target, rule in rules.items() if target.port != port}
            continue
        if what == "started":
            changes = engine.flow_started(port, info(flow), now)
        elif what == "ended":
            changes = engine.flow_ended(port, flow, now)
        else:
            changes = engine.sampled(port, SAMPLE, now)
        for change in changes:
            assert change.target.port == port
            if change.rule is None:
                # Never a rule that is not installed, except for a flow that must be woken: the switch has
                # lost the rule that paused it.
                assert change.target in rules or (change.wake and change.target.flow is not None)
                rules.pop(change.target, None)
            else:
                rules[change.target] = (change.rule.bytes, change.rule.kind is WindowKind.POOL, now)
        if what == "sampled":
            plan = engine.view()[port][1]
            wanted = {flow: (size, False) for flow, size in plan.flows.items()}
            if plan.pool is not None or plan.window is not None:
                size = plan.pool if plan.pool is not None else plan.window
                wanted[None] = (size, plan.pool is not None)
            there = {t.flow: rule for t, rule in rules.items() if t.port == port}
            assert {flow: rule[:2] for flow, rule in there.items()} == wanted
            # And none is older than the time of renewal.
            assert all(now - since < LEASE / 4 or since == now for *_, since in there.values())


def test_the_policies_are_found_by_name():
    assert {"fairq", "droptail"} <= set(base.available())
    assert base.find("fairq") is FairQ
    with pytest.raises(UserError, match="there is no policy nonsense"):
        base.find("nonsense")


def test_every_policy_of_the_package_is_installed():
    """The entry points are those of the last `make setup`, which is needed after a policy was added."""
    found = {}
    modules = [
        *pkgutil.iter_modules(policies.__path__, "fairq_ryu.policies."),
        *pkgutil.walk_packages(laws.__path__, "fairq_ryu.laws."),
    ]
    for module in modules:
        for each in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(each) and each.__module__ == module.name and "name" in vars(each):
                found[each.name] = f"{module.name}:{each.__name__}"
    assert {entry.name: entry.value for entry in base.installed() if entry.name in base.own()} == found
    # RSED extends SED, those of queue laws extend a class of theirs, and two of them one of these.
    later = ["rsed", "rsed-paper", "afcd", "afq", "codel", "mark", "red", "sfb", "afcd-paper", "afq-paper"]
    assert base.own() == [*sorted(set(found) - set(later)), *later]


def test_a_name_of_ours_stays_ours(monkeypatch):
    theirs = EntryPoint("fairq", "theirs:Law", base.ENTRY_POINT_GROUP)
    monkeypatch.setattr(base, "entry_points", lambda group: (theirs, *entry_points(group=group)))
    base.installed.cache_clear()
    try:
        assert base.find("fairq") is FairQ
        assert base.available().count("fairq") == 1
    finally:
        base.installed.cache_clear()


def test_a_policy_that_cannot_be_loaded_is_one_clear_error(monkeypatch):
    class Broken:
        name, value = "broken", "nowhere:Nothing"

        def load(self) -> None:
            raise ImportError("No module named 'nowhere'")

    monkeypatch.setattr(base, "installed", lambda: (Broken(),))
    with pytest.raises(UserError, match=r"policy broken \(nowhere:Nothing\) cannot be loaded"):
        base.find("broken")


def test_droptail_sets_nothing():
    engine = PolicyEngine(DropTail({}), LEASE)
    assert engine.flow_started(PORT, info(FLOW), 0.0) == []
    assert engine.sampled(PORT, SAMPLE._replace(backlog=100_000), 0.0) == []
    assert engine.flow_ended(PORT, FLOW, 0.0) == []

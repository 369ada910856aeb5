"""The policy engine: laws with more inputs than flows and queues, and several policies at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.droptail.policy import DropTail
from fairq_ryu.laws.fixed.policy import Fixed
from fairq_ryu.model import (
    NO_WINDOWS,
    Congestion,
    FlowKey,
    FlowProgress,
    PortKey,
    RuleTarget,
    Thresholds,
    WindowKind,
    WindowPlan,
    WindowRule,
)
from fairq_ryu.policies import base
from fairq_ryu.policies.base import PortLaw, Recovery
from fairq_ryu.policies.choice import PolicyChoice
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.governed_port import NO_THRESHOLDS, REST_AFTER_FAILURE
from fairq_ryu.policies.parts.deadline_table import GifTable
from tests.support.fakes import info
from tests.support.laws import ANNOUNCED, LEASE, SAMPLE, Recorder, SettledRecorder, rule

EDGE, UPLINK, OTHER = PortKey(1, 1), PortKey(1, 2), PortKey(2, 1)
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 80, 1000)
FLOWS = [FLOW._replace(dport=1000 + n) for n in range(3)]
PROGRESS = {FLOW: FlowProgress(100, 200, 0.001, True)}


class Recording:
    """A policy of recorders."""

    name = "recording"

    def __init__(self, interval: float = 0.01, parameters: object = None, recovery: object = None) -> None:
        self.interval = interval
        self.laws: dict[PortKey, list[Recorder]] = {}
        if parameters is not None:
            self.parameters = parameters
        if recovery is not None:
            self.recovery = recovery

    def port_law(self, port: PortKey) -> Recorder:
        self.laws.setdefault(port, []).append(Recorder())
        return self.laws[port][-1]


@pytest.fixture
def policy() -> Recording:
    return Recording()


@pytest.fixture
def engine(policy: Recording) -> PolicyEngine:
    return PolicyEngine(policy, LEASE)


# The calls of a law


def test_a_law_gets_congestion_announcements_and_progress(engine, policy):
    engine.flow_started(EDGE, info(FLOW), 0.0)
    engine.announced(EDGE, FLOW, ANNOUNCED, 0.1)
    engine.announced(EDGE, FLOW, ANNOUNCED, 0.2)  # no change
    engine.announced(EDGE, FLOWS[1], ANNOUNCED, 0.2)  # not of this port
    engine.announced(OTHER, FLOW, ANNOUNCED, 0.2)
    engine.progressed(EDGE, PROGRESS, 0.3)
    engine.progressed(OTHER, PROGRESS, 0.3)
    engine.announced(EDGE, FLOW, None, 0.4)
    engine.announced(EDGE, FLOW, None, 0.4)
    policy.laws[EDGE][0].answer = WindowPlan(window=1460)
    assert engine.congestion(EDGE, Congestion.CNG, 9000, 0.5) == [rule(EDGE, 1460)]
    assert policy.laws[EDGE][0].calls == [
        ("started", FLOW, 1),
        ("announced", FLOW, ANNOUNCED),
        ("progressed", PROGRESS),
        ("announced", FLOW, None),
        ("congestion", Congestion.CNG, 9000),
    ]
    assert OTHER not in policy.laws


def test_the_state_of_the_port_is_replayed_to_a_fresh_law(engine, policy):
    engine.sampled(EDGE, SAMPLE, 0.0)
    for flow in FLOWS:
        engine.flow_started(EDGE, info(flow), 0.0)
        engine.announced(EDGE, flow, ANNOUNCED, 0.0)
    engine.flow_ended(EDGE, FLOWS[1], 0.0)
    engine.congestion(EDGE, Congestion.CNG, 5000, 0.0)
    other = Recording()
    engine.use(other, 1.0)
    assert other.laws[EDGE][0].calls == [
        ("sampled", SAMPLE, 1.0),
        ("started", FLOWS[0], 1),
        ("started", FLOWS[2], 2),
        ("announced", FLOWS[0], ANNOUNCED),
        ("announced", FLOWS[2], ANNOUNCED),
        ("congestion", Congestion.CNG, 5000),
    ]


def test_settled_follows_the_replay(engine, policy):
    class Policy(Recording):
        def port_law(self, port):
            self.laws[port] = [SettledRecorder()]
            return self.laws[port][0]

    engine.sampled(EDGE, SAMPLE, 0.0)
    engine.flow_started(EDGE, info(FLOW), 0.0)
    engine.congestion(EDGE, Congestion.CNG, 5000, 0.0)
    other = Policy()
    engine.use(other, 1.0)
    engine.flow_started(EDGE, info(FLOWS[1]), 1.1)
    assert [what[0] for what in other.laws[EDGE][0].calls] == [
        "sampled",
        "started",
        "congestion",
        "settled",
        "started",
    ]
    other.laws[EDGE][0].answer = RuntimeError("a bad day")
    engine.sampled(EDGE, SAMPLE, 1.2)
    # The event that creates a new law follows after the replay of the earlier ones.
    engine.flow_started(EDGE, info(FLOWS[2]), 1.2 + REST_AFTER_FAILURE)
    assert other.laws[EDGE][0].calls[-2:] == [("settled", 1.2 + REST_AFTER_FAILURE), ("started", FLOWS[2], 3)]


def test_the_plan_of_settled_is_installed(engine, policy):
    class Settled(PortLaw):
        def flow_started(self, flow, flows, now):
            return WindowPlan(window=1460)

        def settled(self, now):
            return WindowPlan(window=2920)

    class Policy(Recording):
        def port_law(self, port):
            return Settled()

    engine.flow_started(EDGE, info(FLOW), 0.0)
    assert engine.use(Policy(), 1.0) == [rule(EDGE, 2920)]


class Plain(PortLaw):
    """A law with the methods for flows and queues only."""

    def flow_started(self, flow, flows, now):
        return WindowPlan(pool=flows)

    def flow_ended(self, flow, flows, now):
        return None

    def queue_sampled(self, sample, flows, now):
        return None


class PlainPolicy:
    name = "plain"
    interval = 0.01

    def port_law(self, port):
        return Plain()


def test_a_law_needs_few_methods():
    engine = PolicyEngine(PlainPolicy(), LEASE)
    engine.flow_started(EDGE, info(FLOW), 0.0)
    engine.announced(EDGE, FLOW, ANNOUNCED, 0.0)
    engine.congestion(EDGE, Congestion.CNG, 1, 0.0)
    engine.progressed(EDGE, PROGRESS, 0.0)
    assert not engine.wants_progress(EDGE)
    assert engine.thresholds(EDGE) is None
    assert engine.view()[EDGE][1] == WindowPlan(pool=1)
    assert engine.failures == 0


@pytest.mark.parametrize("ask", ["congestion", "announced", "progressed"])
def test_a_failure_harms_its_own_port_only(engine, policy, ask):
    for port in (EDGE, OTHER):
        engine.flow_started(port, info(FLOW), 0.0)
        policy.laws[port][0].answer = WindowPlan(window=1460)
        engine.sampled(port, SAMPLE, 0.0)
    policy.laws[EDGE][0].answer = RuntimeError("a bad day")
    about = {
        "congestion": (Congestion.CNG, 1),
        "announced": (FLOW, ANNOUNCED),
        "progressed": (PROGRESS,),
    }
    assert getattr(engine, ask)(EDGE, *about[ask], 0.1) == [rule(EDGE, None)]
    assert getattr(engine, ask)(OTHER, *about[ask], 0.1) == []
    assert engine.failures == 1
    engine.sampled(EDGE, SAMPLE, 0.2)
    assert len(policy.laws[EDGE]) == 1
    engine.sampled(EDGE, SAMPLE, 0.1 + REST_AFTER_FAILURE)
    assert len(policy.laws[EDGE]) == 2


@pytest.mark.parametrize("ask", ["wants_progress", "thresholds"])
def test_a_law_whose_requests_fail_is_suspended_too(engine, policy, ask):
    engine.sampled(EDGE, SAMPLE, 5.0)
    policy.laws[EDGE][0].answer = WindowPlan(window=1460)
    engine.flow_started(EDGE, info(FLOW), 5.0)
    policy.laws[EDGE][0].wants = RuntimeError("a bad day")
    assert not getattr(engine, ask)(EDGE)
    assert engine.failures == 1
    assert engine.sampled(EDGE, SAMPLE, 5.1) == [rule(EDGE, None)]
    assert not getattr(engine, ask)(EDGE)
    engine.sampled(EDGE, SAMPLE, 5.0 + REST_AFTER_FAILURE)
    assert len(policy.laws[EDGE]) == 2


def test_thresholds_that_were_set_are_removed(engine, policy):
    assert engine.thresholds(EDGE) is None
    engine.sampled(EDGE, SAMPLE, 0.0)
    assert engine.thresholds(EDGE) is None
    assert not engine.wants_progress(EDGE)
    policy.laws[EDGE][0].wants = Thresholds(50, 20)
    assert engine.thresholds(EDGE) == Thresholds(50, 20)
    assert engine.wants_progress(EDGE)
    policy.laws[EDGE][0].wants = None
    assert engine.thresholds(EDGE) == NO_THRESHOLDS == Thresholds(0, 0, False)


# Waking


def test_a_paused_flow_must_be_woken(engine, policy):
    for flow in FLOWS:
        engine.flow_started(EDGE, info(flow), 0.0)
    law = policy.laws[EDGE][0]
    law.answer = WindowPlan(flows=dict.fromkeys(FLOWS, 0))
    engine.sampled(EDGE, SAMPLE, 0.0)
    law.answer = None
    renewed = engine.sampled(EDGE, SAMPLE, 0.6)
    assert {(c.rule.bytes, c.wake) for c in renewed} == {(0, False)}
    law.answer = WindowPlan(flows={FLOWS[0]: 1460, FLOWS[1]: 0})
    assert set(engine.sampled(EDGE, SAMPLE, 0.7)) == {
        rule(EDGE, 1460, FLOWS[0], wake=True),
        rule(EDGE, None, FLOWS[2], wake=True),
    }
    law.answer = WindowPlan(flows={FLOWS[0]: 2920})
    # A flow that has ended is not woken.
    assert set(engine.flow_ended(EDGE, FLOWS[1], 0.8)) == {
        rule(EDGE, 2920, FLOWS[0]),
        rule(EDGE, None, FLOWS[1]),
    }


def paused(engine: PolicyEngine, policy: Recording) -> Recorder:
    """All flows of a port are paused, and then its switch's agent disconnects."""
    for flow in FLOWS:
        engine.flow_started(EDGE, info(flow), 0.0)
    law = policy.laws[EDGE][0]
    law.answer = WindowPlan(flows=dict.fromkeys(FLOWS, 0))
    engine.sampled(EDGE, SAMPLE, 0.0)
    assert engine.switch_gone(EDGE.dpid) == len(FLOWS)
    return law


def test_a_flow_paused_before_the_agent_disconnected_is_woken_by_the_next_event(engine, policy):
    law = paused(engine, policy)
    law.answer = WindowPlan(flows={FLOWS[0]: 1460, FLOWS[1]: 0})
    assert set(engine.sampled(EDGE, SAMPLE, 0.1)) == {
        rule(EDGE, 1460, FLOWS[0], wake=True),
        rule(EDGE, 0, FLOWS[1]),
        rule(EDGE, None, FLOWS[2], wake=True),
    }
    assert engine.sampled(EDGE, SAMPLE, 0.2) == []  # woken once
    law.answer = NO_WINDOWS
    assert set(engine.sampled(EDGE, SAMPLE, 0.3)) == {
        rule(EDGE, None, FLOWS[0]),
        rule(EDGE, None, FLOWS[1], wake=True),
    }


def test_pauses_are_remembered_over_more_than_one_connection_and_a_change_of_policy(engine, policy):
    paused(engine, policy)
    engine.switch_gone(EDGE.dpid)
    changes = engine.use(DropTail({}), 0.1)
    assert changes == [rule(EDGE, None, flow, wake=True) for flow in FLOWS]
    engine.switch_gone(EDGE.dpid)
    assert engine.sampled(EDGE, SAMPLE, 0.2) == []


def test_flows_that_ended_without_agent_are_not_woken(engine, policy):
    law = paused(engine, policy)
    law.answer = None
    engine.flow_ended(EDGE, FLOWS[1], 0.1)
    engine.switch_gone(EDGE.dpid)
    law.answer = WindowPlan(window=1460)
    assert set(engine.sampled(EDGE, SAMPLE, 0.2)) == {
        rule(EDGE, 1460),
        rule(EDGE, None, FLOWS[0], wake=True),
        rule(EDGE, None, FLOWS[2], wake=True),
    }


def test_a_wake_that_could_not_be_sent_is_repeated(engine, policy):
    law = paused(engine, policy)
    law.answer = WindowPlan(flows={FLOWS[0]: 1460})
    for change in engine.sampled(EDGE, SAMPLE, 0.1):
        engine.not_woken(change.target)
    engine.switch_gone(EDGE.dpid)
    assert set(engine.sampled(EDGE, SAMPLE, 0.2)) == {
        rule(EDGE, 1460, FLOWS[0], wake=True),
        rule(EDGE, None, FLOWS[1], wake=True),
        rule(EDGE, None, FLOWS[2], wake=True),
    }
    engine.not_woken(RuleTarget(OTHER, FLOW))  # a removed port


# How often


def test_a_law_gets_samples_at_most_once_per_interval(policy):
    slow = Recording(8 / 64)
    engine = PolicyEngine(PolicyChoice(policy, (("slow*", slow),)), LEASE)
    engine.named(EDGE, "slow1", "host", 0.0)
    for step in range(41):
        at = step / 64
        engine.sampled(EDGE, SAMPLE._replace(peak=100 - step, mean=10.0 * step), at)
        engine.sampled(OTHER, SAMPLE, at)
    seen = [what[1:] for what in slow.laws[EDGE][0].calls]
    assert [at for _, at in seen] == [step / 64 for step in (0, 8, 16, 24, 32, 40)]
    assert [sample.peak for sample, _ in seen] == [100, 99, 91, 83, 75, 67]
    assert [sample.mean for sample, _ in seen] == pytest.approx([0, 45, 125, 205, 285, 365])
    assert len(policy.laws[OTHER][0].calls) == 41
    # Polling is not exact: 10 % too early is in time.
    engine.sampled(EDGE, SAMPLE, 40 / 64 + 0.112)
    assert len(slow.laws[EDGE][0].calls) == 6
    engine.sampled(EDGE, SAMPLE, 40 / 64 + 0.113)
    assert len(slow.laws[EDGE][0].calls) == 7
    assert engine.interval(EDGE) == 8 / 64
    assert engine.poll_interval([EDGE]) == 8 / 64
    assert engine.poll_interval([EDGE, OTHER]) == 0.01
    assert engine.poll_interval([]) == 0.01


def test_a_rule_is_renewed_between_the_samples_of_a_law():
    slow = Recording(10.0)
    engine = PolicyEngine(slow, LEASE)
    engine.sampled(EDGE, SAMPLE, 0.0)
    slow.laws[EDGE][0].answer = WindowPlan(window=1460)
    engine.flow_started(EDGE, info(FLOW), 0.1)
    assert engine.sampled(EDGE, SAMPLE, 0.6) == [rule(EDGE, 1460)]
    assert len(slow.laws[EDGE][0].calls) == 2


# Several policies


def test_patterns_are_tried_in_order():
    names = [Recording() for _ in range(4)]
    rules = (("leaf1-*", names[1]), ("leaf?-eth2", names[2]), ("role:host", names[3]))
    choice = PolicyChoice(names[0], rules)
    found = {
        (name, role): names.index(choice.policy(EDGE, name, role))
        for name in ("leaf1-eth2", "leaf2-eth2", "leaf2-eth3", "")
        for role in ("host", "link", "")
    }
    assert found == {
        **{("leaf1-eth2", role): 1 for role in ("host", "link", "")},
        **{("leaf2-eth2", role): 2 for role in ("host", "link", "")},
        ("leaf2-eth3", "host"): 3,
        ("leaf2-eth3", "link"): 0,
        ("leaf2-eth3", ""): 0,
        ("", "host"): 3,
        ("", "link"): 0,
        ("", ""): 0,
    }
    assert choice.policies == tuple(names)
    everywhere = PolicyChoice(names[0], (("*", names[1]),))
    assert everywhere.policy(EDGE, "", "") is names[1]


def test_a_port_gets_its_policy_when_its_role_is_known(engine, policy):
    hosts = Recording()
    engine.use(PolicyChoice(policy, (("role:host", hosts),)), 0.0)
    assert engine.named(EDGE, "s1-eth1", "", 0.0) == []
    engine.flow_started(EDGE, info(FLOW), 0.0)
    policy.laws[EDGE][0].answer = WindowPlan(window=1460)
    assert engine.sampled(EDGE, SAMPLE, 0.1) == [rule(EDGE, 1460)]
    assert engine.policy_of(EDGE) is policy
    assert engine.named(EDGE, "s1-eth1", "host", 0.2) == [rule(EDGE, None)]
    assert engine.policy_of(EDGE) is hosts
    assert [what[0] for what in hosts.laws[EDGE][0].calls] == ["sampled", "started"]
    assert engine.named(EDGE, "s1-eth1", "host", 0.3) == []
    assert len(hosts.laws[EDGE]) == 1
    # A port without flows gets its name before its policy.
    engine.named(OTHER, "s2-eth1", "host", 0.3)
    assert OTHER not in engine.view()
    assert engine.policy_of(OTHER) is hosts
    engine.sampled(OTHER, SAMPLE, 0.4)
    assert OTHER in hosts.laws


def test_a_change_of_policy_leaves_no_rule_of_the_old_one(engine, policy):
    engine.named(UPLINK, "s1-eth2", "link", 0.0)
    for port in (EDGE, UPLINK, OTHER):
        engine.sampled(port, SAMPLE, 0.0)
        policy.laws[port][0].answer = WindowPlan(window=1460, flows={FLOW: 0})
        engine.flow_started(port, info(FLOW), 0.0)
    fixed = Fixed({"pool": 777})
    changes = engine.use(PolicyChoice(fixed, (("role:link", policy),)), 1.0)
    assert set(changes) == {
        change
        for port in (EDGE, OTHER)
        for change in (
            rule(port, WindowRule(WindowKind.POOL, 777)),
            rule(port, None, FLOW, wake=True),
        )
    }
    # The port that keeps its policy is not affected.
    assert len(policy.laws[UPLINK]) == 1
    assert engine.use(PolicyChoice(DropTail({})), 1.1) != []
    assert not any(view.plan for view in engine.view().values())
    assert engine.sampled(EDGE, SAMPLE, 5.0) == []
    assert not any(engine.busy(port) and engine.view()[port][1] for port in (EDGE, UPLINK, OTHER))


def test_the_same_parameters_are_the_same_policy(engine):
    engine.use(Recording(parameters=(1, 2)), 0.0)
    engine.sampled(EDGE, SAMPLE, 0.0)
    for parameters, disturbed in (((1, 2), False), ((1, 3), True), (None, True)):
        fresh = Recording(parameters=parameters)
        engine.use(fresh, 1.0)
        assert (EDGE in fresh.laws) is disturbed
    assert base.same(Fixed({"pool": 1, "interval": 1}), Fixed({"pool": 1, "interval": 1}))
    assert not base.same(Fixed({"pool": 1, "interval": 1}), Fixed({"pool": 2, "interval": 1}))
    assert not base.same(DropTail({}), Fixed({"pool": 1, "interval": 1}))
    assert base.same(DropTail({}), DropTail({}))


def test_a_change_of_policy_ends_the_suspension_of_a_failed_law(engine, policy):
    engine.sampled(EDGE, SAMPLE, 0.0)
    policy.laws[EDGE][0].answer = RuntimeError("a bad day")
    engine.flow_started(EDGE, info(FLOW), 0.0)
    assert engine.use(Fixed({"pool": 9, "interval": 0.1}), 0.1) == [
        rule(EDGE, WindowRule(WindowKind.POOL, 9))
    ]


def test_recovery_is_declared_by_the_policy(engine, policy):
    assert engine.recovery(EDGE) is None
    wanted = Recovery(True, False, 1000, 0.5)
    engine.use(PolicyChoice(policy, (("*", Recording(recovery=wanted)),)), 0.0)
    assert engine.recovery(EDGE) == wanted


def test_the_tables_of_announced_flows(engine, policy):
    engine.sampled(EDGE, SAMPLE, 0.0)
    engine.sampled(OTHER, SAMPLE, 0.0)
    gif = GifTable()
    gif.add(info(FLOW), 1.0, ANNOUNCED)
    policy.laws[EDGE][0].display = lambda: base.Display(gif=gif)
    ((port, table),) = engine.gif().items()
    (row,) = table.rows(2.0)
    assert (port, row.flow, row.remaining_time, row.remaining_size, row.priority) == (
        EDGE,
        FLOW,
        3.0,
        1000,
        1,
    )


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["use", "named", "start", "end", "fail"]), st.integers(0, 2), st.integers(0, 2)
    ),
    max_size=30,
)


@given(CHANGES)
def test_after_any_change_the_switch_has_the_plan_of_the_current_policy(steps):
    """Each policy sets its own window, and one for each flow."""

    class Marking(PortLaw):
        def __init__(self, mark):
            self.mark, self.flows = mark, {}

        def flow_started(self, flow, flows, now):
            self.flows[flow.key] = self.mark
            return self.plan()

        def flow_ended(self, flow, flows, now):
            del self.flows[flow.key]
            return self.plan()

        def plan(self):
            return WindowPlan(window=100 + self.mark, flows=self.flows) if self.flows else NO_WINDOWS

    class Marked:
        name, interval = "marked", 0.01

        def __init__(self, mark):
            self.mark = mark

        def port_law(self, port):
            return Marking(self.mark)

    policies = [Marked(mark) for mark in range(3)]
    engine = PolicyEngine(policies[0], LEASE)
    rules: dict[FlowKey | None, int] = {}
    there: set[FlowKey] = set()
    rule_of: tuple[int, int] = (0, 0)
    role = ""
    now = 0.0
    for what, one, two in steps:
        now += 0.01
        flow = FLOWS[one]
        if what == "use":
            rule_of = (one, two)
            changes = engine.use(PolicyChoice(policies[one], (("role:host", policies[two]),)), now)
        elif what == "named":
            role = ("host", "link", "")[one]
            changes = engine.named(EDGE, "eth", role, now)
        elif what == "start":
            there.add(flow)
            changes = engine.flow_started(EDGE, info(flow), now)
        elif what == "end":
            there.discard(flow)
            changes = engine.flow_ended(EDGE, flow, now)
        else:
            engine.switch_gone(EDGE.dpid)
            rules = {}
            changes = engine.sampled(EDGE, SAMPLE, now)
        for change in changes:
            if change.rule is None:
                del rules[change.target.flow]
            else:
                rules[change.target.flow] = change.rule.bytes
        mark = rule_of[1] if role == "host" else rule_of[0]
        assert rules == ({None: 100 + mark} | dict.fromkeys(there, mark) if there else {})
    assert engine.failures == 0

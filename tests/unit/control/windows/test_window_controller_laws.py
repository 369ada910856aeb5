"""Laws that run in the switch: a controller and a real agent's server, without sockets and without eBPF."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent import layout
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.channel import flowmod, window_law
from fairq_ryu.channel.queue_depth import UNMEASURED
from fairq_ryu.channel.window_law import ALL_LAWS, LawCommand
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import WindowKind, WindowPlan, WindowRule
from fairq_ryu.policies.choice import PolicyChoice
from tests.support.agent_peer import Peer, role
from tests.support.fakes import DATAPATH
from tests.support.flownet import A, B
from tests.support.law_network import RATE, Network, policy
from tests.support.site import LIMIT, Obedient

UNKNOWN = QueueLimits("", 0, 0)


def refusing() -> Network:
    """The agent does not know the queue of port B: it refuses a law there."""
    net = Network()
    net.data.limits[B.port] = UNKNOWN
    return net


@pytest.fixture
def lines(caplog: Any) -> Any:
    caplog.set_level("WARNING")
    return lambda: [record.message for record in caplog.records]


def test_the_law_runs_in_the_switch_and_its_lease_is_renewed(lines):
    net = Network()
    net.read(B)
    (number, law, expires) = net.data.laws[B.port]
    assert (number, law.kind, law.limit) == (B.port, FairQLaw.kind, LIMIT)
    assert (net.rule(B), net.shown(B)) == (WindowKind.LAW, ("switch", None))
    for _ in range(30):
        net.read(B)
    assert net.data.laws[B.port][2] > expires
    assert lines() == net.warned == []


def test_the_state_that_the_switch_reports_is_stored():
    net = Network()
    net.read(B)
    net.data.law_states[B.port] = layout.fq_law_state(granted=40_000, flows=7)
    net.site.link.send(net.site.link.window_laws.request(0.0, net.now))
    net.deliver()
    state = net.site.link.ports[B.port].window_law.state
    assert (state.pool, state.flows, state.kind) == (40_000, 7, FairQLaw.kind)


@pytest.mark.parametrize(("name", "shown"), [("iqm", True), ("fairq", None)])
def test_an_incast_that_the_switch_reports_is_shown(name, shown):
    net = Network(policy(name))
    net.read(B)
    assert net.windows.engine.incast(B) in (False, None)
    for mode, wanted in ((1, shown), (0, shown and False)):
        net.data.law_states[B.port] = layout.fq_law_state(window=2920, mode=mode)
        net.site.link.send(net.site.link.window_laws.request(0.0, net.now))
        net.deliver()
        assert net.windows.engine.incast(B) is wanted


def test_a_change_of_the_parameters_changes_the_law():
    net = Network()
    net.read(B)
    net.windows.use(PolicyChoice(policy(alpha=0.5)))
    net.deliver()
    assert net.data.laws[B.port][1].target == LIMIT // 2


@pytest.mark.parametrize(("other", "kind"), [(policy("droptail"), None), (policy("fixed"), WindowKind.POOL)])
def test_another_policy_leaves_neither_rule_nor_law(other, kind):
    net = Network()
    net.read(A, B)
    assert len(net.server.laws) == 2
    net.windows.use(PolicyChoice(other))
    net.deliver()
    assert (net.rule(A), net.rule(B), net.data.laws) == (kind, kind, {})
    assert len(net.server.laws) == 0
    assert net.windows.engine.law_missing(B) is None


# Refusals


def test_a_refused_law_leaves_no_windows_until_the_queue_is_another(lines):
    net = refusing()
    for _ in range(3):
        net.read(B)
    (line,) = lines()
    assert line.startswith("agent of bridge 0000000000000001: no windows on port 2: port 2 has")
    assert "no queue of known size and rate" in line
    where, reason = net.shown(B)
    assert where is None and reason in line
    assert (net.rule(B), net.data.laws, net.warned) == (None, {}, [])
    net.data.limits[B.port] = QueueLimits("bfifo", 2 * LIMIT, RATE)
    net.read(B, limit=2 * LIMIT)
    assert (net.rule(B), net.shown(B)) == (WindowKind.LAW, ("switch", None))
    assert len(lines()) == 1


def test_a_law_that_is_missing_is_an_event_once():
    net = refusing()
    seen: list[Occurrence] = []
    net.windows._reporter = EventReporter(seen.append, lambda _: "s1-eth2")
    for _ in range(3):
        net.read(B)
    (event,) = seen
    assert (event.kind, event.at) == (Kind.LAW, B)
    assert event.message.startswith(f"s1-eth2 ({B.short}) has no windows: port 2 has no queue")
    net.data.limits[B.port] = QueueLimits("bfifo", 2 * LIMIT, RATE)
    net.read(B, limit=2 * LIMIT)
    assert len(seen) == 1
    net.connect()
    net.data.limits[B.port] = UNKNOWN
    for _ in range(3):
        net.read(B)
    assert [each.kind for each in seen].count(Kind.LAW) == 2


def test_a_law_whose_queue_is_no_longer_known_ends_with_the_next_renewal(lines):
    """The agent sees it first, and takes the law out of force; the rule stays until its renewal."""
    net = Network()
    net.read(B)
    assert net.rule(B) is WindowKind.LAW
    net.data.limits[B.port] = UNKNOWN
    net.server.laws.limits_changed()
    assert (net.data.laws, net.rule(B)) == ({}, WindowKind.LAW)
    for _ in range(12):
        net.read(B)
    assert (net.rule(B), net.shown(B)[0], len(lines())) == (None, None, 1)


def test_only_the_first_of_several_errors_is_reported(lines):
    net = Network()
    net.server.laws.capacity = 0
    net.read(B)  # both the law and the rule that refers to it are refused
    (line,) = lines()
    assert line.endswith("0 laws are there already") and net.rule(B) is None
    refused = window_law.RefusedLaw(B.port, "once more")
    assert not net.windows.law_refused(net.site.link, refused, net.now)
    assert net.shown(B) == (None, "0 laws are there already")
    net.server.laws.capacity = 8
    net.windows.use(PolicyChoice(policy(alpha=0.5)))
    net.deliver()
    assert (net.rule(B), len(lines())) == (WindowKind.LAW, 1)


def test_a_rule_that_names_a_law_of_nobody_is_reported(lines):
    """A policy of another package may have a rule of any kind, but laws are added for `switch_law` only."""
    chosen = Obedient()
    chosen.plan = WindowPlan(rule=WindowRule(WindowKind.LAW, 77))
    net = Network(chosen)
    net.read(B)
    net.read(B)
    (warned,) = net.warned
    assert "refused a rule (EXPERIMENTER, 5): no law 77" in warned
    assert (net.rule(B), lines()) == (None, [])


def test_another_policy_may_run_where_one_was_refused():
    net = refusing()
    net.read(B)
    net.data.limits[B.port] = QueueLimits("bfifo", LIMIT, RATE)
    net.windows.use(PolicyChoice(policy("las")))
    net.deliver()
    assert (net.rule(B), net.shown(B)) == (WindowKind.LAW, ("switch", None))


def test_parameters_that_no_agent_accepts_are_not_sent(lines):
    chosen = policy()
    chosen.switch_law = lambda _: FairQLaw(base_rtt_us=2_000_000)
    net = Network(chosen)
    for _ in range(3):
        net.read(B)
    (line,) = lines()
    assert "port 0000000000000001:2" in line and "base_rtt_us 2000000 is not between" in line
    assert (net.rule(B), len(net.server.laws)) == (None, 0)
    assert "base_rtt_us" in net.shown(B)[1]


@pytest.mark.parametrize("known", ["neither", "size"])
def test_a_queue_that_the_switch_does_not_know(lines, known):
    """The law needs its size and its rate."""
    net = Network()
    net.data.limits[B.port] = QueueLimits("", LIMIT if known == "size" else 0, 0)
    for _ in range(3):
        net.read(B, limit=LIMIT if known == "size" else 0, rate=0)
    if known == "neither":
        assert (net.rule(B), net.shown(B), lines()) == (None, (None, None), [])
        return
    assert (net.rule(B), net.shown(B)[0], len(lines())) == (None, None, 1)
    assert "has no queue of known size and rate" in lines()[0] and net.shown(B)[1] in lines()[0]


@pytest.mark.parametrize("before", [False, True])
def test_a_queue_that_cannot_be_measured_has_no_windows(lines, before):
    """What is read as backlog is not that of one queue."""
    net = Network(policy("fairq-paper"))
    net.site.open(now=net.now)
    if before:
        net.read(B)
        assert net.rule(B) is WindowKind.WINDOW
    for _ in range(60):
        net.read(B, limit=UNMEASURED)
    assert net.rule(B) is None
    (line,) = lines()
    assert f"port {B}" in line and "no queue that can be measured" in line
    assert not net.site.link.governed


# Agents


def test_laws_are_requested_again_after_a_reconnection(lines):
    net = refusing()
    net.read(B)
    net.connect()
    net.read(B)
    assert (net.rule(B), len(lines())) == (None, 2)
    fine = Network()
    fine.read(B)
    fine.connect()
    fine.read(B)
    assert (fine.rule(B), fine.shown(B)[0]) == (WindowKind.LAW, "switch")


# Several controllers


def test_laws_that_another_controller_deletes_are_requested_again_once(lines):
    net, other = Network(), None
    net.read(B)
    for times in (1, 2):
        other = Peer(net.server)
        other.ask(window_law.set_law(DATAPATH, LawCommand.DELETE, ALL_LAWS))
        other.ask(flowmod.clear(DATAPATH))
        assert net.data.laws == net.data.installed == {}
        for _ in range(12):
            net.read(B)
        if times == 1:
            assert (net.rule(B), lines()) == (WindowKind.LAW, [])
    assert (net.rule(B), net.warned) == (None, [])
    (line,) = lines()
    assert "no law 2" in line


def test_a_law_that_another_controller_has_added_is_replaced(lines):
    net = Network()
    Peer(net.server).ask(window_law.set_law(DATAPATH, LawCommand.ADD, B.port, policy("las").switch_law(B)))
    net.read(B)
    net.read(B)
    assert (net.data.laws[B.port][1].kind, net.rule(B)) == (FairQLaw.kind, WindowKind.LAW)
    assert lines() == net.warned == []


def test_a_slave_keeps_to_the_law_for_the_day_that_it_is_none(lines):
    """Every change of a slave is refused: that says nothing about the law."""
    net = Network()
    role(net.peer, ofp.OFPCR_ROLE_SLAVE)
    net.read(B)
    assert (net.rule(B), net.shown(B)[0], lines()) == (None, "switch", [])
    assert "a window law (BAD_REQUEST, IS_SLAVE)" in net.warned[0]
    role(net.peer, ofp.OFPCR_ROLE_EQUAL)
    for _ in range(12):
        net.read(B)
    assert (net.rule(B), net.data.laws[B.port][1].kind) == (WindowKind.LAW, FairQLaw.kind)


def test_the_law_of_a_port_that_has_gone_is_deleted():
    net = Network()
    net.read(A, B)
    net.windows.port_removed(B)
    net.deliver()
    assert net.data.laws.keys() == {A.port} and len(net.server.laws) == 1


def test_a_lease_that_ends_frees_the_port():
    net = Network()
    net.read(B)
    net.server.expire_rules(time.monotonic_ns() + 10 * 10**9)
    assert net.data.laws == net.data.installed == {}
    (state,) = net.server.laws.states(ALL_LAWS)
    assert (state.law, state.port) == (B.port, 0)
    net.read(B, after=1.0)
    assert net.rule(B) is WindowKind.LAW

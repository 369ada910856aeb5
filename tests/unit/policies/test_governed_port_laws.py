"""A governed port whose policy has a law that the switch runs."""

from __future__ import annotations

import pytest

from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import PortKey, QueueSample, WindowKind, WindowPlan, WindowRule
from fairq_ryu.policies.base import PortLaw
from fairq_ryu.policies.governed_port import GovernedPort
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from tests.support.fakes import info
from tests.support.flownet import KEY

LEASE = 2.0
PORT = PortKey(1, 7)
FAIRQ, IQM = FairQLaw(), IqmLaw()
UNKNOWN, SHORT, LONG = (QueueSample(0, 0, limit, 1000, 0, 0, 0.0) for limit in (0, 100_000, 200_000))


class Chosen:
    """A policy with a law for the switch."""

    name, interval = "chosen", 0.01

    def __init__(self, spec: object = FAIRQ) -> None:
        self.spec = spec

    def switch_law(self, port: PortKey) -> object:
        assert port == PORT
        if isinstance(self.spec, Exception):
            raise self.spec
        return self.spec


class Controlled:
    """A policy whose law the controller runs: 3000 bytes for every flow."""

    name, interval = "controlled", 0.01

    def port_law(self, port: PortKey) -> PortLaw:
        class Law(PortLaw):
            def queue_sampled(self, sample, flows, now):
                return WindowPlan(window=3000)

        return Law()


def port(policy: object | None = None, **more) -> GovernedPort:
    return GovernedPort(PORT, policy or Chosen(), LEASE / 4, LEASE, **more)


def rules(changes) -> list[WindowRule | None]:
    assert all(change.target.flow is None and change.target.port == PORT for change in changes)
    return [change.rule for change in changes]


LAW = WindowRule(WindowKind.LAW, PORT.port, FAIRQ)
WINDOW = WindowRule(WindowKind.WINDOW, 3000)


def test_the_law_is_requested_when_the_queue_is_known_and_renewed():
    made = port()
    assert made.flow_started(info(KEY), 0.0) == []
    assert rules(made.sampled(UNKNOWN, 0.1)) == []
    assert made.display().where is None, "nothing is governed yet"
    assert rules(made.sampled(SHORT, 0.2)) == [LAW]
    assert made.interval == LOOK_INTERVAL
    assert rules(made.sampled(SHORT, 0.3)) == []
    assert rules(made.sampled(SHORT, 0.75)) == [LAW]
    assert (made.display().where, made.display().target) == ("switch", 25_000)
    assert rules(made.sampled(UNKNOWN, 1.0)) == [None]


def test_flows_and_announcements_are_the_switch_s_business():
    made = port()
    made.sampled(SHORT, 0.0)
    assert made.flow_started(info(KEY), 0.1) == made.flow_ended(KEY, 0.2) == []
    assert not made.wants_progress() and made.thresholds() is None


def test_a_refused_law_leaves_no_windows_and_the_reason():
    made = port()
    made.flow_started(info(KEY), 0.0)
    made.sampled(SHORT, 0.0)
    assert rules(made.law_refused("too fast", 0.1)) == [None]
    assert (made.display().where, made.display().missing) == (None, "too fast")
    assert made.interval == Chosen.interval
    assert made.law_refused("and once more", 0.2) == []
    assert made.display().missing == made.missing == "too fast"
    assert rules(made.sampled(SHORT, 0.3)) == []
    assert made.sampled(UNKNOWN, 0.4) == [] and made.missing is None, "nothing is governed without a queue"


@pytest.mark.parametrize("event", ["queue", "policy", "agent"])
def test_it_is_requested_again_after(event):
    made = port()
    made.sampled(SHORT, 0.0)
    made.law_refused("too fast", 0.1)
    changes = []
    if event == "policy":
        changes = made.govern(Chosen(), 0.2)
    if event == "agent":
        made.switch_gone()
    changes += made.sampled(LONG if event == "queue" else SHORT, 0.3)
    assert rules(changes) == [LAW]
    assert (made.display().where, made.display().missing) == ("switch", None)


def test_a_policy_of_the_controller_needs_no_laws_of_the_switch():
    made = port(Controlled())
    assert rules(made.sampled(SHORT, 0.0)) == [WINDOW]
    assert made.law_refused("too fast", 0.1) == []
    assert (made.display().where, made.display().missing) == ("controller", None)


def test_a_lost_law_is_requested_with_the_next_event():
    made = port()
    made.sampled(SHORT, 0.0)
    made.law_lost()
    assert rules(made.sampled(SHORT, 0.05)) == [LAW]
    made.law_refused("too fast", 0.1)
    made.law_lost()
    assert rules(made.sampled(SHORT, 0.15)) == [], "it is not requested"


def test_a_change_of_the_policy_leaves_no_rule_of_the_law():
    class Nothing:
        name, interval = "nothing", 0.01

    made = port()
    made.sampled(SHORT, 0.0)
    assert rules(made.govern(Nothing(), 0.1)) == [None]
    assert rules(made.govern(Chosen(), 0.2)) == [LAW]
    other = LasLaw()
    assert rules(made.govern(Chosen(other), 0.3)) == [WindowRule(WindowKind.LAW, PORT.port, other)]


def test_only_iqm_shows_an_incast():
    made = port(Chosen(IQM))
    made.sampled(SHORT, 0.0)
    assert (made.shown().incast, made.shown().target) == (False, None)
    assert made.law_reported(True, 0.0) == []
    assert made.shown().incast is True
    made.sampled(UNKNOWN, 0.1)
    assert made.shown().incast is False
    other = port()
    assert other.law_reported(True, 0.0) == []
    other.sampled(SHORT, 0.0)
    assert other.law_reported(True, 0.0) == []
    assert other.shown().incast is None


@pytest.mark.parametrize("spec", [RuntimeError("a bad day"), "fairq", 1, FairQLaw.kind])
def test_a_policy_that_fails_to_name_its_law_rests(spec, caplog):
    made = port(Chosen(spec))
    assert made.sampled(SHORT, 0.0) == []
    assert (made.failures, made.law) == (1, None)
    assert rules(made.sampled(SHORT, 5.0)) == []
    made.policy.spec = FAIRQ
    assert rules(made.sampled(SHORT, 10.1)) == [LAW]


def test_a_law_that_no_agent_would_accept_is_not_requested(caplog):
    caplog.set_level("WARNING")
    made = port(Chosen(FairQLaw(interval_us=-1)))
    assert rules(made.sampled(SHORT, 0.0)) == []
    assert made.display().missing == "interval_us -1 is not between 50 and 10000"
    made.switch_gone()
    made.sampled(SHORT, 0.1)
    assert {record.levelname for record in caplog.records} == {"WARNING"}

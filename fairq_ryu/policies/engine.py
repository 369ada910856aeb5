"""Runs the policies, one law on every port, and keeps the windows in the switches as their plans say.

Pure: returns rule changes, sends nothing. A port law that fails takes its own windows down and
rests; the other ports do not notice. A fresh law (after a failure, or a change of policy) is told of
all that its port has: the last sample of the queue, flows, announcements, congestion; and that this was all.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairq_ryu.model import (
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowInfo,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    RuleChange,
    RuleTarget,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies.base import Policy, PortLaw, Recovery, recovery_of, same, takes_announcements
from fairq_ryu.policies.choice import PolicyChoice
from fairq_ryu.policies.parts.deadline_table import GifTable
from fairq_ryu.policies.parts.installed_rules import InstalledRules
from fairq_ryu.policies.parts.sampling import Sampling

log = logging.getLogger(__name__)
# After a failure a port's law rests this long, seconds, and starts afresh.
REST_AFTER_FAILURE = 10.0
NO_THRESHOLDS = Thresholds(0, 0)


class PortView(NamedTuple):
    """A port for display: ``flows`` by number, what stands (``plan``), the last sample of the queue; whether
    the queue is congested (None: nobody watches that), what the law aims at in bytes (None: at nothing), and
    whether it holds an incast (None: it does not say).
    """

    flows: int
    plan: WindowPlan
    sample: QueueSample | None
    state: Congestion | None
    target: int | None
    incast: bool | None


@dataclass(slots=True)
class _Port:
    policy: Policy
    installed: InstalledRules
    law: PortLaw | None = None
    flows: dict[FlowKey, FlowInfo] = field(default_factory=dict)
    announcements: dict[FlowKey, Announcement] = field(default_factory=dict)
    state: tuple[Congestion, int] | None = None
    plan: WindowPlan = NO_WINDOWS
    rests_until: float = 0.0
    heard_at: float = 0.0
    last: QueueSample | None = None
    sampling: Sampling = field(default_factory=Sampling)
    thresholds_set: bool = False
    watched: bool = False


class PolicyEngine:
    """The policies on all ports. Times in seconds of any monotonic clock."""

    def __init__(self, choice: PolicyChoice | Policy, lease: float) -> None:
        """``lease``: seconds a rule stands; rules are renewed when a quarter of it has passed."""
        self.choice = choice if isinstance(choice, PolicyChoice) else PolicyChoice(choice)
        self.lease = lease
        self.renew_after = lease / 4
        self._ports: dict[PortKey, _Port] = {}
        self._names: dict[PortKey, tuple[str, str]] = {}
        self.failures = 0
        self._lapsed = 0  # on ports that have gone

    @property
    def policy(self) -> Policy:
        """The policy of ports that no pattern names."""
        return self.choice.default

    def policy_of(self, key: PortKey) -> Policy:
        """The policy that governs a port, or would."""
        port = self._ports.get(key)
        return port.policy if port is not None else self._chosen(key)

    def recovery(self, key: PortKey) -> Recovery | None:
        """What is to be done about the port's losses; None: nothing."""
        return recovery_of(self.policy_of(key))

    def interval(self, key: PortKey) -> float:
        """How often the port's queue is to be read, seconds."""
        return self.policy_of(key).interval

    def poll_interval(self, keys: Iterable[PortKey]) -> float:
        """How often queues are to be read for these ports, seconds; the default's if there are none."""
        return min((self.interval(key) for key in keys), default=self.policy.interval)

    # Which policy where

    def named(self, key: PortKey, name: str, role: str, now: float) -> list[RuleChange]:
        """What a port is called, and what it leads to ("host", "link"; "": not known). Its policy may change
        with that.
        """
        self._names[key] = (name, role)
        return self._govern(key, now)

    def use(self, choice: PolicyChoice | Policy, now: float) -> list[RuleChange]:
        """Change the policies. Ports whose policy is the same as before (see
        :func:`~fairq_ryu.policies.base.same`) go on undisturbed; no rule of another old policy stays.
        """
        self.choice = choice if isinstance(choice, PolicyChoice) else PolicyChoice(choice)
        return [change for key in list(self._ports) for change in self._govern(key, now)]

    def _chosen(self, key: PortKey) -> Policy:
        return self.choice.policy(key, *self._names.get(key, ("", "")))

    def _govern(self, key: PortKey, now: float) -> list[RuleChange]:
        port = self._ports.get(key)
        chosen = self._chosen(key)
        if port is None or same(port.policy, chosen):
            return []
        port.policy, port.law, port.plan, port.rests_until = chosen, None, NO_WINDOWS, 0.0
        self._ready(key, port, now)
        return self._changes(port, now)

    # What happens on ports

    def flow_started(self, key: PortKey, flow: FlowInfo, now: float) -> list[RuleChange]:
        """A flow's data will leave by the port. A flow that is known already changes nothing."""
        port = self._port(key)
        if flow.key in port.flows:
            return []
        self._ready(key, port, now)
        port.flows[flow.key] = flow
        return self._ask(key, port, now, "flow_started", flow, len(port.flows), now)

    def flow_ended(self, key: PortKey, flow: FlowKey, now: float) -> list[RuleChange]:
        """A flow has ended. A flow that is not known changes nothing."""
        port = self._ports.get(key)
        if port is None or flow not in port.flows:
            return []
        self._ready(key, port, now)
        info = port.flows.pop(flow)
        port.announcements.pop(flow, None)
        return self._ask(key, port, now, "flow_ended", info, len(port.flows), now)

    def announced(
        self, key: PortKey, flow: FlowKey, announcement: Announcement | None, now: float
    ) -> list[RuleChange]:
        """A flow's size and deadline have been announced, or that was taken back (None). A flow that is not
        known on the port changes nothing.
        """
        port = self._ports.get(key)
        if port is None or flow not in port.flows or port.announcements.get(flow) == announcement:
            return []
        self._ready(key, port, now)
        if announcement is None:
            del port.announcements[flow]
        else:
            port.announcements[flow] = announcement
        return self._ask(key, port, now, "announced", flow, announcement, now)

    def congestion(self, key: PortKey, state: Congestion, backlog: int, now: float) -> list[RuleChange]:
        """The switch says that the port's queue has crossed a threshold."""
        port = self._port(key)
        self._ready(key, port, now)
        port.state = (state, backlog)
        return self._ask(key, port, now, "congestion", state, backlog, now)

    def progressed(self, key: PortKey, flows: Mapping[FlowKey, FlowProgress], now: float) -> list[RuleChange]:
        """How far flows of the port are. A port that is not known changes nothing."""
        port = self._ports.get(key)
        if port is None:
            return []
        self._ready(key, port, now)
        return self._ask(key, port, now, "progressed", flows, now)

    def sampled(self, key: PortKey, sample: QueueSample, now: float) -> list[RuleChange]:
        """The port's queue was read. A law is shown it no more often than its policy's interval; what it is
        not shown is in the ``peak`` and ``mean`` of the next that it is.
        """
        if key not in self._ports and not sample.active and not sample.limit:
            return []  # nothing to govern, and nothing there
        port = self._port(key)
        port.last = sample
        fresh = port.law is None
        self._ready(key, port, now)
        if fresh and port.law is not None:
            return self._changes(port, now)  # it has been shown this one
        due = port.sampling.due(sample, port.policy.interval, now)
        if due is None:
            return self._changes(port, now)
        return self._ask(key, port, now, "queue_sampled", due, len(port.flows), now)

    def port_gone(self, key: PortKey) -> None:
        """The port has gone, and its rules with it."""
        port = self._ports.pop(key, None)
        if port is not None:
            self._lapsed += port.installed.lapsed

    def switch_gone(self, dpid: int) -> int:
        """A switch's agent has gone; when it comes back, its rules are set anew, and flows that were paused
        are woken unless they still are. Returns how many rules stood.
        """
        stood = 0
        for key, port in self._ports.items():
            if key.dpid == dpid:
                stood += len(port.installed)
                port.installed.clear()
                port.state = None
        return stood

    def not_woken(self, target: RuleTarget) -> None:
        """A change was to wake a flow, and the port's agent is away: the next changes of the port are to."""
        port = self._ports.get(target.port)
        if port is not None and target.flow is not None:
            port.installed.not_woken(target.flow)

    # What the laws want

    def wants_progress(self, key: PortKey) -> bool:
        """Is :meth:`progressed` to be called with the port's samples? ``False`` if the law cannot say."""
        port = self._ports.get(key)
        return port is not None and bool(self._query(key, port, "wants_progress"))

    def thresholds(self, key: PortKey) -> Thresholds | None:
        """The thresholds that should stand in the switch now; None: none, and none ever stood."""
        port = self._ports.get(key)
        if port is None:
            return None
        wanted = self._query(key, port, "thresholds")
        port.watched = isinstance(wanted, Thresholds) and wanted.cng > 0
        if not port.watched:
            port.state = None  # nobody would say that it is another: the next law is not to be told of it
        if isinstance(wanted, Thresholds):
            port.thresholds_set = True
            return wanted
        return NO_THRESHOLDS if port.thresholds_set else None

    def buffer(self, key: PortKey) -> int:
        """What the port's queue holds, bytes; 0: not known."""
        port = self._ports.get(key)
        return 0 if port is None or port.last is None else port.last.limit

    def busy(self, key: PortKey) -> bool:
        """Has the port flows or windows?"""
        port = self._ports.get(key)
        return port is not None and bool(port.flows or port.installed)

    def view(self) -> Mapping[PortKey, PortView]:
        """For display: every port that something is known of."""
        return {key: _view(port) for key, port in self._ports.items()}

    def incast(self, key: PortKey) -> bool | None:
        """For display: does the port's law hold an incast? None: it does not say."""
        port = self._ports.get(key)
        return None if port is None else _flag(port.law)

    def missed(self, flow: FlowKey, now: float) -> PortKey | None:
        """For display: a port by whose table the flow has missed its deadline."""
        for key, port in self._ports.items():
            if flow in port.flows:
                table = getattr(port.law, "gif", None)
                entry = table.get(flow) if isinstance(table, GifTable) else None
                if entry is not None and entry.missed(now):
                    return key
        return None

    def rules(self, now: float) -> Counter[int]:
        """For display: the rules whose lease has not run out, by the dpid of their switch."""
        found: Counter[int] = Counter()
        for key, port in self._ports.items():
            found[key.dpid] += port.installed.alive(now)
        return found

    @property
    def lapsed(self) -> int:
        """The number of rules that were said again, or taken away, when their lease had run out already."""
        return self._lapsed + sum(port.installed.lapsed for port in self._ports.values())

    def deaf(self) -> str | None:
        """Why announcing a flow is to no purpose: no policy that governs ports heeds sizes or deadlines. None
        if one does.
        """
        policies = self.choice.policies
        try:
            if any(takes_announcements(policy) for policy in policies):
                return None
        except Exception:  # of another package; what it does with its ports is another matter
            return None
        names = ", ".join(dict.fromkeys(policy.name for policy in policies))
        return f"the policy in force ({names}) ignores sizes and deadlines"

    def gif(self) -> Mapping[PortKey, GifTable]:
        """For display: the tables of announced flows, of the ports whose law keeps one as ``gif``."""
        tables = ((key, getattr(port.law, "gif", None)) for key, port in self._ports.items())
        return {key: table for key, table in tables if isinstance(table, GifTable)}

    # Laws

    def _port(self, key: PortKey) -> _Port:
        port = self._ports.get(key)
        if port is None:
            installed = InstalledRules(key, self.renew_after, self.lease)
            port = self._ports[key] = _Port(self._chosen(key), installed)
        return port

    def _ready(self, key: PortKey, port: _Port, now: float) -> None:
        """See that the port has a law, unless it rests, and that the law knows what the port has."""
        port.heard_at = now
        if port.law is not None or now < port.rests_until:
            return
        try:
            port.law = port.policy.port_law(key)
        except Exception:
            self._failed(key, port, now)
            return
        # In this order: the buffer decides what a flow means.
        if port.last is not None:
            port.sampling.restart(now)
            self._take(key, port, now, "queue_sampled", port.last, len(port.flows), now)
        for count, flow in enumerate(port.flows.values(), 1):
            self._take(key, port, now, "flow_started", flow, count, now)
        for known, announcement in port.announcements.items():
            self._take(key, port, now, "announced", known, announcement, now)
        if port.state is not None:
            self._take(key, port, now, "congestion", *port.state, now)
        self._take(key, port, now, "settled", now)

    def _ask(self, key: PortKey, port: _Port, now: float, what: str, *about: Any) -> list[RuleChange]:
        self._take(key, port, now, what, *about)
        return self._changes(port, now)

    def _take(self, key: PortKey, port: _Port, now: float, what: str, *about: Any) -> None:
        """Tell a law something, and take over its plan. A law need not know of everything."""
        if port.law is None:
            return
        try:
            question = getattr(port.law, what, None)
            plan = None if question is None else question(*about)
            if plan is not None:
                if not isinstance(plan, WindowPlan) or not all(isinstance(f, FlowKey) for f in plan.flows):
                    raise TypeError(f"a port law answers with a WindowPlan or None, not {plan!r}")
                port.plan = plan
        except Exception:
            self._failed(key, port, now)

    def _query(self, key: PortKey, port: _Port, what: str) -> Any:
        """Ask a law for what it wants; None if it cannot say."""
        question = getattr(port.law, what, None)
        if question is None:
            return None
        try:
            return question()
        except Exception:
            self._failed(key, port, port.heard_at)
            return None

    def _failed(self, key: PortKey, port: _Port, now: float) -> None:
        log.exception(
            "policy %s failed on port %s: its windows are taken down for %.0f s",
            port.policy.name,
            key,
            REST_AFTER_FAILURE,
        )
        self.failures += 1
        port.law, port.plan = None, NO_WINDOWS
        port.rests_until = now + REST_AFTER_FAILURE

    def _changes(self, port: _Port, now: float) -> list[RuleChange]:
        return port.installed.changes(port.plan, port.flows, now)


def _flag(law: PortLaw | None) -> bool | None:
    found = getattr(law, "incast", None)
    return found if isinstance(found, bool) else None


def _view(port: _Port) -> PortView:
    state = (port.state[0] if port.state is not None else Congestion.NOM) if port.watched else None
    target = None
    aim = getattr(port.law, "target", None)
    if callable(aim):
        try:
            found = aim()
            target = None if found is None else int(found)
        except Exception:  # for display only: the law may still do what it is there for
            log.debug("policy %s cannot say its target", port.policy.name, exc_info=True)
    return PortView(len(port.flows), port.plan, port.last, state, target, _flag(port.law))

"""Runs a policy on every port, and keeps the windows in the switches as the policy's plans say.

Pure: returns rule changes, sends nothing. A port law that fails takes its own windows down and
rests; the other ports do not notice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairq_ryu.model import (
    NO_WINDOWS,
    FlowInfo,
    FlowKey,
    PortKey,
    QueueSample,
    RuleChange,
    RuleTarget,
    WindowPlan,
)
from fairq_ryu.policies.base import Policy, PortLaw

log = logging.getLogger(__name__)
# After a failure a port's law rests this long, seconds, and starts afresh.
REST_AFTER_FAILURE = 10.0
_Question = Callable[[PortLaw], WindowPlan | None]


@dataclass(slots=True)
class _Standing:
    bytes: int
    pool: bool
    since: float


@dataclass(slots=True)
class _Port:
    law: PortLaw | None
    flows: dict[FlowKey, FlowInfo] = field(default_factory=dict)
    plan: WindowPlan = NO_WINDOWS
    standing: dict[FlowKey | None, _Standing] = field(default_factory=dict)
    rests_until: float = 0.0
    last: QueueSample | None = None


class PolicyEngine:
    """The policy on all ports. Times in seconds of any monotonic clock."""

    def __init__(self, policy: Policy, lease: float) -> None:
        """``lease``: seconds a rule stands; rules are renewed when a quarter of it has passed."""
        self.policy = policy
        self.renew_after = lease / 4
        self._ports: dict[PortKey, _Port] = {}
        self.failures = 0

    def flow_started(self, key: PortKey, flow: FlowInfo, now: float) -> list[RuleChange]:
        """A flow's data will leave by the port. A flow that is known already changes nothing."""
        port = self._port(key)
        if flow.key in port.flows:
            return []
        port.flows[flow.key] = flow
        return self._ask(key, port, now, lambda law: law.flow_started(flow, len(port.flows), now))

    def flow_ended(self, key: PortKey, flow: FlowKey, now: float) -> list[RuleChange]:
        """A flow has ended. A flow that is not known changes nothing."""
        port = self._ports.get(key)
        info = port.flows.pop(flow, None) if port else None
        if port is None or info is None:
            return []
        return self._ask(key, port, now, lambda law: law.flow_ended(info, len(port.flows), now))

    def sampled(self, key: PortKey, sample: QueueSample, now: float) -> list[RuleChange]:
        """The port's queue was read."""
        if key not in self._ports and not sample.active and not sample.limit:
            return []  # nothing to govern, and nothing there
        port = self._port(key)
        port.last = sample
        return self._ask(key, port, now, lambda law: law.queue_sampled(sample, len(port.flows), now))

    def port_gone(self, key: PortKey) -> None:
        """The port has gone, and its rules with it."""
        self._ports.pop(key, None)

    def switch_gone(self, dpid: int) -> None:
        """A switch's agent has gone; when it comes back, its rules are set anew."""
        for key, port in self._ports.items():
            if key.dpid == dpid:
                port.standing.clear()

    def busy(self, key: PortKey) -> bool:
        """Has the port flows or windows?"""
        port = self._ports.get(key)
        return port is not None and bool(port.flows or port.standing)

    def view(self) -> Mapping[PortKey, tuple[int, WindowPlan, QueueSample | None]]:
        """For display: flows, plan and last sample of every port."""
        return {key: (len(p.flows), p.plan, p.last) for key, p in self._ports.items()}

    def _port(self, key: PortKey) -> _Port:
        port = self._ports.get(key)
        if port is None:
            port = self._ports[key] = _Port(None)
        return port

    def _ask(self, key: PortKey, port: _Port, now: float, question: _Question) -> list[RuleChange]:
        if now < port.rests_until:
            return self._changes(key, port, now)
        try:
            if port.law is None:
                port.law = self.policy.port_law(key)
            plan = question(port.law)
            if plan is not None:
                if not isinstance(plan, WindowPlan) or not all(isinstance(f, FlowKey) for f in plan.flows):
                    raise TypeError(f"a port law answers with a WindowPlan or None, not {plan!r}")
                port.plan = plan
        except Exception:
            log.exception(
                "policy %s failed on port %s: its windows are taken down for %.0f s",
                self.policy.name,
                key,
                REST_AFTER_FAILURE,
            )
            self.failures += 1
            port.law, port.plan = None, NO_WINDOWS
            port.rests_until = now + REST_AFTER_FAILURE
        return self._changes(key, port, now)

    def _changes(self, key: PortKey, port: _Port, now: float) -> list[RuleChange]:
        """What must be said for the switch to do what the plan says."""
        plan = port.plan
        wanted: dict[FlowKey | None, tuple[int, bool]] = {f: (size, False) for f, size in plan.flows.items()}
        if plan.pool is not None:
            wanted[None] = (plan.pool, True)
        elif plan.window is not None:
            wanted[None] = (plan.window, False)
        changes = []
        for flow in list(port.standing):
            if flow not in wanted:
                del port.standing[flow]
                changes.append(RuleChange(RuleTarget(key, flow), None))
        for flow, (size, pool) in wanted.items():
            standing = port.standing.get(flow)
            if (
                standing is None
                or (standing.bytes, standing.pool) != (size, pool)
                or now - standing.since >= self.renew_after
            ):
                port.standing[flow] = _Standing(size, pool, now)
                changes.append(RuleChange(RuleTarget(key, flow), size, pool))
        return changes

"""The rules that stand in a switch for one port, and what must be said for them to be what a plan says."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowPlan


@dataclass(slots=True)
class _Rule:
    bytes: int
    pool: bool
    since: float


class StandingRules:
    """The rules of one port, by flow; None is the rule for all flows of the port."""

    def __init__(self, port: PortKey, renew_after: float, lease: float = math.inf) -> None:
        """``renew_after``: a rule that has not changed is said again after so many seconds; ``lease``: after
        so many it ends in the switch unless it was. ``lapsed`` counts the rules that it was too late for.
        """
        self.port = port
        self.renew_after = renew_after
        self.lease = lease
        self.lapsed = 0
        self._rules: dict[FlowKey | None, _Rule] = {}
        # Flows whose senders may still wait, though no rule here says so; in the order of their pauses.
        self._paused: dict[FlowKey, None] = {}

    def __len__(self) -> int:
        return len(self._rules)

    def alive(self, now: float) -> int:
        """The number of rules whose lease has not run out, by the clock that they were said by."""
        return sum(now - rule.since <= self.lease for rule in self._rules.values())

    def clear(self) -> None:
        """The switch has lost them. Senders that they have paused wait all the same, until they are woken."""
        for flow, rule in self._rules.items():
            if flow is not None and rule.bytes == 0:
                self._paused[flow] = None
        self._rules.clear()

    def not_woken(self, flow: FlowKey) -> None:
        """A change was to wake the flow, and there was nobody to say it to: the next ones are to."""
        self._paused[flow] = None

    def _leave(self, rule: _Rule, now: float) -> None:
        """A rule is replaced or taken away; was that in time?"""
        self.lapsed += now - rule.since > self.lease

    def changes(self, plan: WindowPlan, flows: Collection[FlowKey], now: float) -> list[RuleChange]:
        """What is to be said now. ``flows`` are those that there are: one that has ended is not woken."""
        wanted: dict[FlowKey | None, tuple[int, bool]] = {f: (size, False) for f, size in plan.flows.items()}
        if plan.pool is not None:
            wanted[None] = (plan.pool, True)
        elif plan.window is not None:
            wanted[None] = (plan.window, False)
        if self._paused:
            self._paused = {flow: None for flow in self._paused if flow in flows}
        changes = []
        for flow in [flow for flow in self._rules if flow not in wanted]:
            gone = self._rules.pop(flow)
            self._leave(gone, now)
            paused = flow in flows and (gone.bytes == 0 or flow in self._paused)
            if flow is not None:
                self._paused.pop(flow, None)
            changes.append(RuleChange(RuleTarget(self.port, flow), None, wake=paused))
        for flow, (size, pool) in wanted.items():
            rule = self._rules.get(flow)
            waits = size > 0 and flow in self._paused
            if (
                rule is None
                or waits
                or (rule.bytes, rule.pool) != (size, pool)
                or now - rule.since >= self.renew_after
            ):
                if rule is not None:
                    self._leave(rule, now)
                woken = rule is not None and rule.bytes == 0 and size > 0 and flow in flows
                woken = woken or waits
                self._rules[flow] = _Rule(size, pool, now)
                changes.append(RuleChange(RuleTarget(self.port, flow), size, pool, woken))
        # Of those that are left, the ones without a rule are paused no longer.
        left = [flow for flow in self._paused if flow not in wanted]
        changes += [RuleChange(RuleTarget(self.port, flow), None, wake=True) for flow in left]
        self._paused.clear()
        return changes

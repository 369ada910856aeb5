"""The window rules that a switch has for one port, and the changes that make them match a plan."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from fairq_ryu.model import (
    NO_WINDOWS,
    FlowKey,
    PortKey,
    PortMode,
    RuleChange,
    RuleTarget,
    WindowPlan,
    WindowRule,
)


@dataclass(slots=True)
class _Rule:
    window: WindowRule
    since: float

    @property
    def pauses(self) -> bool:
        return self.window.bytes == 0


class InstalledRules:
    """The installed rules of one port, by flow; None is the rule for all flows of the port."""

    def __init__(self, port: PortKey, renew_after: float, lease: float = math.inf) -> None:
        """``renew_after``: seconds after which an unchanged rule is sent again; ``lease``: seconds after
        which the switch removes a rule that was not sent again. ``lapsed`` counts the rules whose lease had
        ended when they were renewed or removed.
        """
        self.port = port
        self.renew_after = renew_after
        self.lease = lease
        self.lapsed = 0
        self.mode = PortMode.ACT
        self._rules: dict[FlowKey | None, _Rule] = {}
        # Flows whose senders may still be paused although no rule pauses them, in the order of the pauses.
        self._paused: dict[FlowKey, None] = {}
        # The last plan, if it has no rules for single flows, and when its rule is sent again: until then it
        # needs no changes. Most calls of a busy port end there.
        self._applied: WindowPlan | None = None
        self._renew_at = math.inf

    def __len__(self) -> int:
        return len(self._rules)

    def alive(self, now: float) -> int:
        """Number of rules whose lease has not ended at ``now``."""
        return sum(now - rule.since <= self.lease for rule in self._rules.values())

    def clear(self) -> None:
        """The switch has lost its rules. Senders that these paused stay paused until they are woken."""
        for flow, rule in self._rules.items():
            if flow is not None and rule.pauses:
                self._paused[flow] = None
        self._rules.clear()
        self._applied = None

    def port_rule_lost(self) -> None:
        """The switch does not have the rule for all flows of the port: the next changes install it again."""
        self._rules.pop(None, None)
        self._applied = None

    def not_woken(self, flow: FlowKey) -> None:
        """A change that was to wake the flow could not be sent: the next change wakes it."""
        self._paused[flow] = None
        self._applied = None

    def end_mode(self, mode: PortMode, flows: Collection[FlowKey], now: float) -> list[RuleChange]:
        """The port has another mode from now on. Returns the changes that end its rules, which belong to the
        mode before: they are to be sent before the switch learns the new one.
        """
        ended = self.changes(NO_WINDOWS, flows, now)
        self.mode = mode
        return ended

    def _count_lapsed(self, rule: _Rule, now: float) -> None:
        """A rule is replaced or removed: count it if its lease had ended."""
        self.lapsed += now - rule.since > self.lease

    def changes(self, plan: WindowPlan, flows: Collection[FlowKey], now: float) -> list[RuleChange]:
        """The changes to send now. ``flows`` are the port's flows: a flow that has ended is not woken, nor
        are those of a port that is only observed, because none was paused.
        """
        if self.mode is PortMode.DISABLED:
            plan = NO_WINDOWS
        if plan is self._applied and now < self._renew_at:
            return []
        wanted = plan.rules
        if self._paused:
            self._paused = {flow: None for flow in self._paused if flow in flows}
        changes = []
        for flow in [flow for flow in self._rules if flow not in wanted]:
            gone = self._rules.pop(flow)
            self._count_lapsed(gone, now)
            paused = flow in flows and (gone.pauses or flow in self._paused)
            if flow is not None:
                self._paused.pop(flow, None)
            changes.append(RuleChange(RuleTarget(self.port, flow), None, wake=paused))
        for flow, window in wanted.items():
            rule = self._rules.get(flow)
            waits = window.bytes > 0 and flow in self._paused
            if rule is None or waits or rule.window != window or now - rule.since >= self.renew_after:
                if rule is not None:
                    self._count_lapsed(rule, now)
                woken = rule is not None and rule.pauses and window.bytes > 0 and flow in flows
                woken = woken or waits
                self._rules[flow] = _Rule(window, now)
                changes.append(RuleChange(RuleTarget(self.port, flow), window, woken))
        # The remaining paused flows have no rule any more: wake them.
        left = [flow for flow in self._paused if flow not in wanted]
        changes += [RuleChange(RuleTarget(self.port, flow), None, wake=True) for flow in left]
        self._paused.clear()
        rule = self._rules.get(None)
        self._applied = None if plan.flows else plan
        self._renew_at = math.inf if rule is None else rule.since + self.renew_after
        if self.mode is PortMode.OBSERVE:
            changes = [change._replace(wake=False) for change in changes]
        return changes

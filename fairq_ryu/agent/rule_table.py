"""One of the agent's flow tables: the installed window rules, or those of queue laws, by OpenFlow 1.3's rules
for FlowMods.

Pure: time is an argument (CLOCK_MONOTONIC ns), and changes are written to a :class:`RuleSink`. A rule's
identity is its match. Precedence is fixed: a flow's own rule overrides its port's, so ``priority`` is stored
and reported but has no effect. Bounded: at most ``capacity`` rules, each with a slot for its counters.

A command whose match names one rule (``in_port``, or a full 5-tuple) costs one look-up, however many rules
there are: thousands of flows may end together. A match with fewer fields is compared with every rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from fairq_ryu.channel.flow_match import MatchFields, match_fields, rule_target
from fairq_ryu.channel.flowmod_decoder import FlowMod
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import FlowKey, WindowRule

PortOrFlow = int | FlowKey
"""The scope of a rule: all flows of a port (its OpenFlow number), or one flow (that of the ACKs)."""
NS = 1_000_000_000
# The longest lease that a FlowMod can give.
_LONGEST_NS = 0xFFFF * NS


class RuleSink(Protocol):
    """Where rules take effect: the eBPF programs, or a fake in the tests."""

    def has_port(self, port: int) -> bool:
        """Whether this is a port of the bridge on which a rule can be installed."""

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Install a rule, or change it."""

    def remove_rule(self, target: PortOrFlow) -> None:
        """Remove a rule."""

    def counters(self, slot: int) -> tuple[int, int]:
        """The number of ACKs that the rule applied to, and of those it lowered."""

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An installed rule. ``target`` is a port number, or the flow of the ACKs it lowers."""

    target: PortOrFlow
    window: WindowRule
    cookie: int
    hard_timeout: int
    priority: int
    flags: int
    since_ns: int
    slot: int

    @property
    def match(self) -> MatchFields:
        """The rule's match, by OXM name."""
        return match_fields(self.target)

    @property
    def table(self) -> int:
        """The number of its table."""
        return self.window.kind.table

    @property
    def expires_ns(self) -> int:
        """When its lease ends."""
        return self.since_ns + self.hard_timeout * NS


class RuleTable:
    """The rules, at most ``capacity`` of them."""

    def __init__(self, sink: RuleSink, capacity: int) -> None:
        self._sink = sink
        self._rules: dict[PortOrFlow, Rule] = {}
        self._free = list(range(capacity - 1, -1, -1))
        self._first_end_ns = 0  # no lease ends before
        self.capacity = capacity

    def __len__(self) -> int:
        return len(self._rules)

    def rules(self) -> list[Rule]:
        """All rules."""
        return list(self._rules.values())

    def port_rule(self, port: int) -> Rule | None:
        """The rule of a port."""
        return self._rules.get(port)

    def apply(self, mod: FlowMod, now_ns: int) -> list[Rule]:
        """Apply a FlowMod; returns the rules it removed.

        Raises :class:`OpenFlowError` for one that is refused, and changes nothing then.
        """
        if mod.command == ofp.OFPFC_ADD:
            self._add(mod, now_ns)
            return []
        chosen = self._chosen(mod.match, mod.cookie, mod.cookie_mask, self._is_strict(mod))
        if mod.command in (ofp.OFPFC_DELETE, ofp.OFPFC_DELETE_STRICT):
            # These rules have no output action, so a filter by output selects none.
            if mod.out_port not in (ofp.OFPP_ANY, 0) or mod.out_group not in (ofp.OFPG_ANY, 0):
                return []
            for rule in chosen:
                self._remove(rule)
            return chosen
        for rule in chosen:
            self._modify(rule, mod)
        return []

    def select(self, match: MatchFields, cookie: int, cookie_mask: int) -> list[Rule]:
        """The rules that a statistics request selects."""
        return self._chosen(match, cookie, cookie_mask, False)

    def expire(self, now_ns: int) -> list[Rule]:
        """Remove the rules whose lease has ended (the eBPF programs ignore them already)."""
        if now_ns < self._first_end_ns:
            return []
        expired, first = [], now_ns + _LONGEST_NS
        for rule in self._rules.values():
            if rule.expires_ns <= now_ns:
                expired.append(rule)
            else:
                first = min(first, rule.expires_ns)
        self._first_end_ns = first
        for rule in expired:
            self._remove(rule)
        return expired

    def forget_port(self, port: int) -> list[Rule]:
        """Remove the rule of a port that has gone."""
        rule = self._rules.get(port)
        if rule is None:
            return []
        self._remove(rule)
        return [rule]

    @staticmethod
    def _is_strict(mod: FlowMod) -> bool:
        return mod.command in (ofp.OFPFC_MODIFY_STRICT, ofp.OFPFC_DELETE_STRICT)

    def _chosen(self, match: MatchFields, cookie: int, cookie_mask: int, strict: bool) -> list[Rule]:
        """The rules that a command or a request selects."""
        try:
            named = self._rules.get(rule_target(match))
        except OpenFlowError:  # the match names no single rule
            if strict:
                return []  # no rule has such a match
            found = [rule for rule in self._rules.values() if match.items() <= rule.match.items()]
        else:
            found = [] if named is None else [named]
        return [rule for rule in found if not (rule.cookie ^ cookie) & cookie_mask]

    def _add(self, mod: FlowMod, now_ns: int) -> None:
        assert mod.window is not None  # the decoder refuses an ADD without one
        target = rule_target(mod.match)
        if isinstance(target, int) and not self._sink.has_port(target):
            raise OpenFlowError(ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_VALUE, f"no port {target} here")
        old = self._rules.get(target)
        if old is not None and mod.flags & ofp.OFPFF_CHECK_OVERLAP:
            raise OpenFlowError(
                ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_OVERLAP, "there is a rule with this match"
            )
        if old is None and not self._free:
            raise OpenFlowError(
                ofp.OFPET_FLOW_MOD_FAILED,
                ofp.OFPFMFC_TABLE_FULL,
                f"{self.capacity} rules are installed already",
            )
        slot = old.slot if old is not None else self._free[-1]
        rule = Rule(target, mod.window, mod.cookie, mod.hard_timeout, mod.priority, mod.flags, now_ns, slot)
        if old is None or mod.flags & ofp.OFPFF_RESET_COUNTS:
            self._sink.reset_counters(slot)
        self._sink.install_rule(target, rule.window, rule.expires_ns, slot)
        if old is None:
            self._free.pop()
        self._rules[target] = rule
        self._first_end_ns = min(self._first_end_ns, rule.expires_ns)

    def _modify(self, rule: Rule, mod: FlowMod) -> None:
        assert mod.window is not None
        if mod.flags & ofp.OFPFF_RESET_COUNTS:
            self._sink.reset_counters(rule.slot)
        self._sink.install_rule(rule.target, mod.window, rule.expires_ns, rule.slot)
        self._rules[rule.target] = replace(rule, window=mod.window)

    def _remove(self, rule: Rule) -> None:
        self._sink.remove_rule(rule.target)
        del self._rules[rule.target]
        self._free.append(rule.slot)

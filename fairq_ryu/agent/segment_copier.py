"""Copies of SYN, FIN and RST for controllers: the rules in force, who has asked, and the PACKET_INs.

    FlowMod with tcp_flags ---> rule of the eBPF program, until its lease ends
    segment --(program: believed? within the rate?)--> ring buffer ---> controllers that asked, and read

Pure: time is an argument (CLOCK_MONOTONIC ns). Bounded: one rule for each flag and IP version; a controller
that does not read loses copies. The order of the ring buffer is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from fairq_ryu.channel import segment_copies
from fairq_ryu.channel.flow_match import MatchFields
from fairq_ryu.channel.flowmod import TABLE_ID
from fairq_ryu.channel.flowmod_decoder import FlowMod
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.segment_copies import CopyAction, SegmentCopy, SegmentMatch

_NS = 1_000_000_000


class CopiedSegment(NamedTuple):
    """A segment that the program has copied: the ``rule`` that it matched, the port by which it leaves, its
    ``frame`` or the beginning of it, and the length of the whole frame in bytes.
    """

    rule: SegmentMatch
    port: int
    frame: bytes
    length: int


class CopySink(Protocol):
    """Where the rules take effect: the eBPF program, or a fake in the tests."""

    def install_copies(self, rule: SegmentMatch, expires_ns: int) -> None:
        """Copy these segments until then."""

    def remove_copies(self, rule: SegmentMatch) -> None:
        """Copy these segments no longer."""

    def copy_counts(self, rule: SegmentMatch) -> tuple[int, int]:
        """The number of segments that the rule matched, and of those it copied."""

    def reset_copy_counts(self, rule: SegmentMatch) -> None:
        """Start the counts of a rule at 0."""


class Controller(Protocol):
    """A controller's connection."""

    role: int
    """``OFPCR_ROLE_...``"""

    @property
    def ready(self) -> bool:
        """Whether packets may be sent to it."""

    def push(self, data: bytes) -> None:
        """Send an asynchronous message."""


@dataclass(frozen=True, slots=True)
class CopyRule:
    """An installed rule."""

    target: SegmentMatch
    action: CopyAction
    cookie: int
    hard_timeout: int
    priority: int
    flags: int
    since_ns: int

    @property
    def table(self) -> int:
        """The number of its table."""
        return TABLE_ID

    @property
    def match(self) -> MatchFields:
        """The rule's match, by OXM name."""
        return segment_copies.match_fields(self.target)

    @property
    def expires_ns(self) -> int:
        """When its lease ends."""
        return self.since_ns + self.hard_timeout * _NS


@dataclass(slots=True)
class CopyCounts:
    """PACKET_INs: ``sent``, and ``unread``: not sent, because a controller did not read fast enough."""

    sent: int = 0
    unread: int = 0


class SegmentCopier:
    """The rules for copies of one bridge, by OpenFlow 1.3's rules for FlowMods."""

    def __init__(self, sink: CopySink) -> None:
        self._sink = sink
        self._rules: dict[SegmentMatch, CopyRule] = {}
        # Who has asked for the segments of a rule, and until when.
        self._askers: dict[SegmentMatch, dict[Controller, int]] = {}
        self.counts = CopyCounts()

    def __len__(self) -> int:
        return len(self._rules)

    def rules(self) -> list[CopyRule]:
        """All rules."""
        return list(self._rules.values())

    # FlowMods

    def apply(self, mod: FlowMod, controller: Controller, now_ns: int) -> None:
        """Add or modify rules, by a FlowMod whose action is a copy. Raises :class:`OpenFlowError` if it is
        refused, and changes nothing then.
        """
        assert mod.copy is not None
        if mod.command == ofp.OFPFC_ADD:
            self._add(mod, mod.copy, controller, now_ns)
            return
        for rule in self._selected(mod.match, mod.cookie, mod.cookie_mask, _is_strict(mod)):
            if mod.flags & ofp.OFPFF_RESET_COUNTS:
                self._sink.reset_copy_counts(rule.target)
            self._rules[rule.target] = replace(rule, action=mod.copy)

    def _add(self, mod: FlowMod, action: CopyAction, controller: Controller, now_ns: int) -> None:
        target = segment_copies.segment_match(mod.match)
        assert target is not None  # the decoder refuses any other ADD
        known = target in self._rules
        if known and mod.flags & ofp.OFPFF_CHECK_OVERLAP:
            raise OpenFlowError(
                ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_OVERLAP, "there is a rule with this match"
            )
        rule = CopyRule(target, action, mod.cookie, mod.hard_timeout, mod.priority, mod.flags, now_ns)
        if not known or mod.flags & ofp.OFPFF_RESET_COUNTS:
            self._sink.reset_copy_counts(target)
        self._sink.install_copies(target, rule.expires_ns)
        self._rules[target] = rule
        self._askers.setdefault(target, {})[controller] = rule.expires_ns

    def delete(self, mod: FlowMod) -> list[CopyRule]:
        """Remove the rules that a deletion selects; returns them."""
        outputs, groups = (ofp.OFPP_ANY, ofp.OFPP_CONTROLLER, 0), (ofp.OFPG_ANY, 0)
        if mod.out_port not in outputs or mod.out_group not in groups:
            return []
        return self._remove(self._selected(mod.match, mod.cookie, mod.cookie_mask, _is_strict(mod)))

    def select(self, match: MatchFields, cookie: int, cookie_mask: int) -> list[CopyRule]:
        """The rules that a statistics request selects."""
        return self._selected(match, cookie, cookie_mask, False)

    def _selected(self, match: MatchFields, cookie: int, mask: int, strict: bool) -> list[CopyRule]:
        return [
            rule
            for rule in self._rules.values()
            if not (rule.cookie ^ cookie) & mask
            and (rule.match == match if strict else match.items() <= rule.match.items())
        ]

    def _remove(self, rules: list[CopyRule]) -> list[CopyRule]:
        for rule in rules:
            self._sink.remove_copies(rule.target)
            del self._rules[rule.target]
            del self._askers[rule.target]
        return rules

    # Ends

    def expire(self, now_ns: int) -> list[CopyRule]:
        """Remove the rules whose lease has ended (the eBPF program ignores them already); returns them."""
        return self._remove([rule for rule in self._rules.values() if rule.expires_ns <= now_ns])

    def forget(self, controller: Controller) -> list[CopyRule]:
        """A controller's connection has ended. Removes the rules that nobody else has asked for; returns
        them.
        """
        for askers in self._askers.values():
            askers.pop(controller, None)
        return self._remove([rule for rule in self._rules.values() if not self._askers[rule.target]])

    # Copies

    def deliver(self, copies: Iterable[CopiedSegment], now_ns: int) -> None:
        """Send copies to the controllers that asked for them, and read."""
        for target, port, frame, length in copies:
            rule = self._rules.get(target)
            if rule is None:
                continue  # deleted meanwhile
            message = b""
            for controller, until_ns in self._askers[target].items():
                if until_ns <= now_ns or controller.role == ofp.OFPCR_ROLE_SLAVE:
                    continue
                if not controller.ready:
                    self.counts.unread += 1
                    continue
                if not message:
                    size = min(rule.action.max_len, segment_copies.COPY_BYTES)
                    message = segment_copies.encode(SegmentCopy(port, frame[:size], length), rule.cookie)
                controller.push(message)
                self.counts.sent += 1


def _is_strict(mod: FlowMod) -> bool:
    return mod.command in (ofp.OFPFC_MODIFY_STRICT, ofp.OFPFC_DELETE_STRICT)

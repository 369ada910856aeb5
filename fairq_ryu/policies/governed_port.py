"""One port and the law that governs it: events in, rule changes out. A law that fails harms only its port.

Theory of operation. A port is in one of three states:

    new        it has no law: nothing has happened on it yet, or its policy was changed
    governed   it has a law, whose last plan says which windows should be installed
    resting    its law has raised an exception: no windows, and no law for `REST_AFTER_FAILURE` seconds

Every event takes the same way:

    event -> new, or rested long enough? a fresh law, and the port's state replayed to it
          -> the law's method for this event -> a plan; None keeps the last plan
          -> InstalledRules.changes -> the rule changes to send
          -> exception: resting, with an empty plan

A fresh law does not know the past, so the port's present state is replayed to it as ordinary events: the
last sample of the queue first, because laws need the buffer size when a flow starts, then flows,
announcements and congestion. ``settled`` then tells the law that all further events are new. The event that
caused the fresh law follows after that, and is not part of the replay.

A policy may have a law that the switch runs (``switch_law``). Then the port's law is a :class:`SwitchPort`,
which requests it, or a :class:`LayeredPort` if the policy has a law of the controller as well (``port_law``).
If the switch does not run it, the port has no windows until the buffer or the rate of the queue changes, the
policy changes, or the agent connects again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from fairq_ryu import model
from fairq_ryu.policies.base import Display, Policy, PortLaw, port_law, switch_law
from fairq_ryu.policies.layered_port import LayeredPort
from fairq_ryu.policies.parts.deadline_table import GifTable
from fairq_ryu.policies.parts.installed_rules import InstalledRules
from fairq_ryu.policies.parts.sampling import Sampling
from fairq_ryu.policies.switch_port import LOOK_INTERVAL, SwitchPort

log = logging.getLogger(__name__)
# Seconds from a failure of a port's law until the port gets a fresh one.
REST_AFTER_FAILURE = 10.0
NO_THRESHOLDS = model.Thresholds(0, 0)
NOTHING_SHOWN = Display()

T = TypeVar("T")


class PortView(NamedTuple):
    """A port for displays: its flows, the plan in force, the last sample, what its law shows, its mode."""

    flows: int
    plan: model.WindowPlan
    sample: model.QueueSample | None
    shown: Display
    mode: model.PortMode = model.PortMode.ACT


class GovernedPort:
    """A port, its policy and its law. Times in seconds of any monotonic clock."""

    def __init__(
        self,
        key: model.PortKey,
        policy: Policy,
        renew_after: float,
        lease: float,
    ) -> None:
        """``renew_after`` and ``lease``: see :class:`InstalledRules`."""
        self.key = key
        self.policy = policy
        self.law: PortLaw | None = None
        self.plan: model.WindowPlan = model.NO_WINDOWS
        self.installed = InstalledRules(key, renew_after, lease)
        self.failures = 0
        # The state that is replayed to a fresh law.
        self.last: model.QueueSample | None = None
        self.flows: dict[model.FlowKey, model.FlowInfo] = {}
        self._announcements: dict[model.FlowKey, model.Announcement] = {}
        self._congestion: tuple[model.Congestion, int] | None = None
        self._sampling = Sampling()
        self._rests_until = 0.0
        self._last_event = 0.0
        # Whether the switch was ever given thresholds, and whether it has some now.
        self._thresholds_set = False
        self._watched = False
        # Why the switch does not run the law of this policy, and the buffer and rate with which it refused.
        self._refusal: str | None = None
        self._refused_with: tuple[int, int] | None = None

    # Events

    def flow_started(self, flow: model.FlowInfo, now: float) -> list[model.RuleChange]:
        """A flow whose data leaves by the port has started. A known flow changes nothing."""
        if flow.key in self.flows:
            return []
        self._ensure_law(now)
        self.flows[flow.key] = flow
        self._deliver_started(flow, len(self.flows), now)
        return self._changes(now)

    def flow_ended(self, flow: model.FlowKey, now: float) -> list[model.RuleChange]:
        """A flow has ended. An unknown flow changes nothing."""
        if flow not in self.flows:
            return []
        self._ensure_law(now)
        info = self.flows.pop(flow)
        self._announcements.pop(flow, None)
        return self._event(lambda law: law.flow_ended(info, len(self.flows), now), now)

    def announced(
        self, flow: model.FlowKey, announcement: model.Announcement | None, now: float
    ) -> list[model.RuleChange]:
        """A flow's size and deadline were announced, or withdrawn (None). An unknown flow, or the same
        announcement again, changes nothing.
        """
        if flow not in self.flows or self._announcements.get(flow) == announcement:
            return []
        self._ensure_law(now)
        if announcement is None:
            del self._announcements[flow]
        else:
            self._announcements[flow] = announcement
        self._deliver_announced(flow, announcement, now)
        return self._changes(now)

    def congestion(self, state: model.Congestion, backlog: int, now: float) -> list[model.RuleChange]:
        """The switch reports that the queue has crossed a threshold."""
        self._ensure_law(now)
        self._congestion = (state, backlog)
        return self._event(lambda law: law.congestion(state, backlog, now), now)

    def progressed(
        self, flows: Mapping[model.FlowKey, model.FlowProgress], now: float
    ) -> list[model.RuleChange]:
        """The switch has reported the progress of flows."""
        self._ensure_law(now)
        return self._event(lambda law: law.progressed(flows, now), now)

    def sampled(self, sample: model.QueueSample, now: float) -> list[model.RuleChange]:
        """The queue was read. The law gets a sample at most once in its policy's interval; the ``peak`` and
        ``mean`` of that sample cover those between.
        """
        self.last = sample
        if self._refused_with not in (None, (sample.limit, sample.rate)):
            self._forget_refusal()  # on another queue, the switch may run the law
        had_law = self.law is not None
        self._ensure_law(now)
        if not had_law and self.law is not None:
            return self._changes(now)  # the replay had this sample
        due = self._sampling.due(sample, self.interval, now)
        if due is None:
            return self._changes(now)
        return self._event(lambda law: law.queue_sampled(due, len(self.flows), now), now)

    def govern(self, policy: Policy, now: float) -> list[model.RuleChange]:
        """Another policy governs the port from now on: no rule of the former one stays."""
        self.policy, self._rests_until = policy, 0.0
        self._refusal = self._refused_with = None
        return self._restart(now)

    def _restart(self, now: float) -> list[model.RuleChange]:
        self.law, self.plan = None, model.NO_WINDOWS
        self._ensure_law(now)
        return self._changes(now)

    # Laws that run in the switch

    @property
    def in_switch(self) -> bool:
        """Whether the law runs in the switch, or is requested there."""
        return isinstance(self.law, SwitchPort)

    @property
    def missing(self) -> str | None:
        """Why the switch does not run the law of the policy, if the port has a queue of known size; None: it
        does, or there is none.
        """
        return self._refusal if self.last is not None and self.last.limit > 0 else None

    def law_refused(self, reason: str, now: float) -> list[model.RuleChange]:
        """The switch does not run the port's law: no windows. Nothing changes if it has none already."""
        if not self.in_switch:
            return []
        self._refusal = reason
        self._refused_with = None if self.last is None else (self.last.limit, self.last.rate)
        return self._restart(now)

    def law_lost(self) -> None:
        """The switch does not have the law any more: it is requested again with the next event."""
        if self.in_switch:
            self.installed.port_rule_lost()

    def law_reported(self, limiting: bool, now: float) -> list[model.RuleChange]:
        """The switch has reported whether its law limits every flow, because of an incast or congestion."""
        if isinstance(self.law, LayeredPort):
            return self._event(lambda law: law.limited(limiting, now), now)
        if isinstance(self.law, SwitchPort):
            self.law.limiting = limiting
        return []

    def _forget_refusal(self) -> None:
        if self._refusal is not None:
            self._refusal = self._refused_with = None
            self.law, self.plan = None, model.NO_WINDOWS

    @property
    def interval(self) -> float:
        """Time between two readings of the port's queue, seconds."""
        return LOOK_INTERVAL if self.decided_in_switch else self.policy.interval

    @property
    def decided_in_switch(self) -> bool:
        """Whether no window of the port waits for the controller."""
        return isinstance(self.law, SwitchPort) and self.law.decides_alone(len(self.flows))

    def switch_gone(self) -> int:
        """The switch's agent has gone, with its rules. Returns how many were installed."""
        count = len(self.installed)
        self.installed.clear()
        self._congestion = None
        self._forget_refusal()  # another agent may run the law
        return count

    # What the law asks of the switch, and what it shows

    def wants_progress(self) -> bool:
        """Whether :meth:`progressed` should be called with the port's samples."""
        return bool(self._query(lambda law: law.wants_progress()))

    def thresholds(self) -> model.Thresholds | None:
        """The thresholds that the switch should have now. None: it has none and was never given any."""
        wanted = self._query(lambda law: law.thresholds())
        self._watched = isinstance(wanted, model.Thresholds) and wanted.cng > 0
        if not self._watched:
            # Without thresholds the switch does not update this state: a fresh law must not get it.
            self._congestion = None
        if isinstance(wanted, model.Thresholds):
            self._thresholds_set = True
            return wanted
        return NO_THRESHOLDS if self._thresholds_set else None

    def busy(self) -> bool:
        """Whether the port has flows or windows."""
        return bool(self.flows or self.installed)

    def incast(self) -> bool | None:
        """Whether the law shows an incast; None: it does not detect any. Asked after each sample."""
        return self.law.incast if isinstance(self.law, SwitchPort) else self.shown().incast

    def shown(self) -> Display:
        """What the law shows. If its ``display()`` fails, the law stays in force: only displays need it."""
        if self.law is None:
            return NOTHING_SHOWN
        try:
            shown = self.law.display()
            _check(shown)
        except Exception:
            log.debug("policy %s cannot be displayed", self.policy.name, exc_info=True)
            return NOTHING_SHOWN
        return shown

    def display(self) -> Display:
        """The same in whole bytes, and whether the queue is congested, if the switch watches it."""
        shown, state = self.shown(), None
        if self._watched:
            state = model.Congestion.NOM if self._congestion is None else self._congestion[0]
        where, missing = None, self.missing
        if self.law is not None and self.last is not None and self.last.limit > 0 and missing is None:
            where = "switch" if self.in_switch else "controller"
        target = None if shown.target is None else int(shown.target)
        return shown._replace(target=target, state=state, where=where, missing=missing)

    def view(self) -> PortView:
        """The port for displays."""
        mode = self.installed.mode
        plan = model.NO_WINDOWS if mode is model.PortMode.DISABLED else self.plan
        return PortView(len(self.flows), plan, self.last, self.display(), mode)

    # The law

    def _ensure_law(self, now: float) -> None:
        """Make a fresh law if there is none and the port does not rest, and replay the port's state to it."""
        self._last_event = now
        if self.law is not None or now < self._rests_until:
            return
        try:
            self.law = self._fresh_law()
        except Exception:
            self._fail(now)
            return
        sample, known = self.last, self._congestion
        if sample is not None:
            self._sampling.restart(now)
            self._deliver(lambda law: law.queue_sampled(sample, len(self.flows), now), now)
        for count, flow in enumerate(self.flows.values(), 1):
            self._deliver_started(flow, count, now)
        for key, each in self._announcements.items():
            self._deliver_announced(key, each, now)
        if known is not None:
            self._deliver(lambda law: law.congestion(*known, now), now)
        self._deliver(lambda law: law.settled(now), now)

    def _fresh_law(self) -> PortLaw:
        spec, own = switch_law(self.policy, self.key), port_law(self.policy, self.key)
        if spec is None:
            return PortLaw() if own is None else own
        wrong = spec.wrong()
        if wrong is not None and self._refusal is None:
            log.warning("no windows on port %s: %s", self.key, wrong)
            self._refusal = wrong
        if self._refusal is not None:
            return PortLaw()
        return SwitchPort(spec, self.key) if own is None else LayeredPort(spec, self.key, own)

    def _deliver_started(self, flow: model.FlowInfo, count: int, now: float) -> None:
        self._deliver(lambda law: law.flow_started(flow, count, now), now)

    def _deliver_announced(
        self, flow: model.FlowKey, announcement: model.Announcement | None, now: float
    ) -> None:
        self._deliver(lambda law: law.announced(flow, announcement, now), now)

    def _event(
        self, call: Callable[[PortLaw], model.WindowPlan | None], now: float
    ) -> list[model.RuleChange]:
        self._deliver(call, now)
        return self._changes(now)

    def _deliver(self, call: Callable[[PortLaw], model.WindowPlan | None], now: float) -> None:
        """Deliver an event to the law, if there is one, and adopt its plan."""
        if self.law is None:
            return
        try:
            plan = call(self.law)
            if plan is not None and plan is not self.plan:
                if not isinstance(plan, model.WindowPlan) or not all(
                    isinstance(f, model.FlowKey) for f in plan.flows
                ):
                    raise TypeError(f"a port law answers with a WindowPlan or None, not {plan!r}")
                self.plan = plan
        except Exception:
            self._fail(now)

    def _query(self, call: Callable[[PortLaw], T]) -> T | None:
        """Query the law. None if there is no law, or it fails."""
        if self.law is None:
            return None
        try:
            return call(self.law)
        except Exception:
            self._fail(self._last_event)
            return None

    def _fail(self, now: float) -> None:
        log.exception(
            "policy %s failed on port %s: its windows are taken down for %.0f s",
            self.policy.name,
            self.key,
            REST_AFTER_FAILURE,
        )
        self.failures += 1
        self.law, self.plan = None, model.NO_WINDOWS
        self._rests_until = now + REST_AFTER_FAILURE

    def _changes(self, now: float) -> list[model.RuleChange]:
        return self.installed.changes(self.plan, self.flows, now)


def _check(shown: Display) -> None:
    """Raise TypeError or ValueError for anything but a sound :class:`Display`."""
    if not isinstance(shown, Display):
        raise TypeError(f"display() returns a Display, not {shown!r}")
    if shown.target is not None and not math.isfinite(shown.target):
        raise ValueError(f"a target is a number of bytes or None, not {shown.target!r}")
    if shown.incast is not None and not isinstance(shown.incast, bool):
        raise TypeError(f"incast is True, False or None, not {shown.incast!r}")
    if shown.gif is not None and not isinstance(shown.gif, GifTable):
        raise TypeError(f"gif is a GifTable or None, not {shown.gif!r}")

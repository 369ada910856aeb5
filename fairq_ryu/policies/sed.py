"""SED: in congestion, flows with deadlines get the windows that they need to be in time; the rest is shared.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science
and Technology 21(5), 2016), section 3. The switch says when the queue is congested; only then are
there windows. Together they are ``Twin = K + C * RTT``, so that the queue stands at K.

What is ours (docs/policies/sed.md has the reasons, and the setting that restores the paper's law):
a need is worked out with the round-trip time that holds while the queue stands, ``Twin / C``; flows
are planned to end before their deadline; one that sends is not paused for a small shortfall; volleys
are anticipated; windows stay until the queue has been short for a while; flows that send nothing take
no share; windows that hardly change are not said again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from fairq_ryu.model import (
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowInfo,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies.base import Display, Parameters, PortLaw
from fairq_ryu.policies.parts.allocation import Demand, Rules, Share, allocate, base_window
from fairq_ryu.policies.parts.deadline_table import GifEntry, GifTable
from fairq_ryu.policies.parts.half_open import ASK_AGAIN, HalfOpenLimiter
from fairq_ryu.policies.parts.rtt import MeanRtt
from fairq_ryu.policies.parts.typical_segment import TypicalSegment
from fairq_ryu.policies.sed_settings import SedParameters, deadline_settings
from fairq_ryu.setting import Setting

# A window that has changed by less than this part, or by less than a step, is not said again.
_WORTH_SAYING = 0.05
# Congestion that the switch's own samples do not confirm for so many intervals is over, whatever was lost.
_CALM_INTERVALS = 1.5
# In so many intervals the switch has told of a new flow, if it tells of any.
_GRACE_INTERVALS = 2
# Of a flow that sends, the switch has told in so many intervals, if it tells of any.
_PATIENT_INTERVALS = 10
# A flow that has missed its target is to end within this part of what is left to the deadline, or sooner.
_HURRY = 8


class SedPort(PortLaw):
    """SED on one port. ``governing``: windows stand, because the queue is congested or is about to be."""

    def __init__(self, parameters: SedParameters, drops: bool = False) -> None:
        """``drops``: the switch is to hand over what the queue drops."""
        self.parameters = parameters
        self.drops = drops
        self.gif = GifTable()
        self.half_open = HalfOpenLimiter(parameters.syn_allowance)
        self.segments = TypicalSegment()
        self.rtt = MeanRtt(parameters.base_rtt)
        self.limit = 0
        self.rate = 0
        self.queue = 0
        self.peak = 0
        self.governing = False
        self.windows: dict[FlowKey, int] = {}
        self._uncounted: set[FlowKey] = set()
        # Flows whose round-trip time has not been told yet, and the queue's wait when they began, seconds.
        self._untimed: dict[FlowKey, float] = {}
        # Of the first windows of new flows, so much is still to come or to be sent on, bytes.
        self._coming = self._coming_at = 0.0
        # Windows stand because of that, and not of the queue.
        self._anticipated = False
        self._calm_since: float | None = None
        self._computed_at = -math.inf
        self._progressed_at = -math.inf
        self._sampled_at = 0.0
        self._stale = False

    # What happens

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """In congestion it is under the port's base window until the windows are worked out anew. Otherwise
        it may be the one whose first window, with those of the others that have just begun, is too much.
        """
        self.segments.started(flow)
        self.gif.add(flow, now)
        self._untimed[flow.key] = self.queue / self.rate if self.rate else 0.0
        if not self.half_open.started(flow, now):
            self._uncounted.add(flow.key)
        elif not self.governing and self.parameters.anticipate and self._will_be_congested(now):
            plan = self._govern(now)
            self._anticipated = True
            return plan
        return self._changed(now)

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Others may have what it had."""
        self.segments.ended(flow)
        self.gif.remove(flow.key)
        self.half_open.remove(flow.key)
        self._uncounted.discard(flow.key)
        self._untimed.pop(flow.key, None)
        return self._changed(now)

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        """An application has said what a flow will need."""
        self.gif.announce(flow, announcement, now)
        return self._changed(now)

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        """The paper's congestion trigger and recovery messages."""
        self.queue = backlog
        if state is Congestion.NOM:
            if not self.parameters.linger:
                return self._release()
            # Windows make queues short: without them it would be long again at once, and overflow.
            if self.governing and self._calm_since is None:
                self._calm_since, self.peak = now, backlog
            return None
        return None if self.limit <= 0 else self._govern(now)

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """The queue itself tells whether a message was lost, or an anticipated volley did not come."""
        self.limit, self.rate, self._sampled_at = sample.limit, sample.rate, now
        self.queue, self.peak = sample.backlog, max(sample.peak, sample.backlog)
        self.half_open.forget(now)
        thresholds = self.thresholds()
        if thresholds is None:
            return self._release()
        if not self.governing:
            return self._govern(now) if self.queue >= thresholds.cng else None
        if self.peak > thresholds.nom:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        elif now - self._calm_since >= max(
            self.parameters.settle, self.parameters.linger, _CALM_INTERVALS * self.parameters.interval
        ):
            return self._release()
        # Progress comes with each sample, and the windows are worked out with it; if it does come.
        due = 1.5 * self.parameters.interval
        return self._compute(now) if now - self._computed_at >= due else self._changed(now, stale=False)

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """The paper's RSize, and the round-trip times of new flows."""
        self._progressed_at = now
        for key, progress in flows.items():
            self.gif.progressed(key, progress, now)
            if progress.rtt > 0 and key in self._untimed:
                self.rtt.sample(progress.rtt, self._untimed.pop(key))
        self.half_open.progressed(flows, now)
        if self.governing and now - self._computed_at >= 0.5 * self.parameters.interval:
            return self._compute(now)
        return self._changed(now, stale=False)

    def settled(self, now: float) -> WindowPlan | None:
        """Flows that were there before the law are no volley: only the queue says whether it is congested."""
        self.half_open.settled()
        self._uncounted.clear()
        self._coming = 0.0
        return self._release() if self._anticipated else None

    # What the switch is asked

    def wants_progress(self) -> bool:
        """In congestion; and before it, so that it finds the remaining sizes known."""
        if self.governing or any(e.deadline is not None for e in self.gif):
            return True
        return len(self.half_open) > 0 and self._sampled_at - self._progressed_at >= ASK_AGAIN

    def thresholds(self) -> Thresholds | None:
        """K, and where the queue ceases to be congested."""
        if self.limit <= 0:
            return None
        cng = max(1, round(self.parameters.threshold * self.limit))
        return Thresholds(cng, min(cng - 1, round(self.parameters.nom * cng)), self.drops)

    def display(self) -> Display:
        """K as the target, and the GIF table."""
        target = self.parameters.threshold * self.limit if self.limit > 0 else None
        return Display(target=target, gif=self.gif)

    # The mode

    def _will_be_congested(self, now: float) -> bool:
        """Will the first windows of the flows that have begun lately make the queue congested?

        They come in volleys, and the port sends on meanwhile; of a port whose rate is not known they are
        thought to be through within T.
        """
        drain = self.rate or self._coming / self.parameters.interval
        self._coming = max(0.0, self._coming - drain * (now - self._coming_at))
        segment, _ = self.segments.typical()
        self._coming += self.parameters.initial_window * segment
        self._coming_at = now
        thresholds = self.thresholds()
        return thresholds is not None and thresholds.cng < self.queue + self._coming

    def _govern(self, now: float) -> WindowPlan | None:
        self._calm_since = None
        self._coming = 0.0
        self._anticipated = False
        if self.governing:
            return self._changed(now)
        self.governing = True
        self.windows = {}
        return self._compute(now)

    def _release(self) -> WindowPlan | None:
        if not self.governing:
            return None
        self.governing = self._stale = self._anticipated = False
        self.windows = {}
        self._computed_at = -math.inf
        return NO_WINDOWS

    # Windows

    def _changed(self, now: float, stale: bool = True) -> WindowPlan | None:
        """Something is different (``stale``): work the windows out anew, at once or when things settle."""
        if not self.governing:
            return None
        self._stale = self._stale or stale
        return (
            self._compute(now) if self._stale and now - self._computed_at >= self.parameters.settle else None
        )

    @property
    def total(self) -> float:
        """The paper's Twin = K + C * RTT_avg, bytes."""
        return self.parameters.threshold * self.limit + self.rate * self.rtt.value

    def _counts(self, entry: GifEntry, now: float) -> bool:
        """Is it a flow, and not only a SYN? A new one is, if who opened it has not opened too many; later the
        switch must have said so, if it says anything.
        """
        if entry.answered:
            return True
        if entry.flow.key in self._uncounted:
            return False
        grace = _GRACE_INTERVALS * self.parameters.interval
        return now - entry.start < grace or self._progressed_at < entry.start + grace

    def _shares(self, entry: GifEntry, now: float) -> bool:
        """Does a flow without deadline take its share?"""
        idle_after = self.parameters.idle_after
        if not idle_after:
            return True
        if entry.progress is None or not entry.progress.sent:
            # It may be the quiet side of a connection. The base window stands for it, until the switch tells
            # of data; if it does tell of anything.
            patience = _PATIENT_INTERVALS * self.parameters.interval
            silent = now - max(entry.start, self._progressed_at) >= patience
            return silent and self._counts(entry, now)
        return now - entry.moved < idle_after

    def _need(self, entry: GifEntry, now: float) -> float:
        """The window with which a flow is in time, bytes: the paper's s / d * RTT.

        While the queue stands, a flow's rate is its part of all windows times C, so RTT is Twin / C. More
        than what is left to send is never needed.
        """
        assert entry.deadline is not None and entry.remaining is not None
        left = entry.deadline - now
        target = entry.known + self.parameters.margin * (entry.deadline - entry.known)
        # A flow that is late for its target still has a little until the deadline, and must hurry.
        hurry = min(left / _HURRY, _GRACE_INTERVALS * self.parameters.interval)
        time = max(target - now, hurry)
        rtt = self.total / self.rate if self.rate else self.rtt.value
        return min(entry.remaining / time * rtt, entry.remaining)

    def _compute(self, now: float) -> WindowPlan:
        """The paper's Algorithm 2."""
        self._computed_at, self._stale = now, False
        demands, shares = [], []
        fresh: dict[FlowKey, int] = {}
        for entry in self.gif.ordered(now):
            flow = entry.flow
            if entry.urgent(now):
                if self._counts(entry, now):
                    # Before the first windows of this congestion, all were sending.
                    sending = self.windows.get(flow.key, 0) > 0 or not self.windows
                    most = math.inf if entry.remaining is None else entry.remaining
                    need = self._need(entry, now)
                    demands.append(Demand(flow.key, need, flow.mss, flow.step, sending, most))
            elif entry.missed(now) and self.parameters.missed == "pause":
                fresh[flow.key] = 0
            elif self._shares(entry, now):
                shares.append(Share(flow.key, flow.mss, flow.step))
        p = self.parameters
        rules = Rules(p.base_segments, p.partial, p.keep, p.floors, p.spare)
        fresh |= allocate(self.total, demands, shares, rules)
        self.windows = {
            key: self._steady(self.windows.get(key), window, self._step(key)) for key, window in fresh.items()
        }
        return self._plan({demand.flow for demand in demands})

    def _step(self, key: FlowKey) -> int:
        entry = self.gif.get(key)
        return 1 if entry is None else entry.flow.step

    @staticmethod
    def _steady(before: int | None, window: int, step: int) -> int:
        """A window that has hardly changed stays what it was: it would have to be said."""
        if before and window and abs(window - before) < max(step, _WORTH_SAYING * before):
            return before
        return window

    def _plan(self, deadlines: set[FlowKey]) -> WindowPlan:
        """Flows that have the base window need no rule of their own: it stands for the port."""
        mss, _ = self.segments.typical()
        base = mss * self.parameters.base_segments

        def said_by_port(key: FlowKey, window: int) -> bool:
            return key not in deadlines and window == base_window(base, self._step(key), 1)

        flows = {key: window for key, window in self.windows.items() if not said_by_port(key, window)}
        return WindowPlan(window=base, flows=flows)


class Sed:
    """The SED policy."""

    name: ClassVar[str] = "sed"
    settings: ClassVar[tuple[Setting, ...]] = deadline_settings("sed")

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[sed]``."""
        self.parameters = SedParameters.of(parameters)

    @property
    def interval(self) -> float:
        """T, seconds."""
        return self.parameters.interval

    def port_law(self, port: PortKey) -> SedPort:
        """The law for one port."""
        return SedPort(self.parameters)

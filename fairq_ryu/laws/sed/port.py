"""SED in the controller: in congestion, flows with deadlines get what they need; the others share the rest.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science and
Technology 21(5), 2016), section 3. The switch sets the base window of every flow in congestion
(``law.h``); what it cannot know is here: sizes, deadlines, and which flows are paused.
The sum of all windows is ``Twin = K + C * RTT``, so that the queue stays at K.

Theory of operation. A port is in one of two modes:

    released -> governing   a congestion message (CNG), a sample at K or above, a volley of new flows whose
                            first windows would make the queue congested, or the switch's report that it
                            limits flows
    governing -> released   NOM, or samples below the lower threshold, for ``LINGER`` seconds, while the
                            switch limits no flows

In released mode there are no windows. In governing mode the windows are computed anew
(:meth:`SedPort._compute`, the paper's Algorithm 2) every ``INTERVAL`` with the flows' progress, and when
flows have started or ended, at most every ``_SETTLE`` seconds.

Differences to the paper (docs/policies/sed.md has the reasons): a need is computed with the round-trip time
of the filled queue, ``Twin / C``; flows are planned to end before their deadline; a sending flow is not
paused for a small shortfall; volleys are anticipated; windows stay until the queue has been short for a
while; flows that send nothing get no share; windows that hardly change are not sent again. SED as published
is :mod:`fairq_ryu.laws.sed_paper`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairq_ryu.law_spec import SYN_ALLOWANCE
from fairq_ryu.laws.sed.allocation import BestEffortFlow, DeadlineFlow, allocate, base_window
from fairq_ryu.laws.sed.half_open import ASK_AGAIN, HalfOpenLimiter
from fairq_ryu.laws.sed.rtt import MeanRtt
from fairq_ryu.laws.sed.settings import INTERVAL, LINGER, NOM, SedParameters
from fairq_ryu.laws.sed.typical_segment import TypicalSegment
from fairq_ryu.model import (
    NO_WINDOWS,
    Announcement,
    Congestion,
    FlowInfo,
    FlowKey,
    FlowProgress,
    QueueSample,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies.base import Display, PortLaw
from fairq_ryu.policies.parts.deadline_table import GifEntry, GifTable

# Flows that start or end within this time, seconds, are handled in one computation.
_SETTLE = 0.004
# A flow that has sent nothing for this long, seconds, gets no share.
_IDLE_AFTER = 0.2
# A port whose flows have sent within this time, seconds, is in use. Without packets a law in the switch does
# not run, and what it reports is old.
_RECENT = 0.2
# A window that changes by less than this fraction, or by less than a step, is not sent again.
_MIN_CHANGE = 0.05
# Intervals within which the switch reports a new flow, if it reports flows at all.
_GRACE_INTERVALS = 2
# Intervals within which the switch reports a flow that sends, if it reports flows at all.
_PATIENT_INTERVALS = 10
# A flow that has missed its target should end within 1/8 of the time to its deadline.
_HURRY = 8


class SedPort(PortLaw):
    """The windows of single flows of one port, above the base windows of the switch. ``governing``: they are
    installed, because the queue is or will be congested.
    """

    def __init__(self, parameters: SedParameters, drops: bool = False) -> None:
        """``drops``: the switch sends the segments that the queue drops to the controller."""
        self.parameters = parameters
        self.drops = drops
        self.gif = GifTable()
        self.half_open = HalfOpenLimiter(SYN_ALLOWANCE)
        self.segments = TypicalSegment()
        self.rtt = MeanRtt(parameters.base_rtt)
        self.limit = 0
        self.rate = 0
        self.queue = 0
        self.peak = 0
        self.governing = False
        self.windows: dict[FlowKey, int] = {}
        self._uncounted: set[FlowKey] = set()
        # Flows whose round-trip time is not known yet, and the queueing delay when they started, seconds.
        self._untimed: dict[FlowKey, float] = {}
        # Bytes of the first windows of new flows that the port has not sent yet, and when that was computed.
        self._expected = self._expected_at = 0.0
        # Windows are installed because of these bytes, and not because of the queue.
        self._anticipated = False
        self._calm_since: float | None = None
        self._computed_at = -math.inf
        self._progressed_at = -math.inf
        self._sampled_at = 0.0
        self._stale = False
        # Whether the switch has reported that base windows are in force, and the flows that it counts.
        self._limiting = False
        self._active = 0

    # Events

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """In governing mode, the base window of the port applies to it until the next computation. In
        released mode, the first windows of the flows that have just started may be too much for the queue.
        """
        self.segments.started(flow)
        self.gif.add(flow, now)
        self._untimed[flow.key] = self.queue / self.rate if self.rate else 0.0
        if not self.half_open.started(flow, now):
            self._uncounted.add(flow.key)
        elif not self.governing and self._will_be_congested(now):
            plan = self._govern(now)
            self._anticipated = True
            return plan
        return self._changed(now)

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Its window becomes free for others."""
        self.segments.ended(flow)
        self.gif.remove(flow.key)
        self.half_open.remove(flow.key)
        self._uncounted.discard(flow.key)
        self._untimed.pop(flow.key, None)
        return self._changed(now)

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        """A flow's size and deadline are known."""
        self.gif.announce(flow, announcement, now)
        return self._changed(now)

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        """The paper's congestion trigger (CNG) and recovery (NOM) messages."""
        self.queue = backlog
        if state is Congestion.NOM:
            # The windows keep the queue short: without them it would fill again at once, and overflow.
            if self.governing and self._calm_since is None:
                self._calm_since, self.peak = now, backlog
            return None
        return None if self.limit <= 0 else self._govern(now)

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """The sample shows whether a message was lost, or an anticipated volley did not come."""
        self.limit, self.rate, self._sampled_at = sample.limit, sample.rate, now
        self._active = sample.active
        self.queue, self.peak = sample.backlog, max(sample.peak, sample.backlog)
        self.half_open.forget(now)
        thresholds = self.thresholds()
        if thresholds is None:
            return self._release()
        if not self.governing:
            return self._govern(now) if self.queue >= thresholds.cng else None
        if self._is_over(thresholds, now):
            return self._release()
        # Normally progress comes with each sample, and the windows are computed then.
        due = 1.5 * INTERVAL
        return self._compute(now) if now - self._computed_at >= due else self._changed(now, stale=False)

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """The paper's RSize, and the round-trip times of new flows."""
        self._progressed_at = now
        for key, progress in flows.items():
            self.gif.progressed(key, progress, now)
            if progress.rtt > 0 and key in self._untimed:
                self.rtt.sample(progress.rtt, self._untimed.pop(key))
        self.half_open.progressed(flows, now)
        if self.governing and now - self._computed_at >= 0.5 * INTERVAL:
            return self._compute(now)
        return self._changed(now, stale=False)

    def limited(self, limiting: bool, now: float) -> WindowPlan | None:
        """The base windows are in force, or not: while they are, flows need their shares of the total."""
        self._limiting = limiting
        if self.governing or self.limit <= 0 or not self._base_windows_hold(now):
            return None
        return self._govern(now)

    def settled(self, now: float) -> WindowPlan | None:
        """Replayed flows do not count as a volley: only the queue shows congestion."""
        self.half_open.settled()
        self._uncounted.clear()
        self._expected = 0.0
        return self._release() if self._anticipated else None

    # Requests to the switch, and the display

    def wants_progress(self) -> bool:
        """In congestion, and before it for flows with deadlines: their remaining sizes are needed then."""
        if self.governing or any(e.deadline is not None for e in self.gif):
            return True
        return len(self.half_open) > 0 and self._sampled_at - self._progressed_at >= ASK_AGAIN

    def thresholds(self) -> Thresholds | None:
        """K, and the queue length at which congestion ends."""
        if self.limit <= 0:
            return None
        cng = max(1, round(self.parameters.threshold * self.limit))
        return Thresholds(cng, min(cng - 1, round(NOM * cng)), self.drops)

    def display(self) -> Display:
        """K as the target, and the GIF table."""
        target = self.parameters.threshold * self.limit if self.limit > 0 else None
        return Display(target=target, gif=self.gif)

    # The mode

    def _base_windows_hold(self, now: float) -> bool:
        if not self._limiting:
            return False
        return self._active > 0 or any(now - entry.progressed_at < _RECENT for entry in self.gif)

    def _is_over(self, thresholds: Thresholds, now: float) -> bool:
        """Whether the queue has been short for long enough, by the last samples. Not while the switch limits
        flows: each of them would be left with its base window.
        """
        if self.peak > thresholds.nom:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        else:
            return now - self._calm_since >= LINGER and not self._base_windows_hold(now)
        return False

    def _will_be_congested(self, now: float) -> bool:
        """Whether the first windows of the flows that have just started will make the queue congested.

        Flows start in volleys, and the port keeps sending meanwhile; if its rate is not known, it is assumed
        to send them within T.
        """
        drain = self.rate or self._expected / INTERVAL
        self._expected = max(0.0, self._expected - drain * (now - self._expected_at))
        self._expected += self.parameters.initcwnd * self.segments.typical()
        self._expected_at = now
        thresholds = self.thresholds()
        return thresholds is not None and thresholds.cng < self.queue + self._expected

    def _govern(self, now: float) -> WindowPlan | None:
        self._calm_since = None
        self._expected = 0.0
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
        """Something has changed (``stale``): compute the windows at once, or after `_SETTLE` seconds."""
        if not self.governing:
            return None
        self._stale = self._stale or stale
        return self._compute(now) if self._stale and now - self._computed_at >= _SETTLE else None

    @property
    def total(self) -> float:
        """The paper's Twin = K + C * RTT_avg, bytes."""
        return self.parameters.threshold * self.limit + self.rate * self.rtt.value

    def _is_counted(self, entry: GifEntry, now: float) -> bool:
        """Whether the entry counts as a flow, and not only as a SYN. A new one counts within its opener's
        allowance; later it counts if the switch has reported it as established, or reports no flows at all.
        """
        if entry.answered:
            return True
        if entry.flow.key in self._uncounted:
            return False
        grace = _GRACE_INTERVALS * INTERVAL
        return now - entry.start < grace or self._progressed_at < entry.start + grace

    def _takes_share(self, entry: GifEntry, now: float) -> bool:
        """Whether a flow without a deadline gets a share."""
        if entry.progress is None or not entry.progress.sent:
            # It may be the direction of a connection without data. The port's base window applies to it until
            # the switch reports data, if the switch reports flows at all.
            patience = _PATIENT_INTERVALS * INTERVAL
            silent = now - max(entry.start, self._progressed_at) >= patience
            return silent and self._is_counted(entry, now)
        return now - entry.progressed_at < _IDLE_AFTER

    def _need(self, entry: GifEntry, now: float) -> float:
        """The window with which a flow meets its deadline, bytes: the paper's s / d * RTT.

        With a filled queue, the rate of a flow is its part of all windows times C, so RTT is Twin / C. The
        window is never larger than the remaining bytes.
        """
        assert entry.deadline is not None and entry.remaining is not None
        left = entry.deadline - now
        target = entry.announced_at + self.parameters.margin * (entry.deadline - entry.announced_at)
        # A flow that has missed its target has little time until the deadline.
        hurry = min(left / _HURRY, _GRACE_INTERVALS * INTERVAL)
        time = max(target - now, hurry)
        rtt = self.total / self.rate if self.rate else self.rtt.value
        return min(entry.remaining / time * rtt, entry.remaining)

    def _compute(self, now: float) -> WindowPlan:
        """The paper's Algorithm 2."""
        self._computed_at, self._stale = now, False
        deadline_flows, best_effort = [], []
        fresh: dict[FlowKey, int] = {}
        for entry in self.gif.ordered(now):
            flow = entry.flow
            if entry.urgent(now):
                if self._is_counted(entry, now):
                    # Before the first windows of this congestion, all flows were sending.
                    sending = self.windows.get(flow.key, 0) > 0 or not self.windows
                    max_window = math.inf if entry.remaining is None else entry.remaining
                    need = self._need(entry, now)
                    deadline_flows.append(
                        DeadlineFlow(flow.key, need, flow.mss, flow.step, sending, max_window)
                    )
            elif entry.missed(now) and self.parameters.missed == "pause":
                fresh[flow.key] = 0
            elif self._takes_share(entry, now):
                best_effort.append(BestEffortFlow(flow.key, flow.mss, flow.step))
        fresh |= allocate(self.total, deadline_flows, best_effort, self.parameters.base_segments)
        self.windows = {
            key: self._unless_small(self.windows.get(key), window, self._step(key))
            for key, window in fresh.items()
        }
        return self._plan({demand.flow for demand in deadline_flows})

    def _step(self, key: FlowKey) -> int:
        entry = self.gif.get(key)
        return 1 if entry is None else entry.flow.step

    @staticmethod
    def _unless_small(before: int | None, window: int, step: int) -> int:
        """The new window, or the former one if the change is too small to be sent."""
        if before and window and abs(window - before) < max(step, _MIN_CHANGE * before):
            return before
        return window

    def _plan(self, deadlines: set[FlowKey]) -> WindowPlan:
        """Flows that have the base window need no rule of their own: the switch gives it to them."""
        flows = {
            key: window
            for key, window in self.windows.items()
            if key in deadlines or window != self._base_window(key)
        }
        return WindowPlan(flows=flows)

    def _base_window(self, key: FlowKey) -> int | None:
        """The window that the switch gives a flow, which counts in segments of the flow itself, bytes."""
        entry = self.gif.get(key)
        if entry is None:
            return None
        return base_window(entry.flow.mss, entry.flow.step, self.parameters.base_segments)

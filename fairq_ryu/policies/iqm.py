"""IQM: when a volley of new flows is about to overflow the queue, every flow is limited to one segment.

Abdelmoniem and Bensaou, "Incast-Aware Switch-Assisted TCP Congestion Control for Data Centers"
(IEEE GLOBECOM 2015), section III. Each new flow is expected to add its initial window to the queue;
when that is more than the buffer holds, all flows of the port are limited to one segment until the
queue has drained.

Theory of operation. A port is in one of two modes:

    normal -> incast   queue + beta * initial window > buffer, predicted at each flow start and each sample
    incast -> normal   the queue has been below alpha * buffer for ``linger`` seconds

In normal mode there are no windows. In incast mode the window of every flow is one segment.

Differences to the paper: the prediction is made at every flow start as well, and not only at the end of the
interval, so that the first ACK of the volley meets the small window; the mode ends only when the queue has
been short for a while, because the small windows make it short before the volley is over; and half-open
connections count up to a limit for each port that they come from, so that a SYN flood cannot keep the port in
incast mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import LawKind, LawSpec
from fairq_ryu.model import NO_WINDOWS, FlowInfo, FlowKey, FlowProgress, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Display, Parameters, PortLaw
from fairq_ryu.policies.common_settings import initial_window, syn_allowance, typed_parameters, where
from fairq_ryu.policies.parts.half_open import ASK_AGAIN, HalfOpenLimiter
from fairq_ryu.policies.parts.typical_segment import TypicalSegment
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class IqmParameters:
    """``interval`` T_i in s, ``alpha`` a fraction of the buffer, ``initial_window`` x in segments,
    ``syn_allowance`` in flows, ``linger`` in s, ``standing`` a fraction of the buffer.
    """

    interval: float = 0.01
    alpha: float = 0.2
    initial_window: int = 10
    syn_allowance: int = 256
    linger: float = 0.05
    where: str = "switch"
    segments: int = 2
    standing: float = 0.2


class IqmPort(PortLaw):
    """IQM on one port. ``beta`` counts the flows that have started in this interval, less those that have
    ended; ``incast`` is the mode.
    """

    def __init__(self, parameters: IqmParameters) -> None:
        self.parameters = parameters
        self.half_open = HalfOpenLimiter(parameters.syn_allowance)
        self.segments = TypicalSegment()
        self.beta = 0
        self.incast = False
        self.calm_since: float | None = None
        self.sampled_at = 0.0
        self.progress_at = -math.inf
        self.queue = 0
        self.limit = 0

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The paper's SYN. The prediction uses the queue of the last sample."""
        self.segments.started(flow)
        if self.half_open.started(flow, now):
            self.beta += 1
            self._predict()
        return self._plan() if self.incast else None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The paper's FIN."""
        self.segments.ended(flow)
        self.half_open.remove(flow.key)
        self.beta = max(0, self.beta - 1)
        return None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """The end of an interval: change the mode if that is due, and count new flows from 0."""
        self.sampled_at = now
        self.queue, self.limit = sample.backlog, sample.limit
        if self.limit <= 0 or not self.incast:
            self.incast = False
        elif self.queue >= max(1.0, self.parameters.alpha * self.limit):  # an empty queue is always short
            self.calm_since = None
        elif self.calm_since is None:
            self.calm_since = now
        if self.calm_since is not None and now - self.calm_since >= self.parameters.linger:
            self.incast = False
        self._predict()
        self.beta = 0
        self.half_open.forget(now)
        return self._plan()

    def settled(self, now: float) -> WindowPlan | None:
        """Replayed flows do not count as a volley."""
        self.half_open.settled()
        self.beta, self.incast, self.calm_since = 0, False, None
        return self._plan()

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """Established flows are not half-open any more."""
        self.progress_at = now
        self.half_open.progressed(flows, now)
        return None

    def wants_progress(self) -> bool:
        """Every `ASK_AGAIN` seconds while there are half-open flows; in a flood there always are."""
        return len(self.half_open) > 0 and self.sampled_at - self.progress_at >= ASK_AGAIN

    def display(self) -> Display:
        """Whether the port is in incast mode."""
        return Display(incast=self.incast)

    def _predict(self) -> None:
        segment, _ = self.segments.typical()
        expected = self.beta * self.parameters.initial_window * segment + self.queue
        if 0 < self.limit < expected:
            self.incast, self.calm_since = True, None

    def _plan(self) -> WindowPlan:
        return WindowPlan(window=self.segments.typical()[0]) if self.incast else NO_WINDOWS


class Iqm:
    """The IQM policy."""

    name: ClassVar[str] = "iqm"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "iqm",
            "interval",
            0.01,
            "s",
            "T_i: length of the interval in which new flows are counted (in the switch at most 10 ms).",
            0.0005,
            10,
        ),
        Setting(
            "iqm",
            "alpha",
            0.2,
            "",
            "The incast is over when the queue is below this fraction of the buffer.",
            0,
            1,
        ),
        initial_window("iqm"),
        syn_allowance("iqm"),
        Setting(
            "iqm",
            "linger",
            0.05,
            "s",
            "The queue must stay that short for this long (0: it is checked once, at the end of an "
            "interval).",
            0,
            60,
        ),
        where("iqm"),
        Setting(
            "iqm",
            "segments",
            2,
            "segments",
            "Window of a new flow in an incast after its first segment, where the law runs in the switch; "
            "others have one.",
            1,
            10,
        ),
        Setting(
            "iqm",
            "standing",
            0.2,
            "",
            "Queue between incasts as a fraction of the buffer, where the law runs in the switch (1: "
            "no windows between incasts, as in the paper).",
            0.05,
            1,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[iqm]``."""
        self.parameters = typed_parameters(IqmParameters, parameters)
        self.interval = self.parameters.interval

    def switch_law(self, port: PortKey) -> LawSpec | None:
        """The law for one port, where it runs in the switch; None: it does not."""
        p = self.parameters
        if p.where == "controller":
            return None
        return LawSpec(
            LawKind.IQM,
            interval_us=min(10_000, max(50, round(p.interval * 1e6))),
            linger_us=round(p.linger * 1e6),
            target_ppm=round(p.standing * 1e6),
            calm_ppm=round(p.alpha * 1e6),
            first_window=p.initial_window,
            limiting_segments=p.segments,
            syn_allowance=p.syn_allowance,
        )

    def port_law(self, port: PortKey) -> IqmPort:
        """The law for one port, where it runs in the controller."""
        return IqmPort(self.parameters)

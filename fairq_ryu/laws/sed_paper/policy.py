"""sed-paper: SED as published, Equations 1 to 4 and both algorithms, run by the controller."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.sed_paper.algorithm import Algorithm1, State, total_window
from fairq_ryu.model import (
    LARGEST_WINDOW,
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
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.setting import Setting

INTERVAL = 0.01
"""Time between two updates of the GIF table and two readings of the queue, seconds. The text names none."""

BASE_SEGMENTS = 1
"""The base rate of a flow without a deadline, segments in a round trip: "usually set to 1 MSS (lines 6-8)"
(section 3.6). That is also the smallest window that a switch writes."""


@dataclass(frozen=True, slots=True)
class SedPaperParameters:
    """``rtt`` (RTT_avg) in s, ``threshold`` K a part of the buffer."""

    threshold: float
    rtt: float


class SedPaperPort(PortLaw):
    """SED on one port: its events, and Fig. 3. ``loss_messages``: RSED's, of Fig. 7."""

    def __init__(self, parameters: SedPaperParameters, loss_messages: bool = False) -> None:
        self.parameters = parameters
        self.loss_messages = loss_messages
        self.algorithm = Algorithm1(parameters.rtt, BASE_SEGMENTS)
        self.limit = 0

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The SYN or SYN-ACK of Fig. 4. Its announcement, if there is one, follows as :meth:`announced`."""
        self.algorithm.connection_created(flow, now)
        return self._plan()

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The FIN of Fig. 6."""
        self.algorithm.connection_terminated(flow.key, now)
        return self._plan()

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        """Size and deadline of a flow."""
        self.algorithm.announced(flow, announcement, now)
        return self._plan()

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        """The congestion trigger and congestion recovery messages of the switch."""
        return self._enter(State.CNG if state is Congestion.CNG else State.NOM, now)

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """Buffer and rate; and the state, because a message may have been lost."""
        self.limit = sample.limit
        k = self._k()
        self.algorithm.twin = total_window(k, sample.rate, self.parameters.rtt)
        return self._enter(State.CNG if 0 < k <= sample.backlog else State.NOM, now)

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """RSize."""
        for key, progress in flows.items():
            self.algorithm.progressed(key, progress, now)
        return None

    def wants_progress(self) -> bool:
        """While a flow has a deadline."""
        return any(entry.deadline is not None for entry in self.algorithm.gif)

    def thresholds(self) -> Thresholds | None:
        """CNG from K on, NOM below."""
        k = self._k()
        return Thresholds(k, k - 1, self.loss_messages) if k else None

    def display(self) -> Display:
        """K as the target, and the GIF table."""
        return Display(target=self._k() or None, gif=self.algorithm.gif)

    def _k(self) -> int:
        """K in bytes; 0: the buffer is not known."""
        return max(1, round(self.parameters.threshold * self.limit)) if self.limit > 0 else 0

    def _enter(self, state: State, now: float) -> WindowPlan | None:
        if state is self.algorithm.state:
            return None
        if state is State.CNG:
            self.algorithm.congestion_trigger(now)
        else:
            self.algorithm.congestion_recovery()
        return self._plan()

    def _plan(self) -> WindowPlan:
        """The entries of the flow table. A part of a byte is one: only what the law sets to 0 is a pause."""
        windows = {key: min(math.ceil(size), LARGEST_WINDOW) for key, size in self.algorithm.windows.items()}
        return WindowPlan(flows=windows | dict.fromkeys(self.algorithm.dropped, 0))


class SedPaper:
    """SED as published."""

    name: ClassVar[str] = "sed-paper"
    interval: ClassVar[float] = INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "sed-paper",
            "threshold",
            0.3,
            "",
            "K: the queue is congested from this fraction of the buffer on. Lower it where packets are lost "
            "in volleys.",
            0.01,
            1,
        ),
        Setting(
            "sed-paper",
            "rtt",
            0.001,
            "s",
            "RTT_avg: mean round-trip time of the flows, queues empty. Set it to that of the network: the "
            "law does not measure it.",
            0.00001,
            10,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(SedPaperParameters, parameters)

    def port_law(self, port: PortKey) -> SedPaperPort:
        """The law for one port."""
        return SedPaperPort(self.parameters)

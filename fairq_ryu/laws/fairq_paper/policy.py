"""fairq-paper: FairQ as published, Algorithm 1 line by line, run by the controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.fairq_paper.algorithm import Algorithm1
from fairq_ryu.model import LARGEST_WINDOW, NO_WINDOWS, FlowInfo, FlowKey, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Display, Parameters, PortLaw
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class FairQPaperParameters:
    """``interval`` T in s, ``increments`` M, ``alpha`` a fraction of the buffer."""

    interval: float
    increments: int
    alpha: float
    slow_start: bool


class FairQPaperPort(PortLaw):
    """Algorithm 1 on one port. It begins when the buffer of the port is known."""

    def __init__(self, parameters: FairQPaperParameters) -> None:
        self.parameters = parameters
        self.algorithm: Algorithm1 | None = None
        self.flows: dict[FlowKey, FlowInfo] = {}

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Lines 2 to 9."""
        self.flows[flow.key] = flow
        if self.algorithm is None:
            return None
        self.algorithm.syn_ack(flow.mss)
        return self._plan()

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Lines 10 to 15."""
        del self.flows[flow.key]
        if self.algorithm is None:
            return None
        self.algorithm.fin()
        return self._plan()

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """Lines 19 to 31."""
        if sample.limit <= 0:
            self.algorithm = None
            return NO_WINDOWS
        if self.algorithm is None:
            p = self.parameters
            self.algorithm = Algorithm1(p.increments, p.alpha, p.slow_start, sample.limit)
            for flow in self.flows.values():
                self.algorithm.syn_ack(flow.mss)
            return self._plan()
        self.algorithm.q_limit = sample.limit
        return self._plan() if self.algorithm.window_increment_timeout(sample.backlog) else None

    def display(self) -> Display:
        """The target queue length."""
        law = self.algorithm
        return Display(target=None if law is None else law.alpha * law.q_limit)

    def _plan(self) -> WindowPlan:
        """Line 18 as a rule of the port. Without flows nobody needs it. A window of 0 would be a pause, which
        the paper does not have: the switch makes of 1 byte the smallest window that it writes.
        """
        if self.algorithm is None or self.algorithm.q_fcount == 0:
            return NO_WINDOWS
        return WindowPlan(window=min(max(1, int(self.algorithm.receive_window())), LARGEST_WINDOW))


class FairQPaper:
    """FairQ as published."""

    name: ClassVar[str] = "fairq-paper"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "fairq-paper",
            "interval",
            0.001,
            "s",
            "T: time between two increments. Set it to about the round trips of the network.",
            0.0005,
            10,
        ),
        Setting(
            "fairq-paper",
            "increments",
            8,
            "",
            "M: number of increments between two updates. Raise it where the queue swings.",
            1,
            1000,
        ),
        Setting(
            "fairq-paper",
            "alpha",
            0.25,
            "",
            "Target queue as a fraction of the buffer. Set it to compare with FairQ at another target.",
            0.01,
            1,
        ),
        Setting(
            "fairq-paper",
            "slow_start",
            True,
            "",
            "Begin with two segments more at each update, until the queue first reaches the target. Set no "
            "where the first flows overflow the buffer.",
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(FairQPaperParameters, parameters)
        self.interval = self.parameters.interval

    def port_law(self, port: PortKey) -> FairQPaperPort:
        """The law for one port."""
        return FairQPaperPort(self.parameters)

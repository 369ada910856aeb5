"""iqm-paper: IQM as published, Algorithm 1 line by line, run by the controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.iqm_paper.algorithm import Algorithm1
from fairq_ryu.model import NO_WINDOWS, FlowInfo, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Display, Parameters, PortLaw
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class IqmPaperParameters:
    """``interval`` T_i in s, ``alpha`` a fraction of the buffer, ``initial_window`` x in segments."""

    interval: float
    alpha: float
    initial_window: int


class IqmPaperPort(PortLaw):
    """Algorithm 1 on one port."""

    def __init__(self, parameters: IqmPaperParameters) -> None:
        self.algorithm = Algorithm1(parameters.alpha, parameters.initial_window, 0)

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Lines 3 to 7. Nothing is predicted before the timeout."""
        self.algorithm.syn(flow.mss)
        return None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Lines 9 and 10."""
        self.algorithm.fin()
        return None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """Lines 15 to 23. Without a known buffer nothing is predicted, but flows are counted anew."""
        law = self.algorithm
        law.q_limit = sample.limit
        if sample.limit > 0:
            law.incast_detection_timeout(sample.backlog)
        else:
            law.incast_flag, law.beta = False, 0
        window = law.receive_window()
        # Before the first SYN there is no Max_Size. A window of 0 would be a pause: the paper has none.
        return WindowPlan(window=window) if window else NO_WINDOWS

    def settled(self, now: float) -> WindowPlan | None:
        """Flows that were there before are not new."""
        self.algorithm.beta = 0
        return None

    def display(self) -> Display:
        """Whether the incast flag is set."""
        return Display(incast=self.algorithm.incast_flag)


class IqmPaper:
    """IQM as published."""

    name: ClassVar[str] = "iqm-paper"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "iqm-paper",
            "interval",
            0.001,
            "s",
            "T_i: interval in which new flows are counted. Set it to about one round trip with empty queues.",
            0.0005,
            10,
        ),
        Setting(
            "iqm-paper",
            "alpha",
            0.2,
            "",
            "The incast is over when the queue is below this fraction of the buffer. Lower it where one "
            "volley follows another closely: the limit then lasts longer.",
            0.01,
            1,
        ),
        Setting(
            "iqm-paper",
            "initial_window",
            1,
            "segments",
            "x: what a new flow is expected to send before it receives an ACK. Set it to 10 for the initial "
            "window of hosts today.",
            1,
            1000,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(IqmPaperParameters, parameters)
        self.interval = self.parameters.interval

    def port_law(self, port: PortKey) -> IqmPaperPort:
        """The law for one port."""
        return IqmPaperPort(self.parameters)

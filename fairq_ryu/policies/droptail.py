"""DropTail: no windows at all. The baseline: the fabric watches and counts, TCP is left to itself."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.model import FlowInfo, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Parameters

_INTERVAL = 0.25


class DropTailPort:
    """Sets nothing."""

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Nothing."""
        return None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """Nothing."""
        return None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """Nothing."""
        return None


class DropTail:
    """The policy that has none."""

    name: ClassVar[str] = "droptail"

    def __init__(self, parameters: Parameters) -> None:
        self.interval = _INTERVAL

    def port_law(self, port: PortKey) -> DropTailPort:
        """The law for one port."""
        return DropTailPort()

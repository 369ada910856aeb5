"""A port law that runs in the switch: the controller asks for it, renews its lease, and shows its state."""

from __future__ import annotations

from fairq_ryu import far_queue
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import NO_WINDOWS, FlowInfo, PortKey, QueueSample, WindowKind, WindowPlan, WindowRule
from fairq_ryu.policies.base import Display, PortLaw

LOOK_INTERVAL = 0.05
"""The shortest time between two readings of a queue, seconds: they are for displays and leases only."""


class SwitchPort(PortLaw):
    """One law on one port. The number of the law is that of the port: a law governs one port.

    ``limiting``: whether the switch has reported that the law limits its flows because of an incast.
    """

    def __init__(self, spec: LawSpec, port: PortKey) -> None:
        self.spec = spec
        self.limit = 0
        self._far = far_queue.is_far(port.port)
        self.limiting = False
        self.rule = WindowRule(WindowKind.LAW, port.port, spec)
        self._plan = WindowPlan(rule=self.rule)

    def decides_alone(self, flows: int) -> bool:
        """Whether no window of a port with so many flows waits for the controller."""
        return True

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The law is requested as soon as the queue is known."""
        return self._plan if self.limit > 0 else None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """The law stays while the queue has a known size: the switch counts the flows. The switch decides
        whether the law can run on this queue: a size that only the configuration knows is not enough.
        """
        self.limit = sample.limit
        if self.limit > 0:
            return self._plan
        self.limiting = False
        return NO_WINDOWS

    def display(self) -> Display:
        """The queue length that the law aims at, or whether there is an incast."""
        if self.spec.shows_incast:
            return Display(incast=self.incast)
        limit = far_queue.room(self.limit) if self._far else self.limit
        return Display(target=self.spec.target(limit) if limit > 0 else None)

    @property
    def incast(self) -> bool | None:
        """Whether the law limits its flows because of an incast; None: it detects none."""
        return self.limiting if self.spec.shows_incast else None

"""A port law in two layers: the switch's governs the port, the controller's sets windows of single flows.

What must not wait for a controller is in the switch: a window for every flow, at once. What a switch cannot
know, such as deadlines, is in the controller: its windows are rules of their flows, and such a rule overrides
the law of the port, whether it grants more or less.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairq_ryu.law_spec import LawSpec
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
from fairq_ryu.policies.base import Display, PortLaw
from fairq_ryu.policies.switch_port import SwitchPort


class LayeredPort(SwitchPort):
    """The switch's law on one port, and ``above``, the controller's law for its flows. Of the plans of
    ``above`` only ``flows`` is used: the rule of the port is the switch's law.
    """

    def __init__(self, spec: LawSpec, port: PortKey, above: PortLaw) -> None:
        super().__init__(spec, port)
        self.above = above
        self._flows: Mapping[FlowKey, int] = {}

    def decides_alone(self, flows: int) -> bool:
        """Only while there are no flows."""
        return not flows

    # Events: both layers get those that concern the law of the port

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The law of the switch is requested as soon as the queue is known."""
        plan = self.above.flow_started(flow, flows, now)
        return self._with_law(plan) if plan is not None or self.limit > 0 else None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """For the controller's law."""
        return self._changed(self.above.flow_ended(flow, flows, now))

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """The law of the switch stays while the queue has a known size."""
        super().queue_sampled(sample, flows, now)
        return self._with_law(self.above.queue_sampled(sample, flows, now))

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        """For the controller's law: the switch's knows the queue."""
        return self._changed(self.above.congestion(state, backlog, now))

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        """For the controller's law."""
        return self._changed(self.above.announced(flow, announcement, now))

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """For the controller's law."""
        return self._changed(self.above.progressed(flows, now))

    def settled(self, now: float) -> WindowPlan | None:
        """For the controller's law."""
        return self._changed(self.above.settled(now))

    def limited(self, limiting: bool, now: float) -> WindowPlan | None:
        """For the controller's law: the switch has reported what its own does."""
        self.limiting = limiting
        return self._changed(self.above.limited(limiting, now))

    # Requests to the switch, and the display

    def wants_progress(self) -> bool:
        """As the controller's law."""
        return self.above.wants_progress()

    def thresholds(self) -> Thresholds | None:
        """As the controller's law."""
        return self.above.thresholds()

    def display(self) -> Display:
        """As the controller's law."""
        return self.above.display()

    # The plan

    def _changed(self, plan: WindowPlan | None) -> WindowPlan | None:
        return None if plan is None else self._with_law(plan)

    def _with_law(self, plan: WindowPlan | None) -> WindowPlan:
        """The windows of flows by the controller's last plan, above the law of the switch."""
        if plan is not None:
            self._flows = plan.flows
        if self.limit > 0:
            return WindowPlan(rule=self.rule, flows=self._flows)
        return WindowPlan(flows=self._flows) if self._flows else NO_WINDOWS

"""Fixed: one pool of bytes for each port, chosen by hand. The yardstick for policies that adapt."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.model import NO_WINDOWS, FlowInfo, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Parameters, PortLaw


class FixedPort(PortLaw):
    """The same pool on every port that has a queue and flows."""

    def __init__(self, pool: int) -> None:
        self.pool = pool
        self.governed = False

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The pool stands from the first flow on."""
        return WindowPlan(pool=self.pool) if self.governed else None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The last flow takes the pool along."""
        return None if flows else NO_WINDOWS

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """Only ports with a queue of known size are governed."""
        self.governed = sample.limit > 0
        return WindowPlan(pool=self.pool) if self.governed and (flows or sample.active) else NO_WINDOWS


class Fixed:
    """The policy of a fixed pool."""

    name: ClassVar[str] = "fixed"

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[fixed]``."""
        self.pool = int(parameters["pool"])
        self.interval = float(parameters["interval"])
        self.parameters = (self.pool, self.interval)

    def port_law(self, port: PortKey) -> FixedPort:
        """The law for one port."""
        return FixedPort(self.pool)

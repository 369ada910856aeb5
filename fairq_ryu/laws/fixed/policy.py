"""Fixed: one pool of bytes for each port, chosen by hand. The reference for policies that adapt."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.model import NO_WINDOWS, FlowInfo, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Parameters, PortLaw
from fairq_ryu.setting import Setting


class FixedPort(PortLaw):
    """The same pool on every port that has a queue and flows."""

    def __init__(self, pool: int) -> None:
        self.pool = pool
        self.governed = False

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The pool is installed with the first flow."""
        return WindowPlan(pool=self.pool) if self.governed else None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The pool is removed with the last flow."""
        return None if flows else NO_WINDOWS

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """Only ports with a queue of known size are governed."""
        self.governed = sample.limit > 0
        return WindowPlan(pool=self.pool) if self.governed and (flows or sample.active) else NO_WINDOWS


class Fixed:
    """The policy of a fixed pool."""

    name: ClassVar[str] = "fixed"
    interval: ClassVar[float] = 0.1
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "fixed",
            "pool",
            100000,
            "bytes",
            "Number of bytes that the active flows of a port share equally. Set it to rate times round trip "
            "and the queue that you want.",
            1,
            1 << 31,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.pool = int(parameters["pool"])
        self.parameters = self.pool

    def port_law(self, port: PortKey) -> FixedPort:
        """The law for one port."""
        return FixedPort(self.pool)

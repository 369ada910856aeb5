"""CoDel in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu import queue_law_spec
from fairq_ryu.queue_law_spec import DelayTimes, Limits, QueueLawSpec


@dataclass(frozen=True, slots=True)
class CodelLaw(QueueLawSpec):
    """Drops while the queueing delay stays above its target."""

    kind: ClassVar[int] = 4
    name: ClassVar[str] = "codel"
    has_delay: ClassVar[bool] = True

    target_us: int = queue_law_spec.target_us()
    interval_us: int = queue_law_spec.interval_us()
    base_rtt_us: int = queue_law_spec.base_rtt_us()

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """The delay."""
        return Limits.DELAY if state.codel.dropping else Limits.NOTHING

    def delay_times(self, limit: int, rate: int) -> DelayTimes:
        """Worked out of the port where they are 0."""
        return queue_law_spec.delay_times(self, limit, rate)

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The times."""
        times = self.delay_times(limit, rate)
        return {"target_ns": times.target_us * 1000, "interval_ns": times.interval_us * 1000}

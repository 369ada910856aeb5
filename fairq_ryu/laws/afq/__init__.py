"""AFQ in the switch (``law.h``), and the policies that ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu.law_spec import PPM, parameter
from fairq_ryu.queue_law_spec import Limits, SharingLaw


@dataclass(frozen=True, slots=True)
class AfqLaw(SharingLaw):
    """Drops of flows above their fair share, which follows the queue."""

    kind: ClassVar[int] = 1
    name: ClassVar[str] = "afq"

    target_ppm: int = parameter(
        200_000, "I", 10_000, PPM, "Q_t, queue length that the law aims at, millionths of the buffer"
    )

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """The share."""
        return Limits.SHARE if state.fair_q16 and state.flows > 1 else Limits.NOTHING

    def queue_target(self, limit: int, rate: int) -> int:
        """Q_t."""
        return max(1, limit * self.target_ppm // PPM)

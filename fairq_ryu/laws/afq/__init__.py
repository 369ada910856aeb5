"""AFQ in the switch (``law.h``), and the policies that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu import queue_law_spec
from fairq_ryu.law_spec import PPM, parameter
from fairq_ryu.queue_law_spec import SHADOW, Limits, QueueLawSpec


@dataclass(frozen=True, slots=True)
class AfqLaw(QueueLawSpec):
    """Drops of flows above their fair share, which follows the queue."""

    kind: ClassVar[int] = 1
    name: ClassVar[str] = "afq"
    has_share: ClassVar[bool] = True
    keeps_flows: ClassVar[bool] = True

    update_us: int = queue_law_spec.update_us()
    target_ppm: int = parameter(
        200_000, "I", 10_000, PPM, "Q_t, queue length that the law aims at, millionths of the buffer"
    )
    sample_every: int = queue_law_spec.sample_every()
    variant: int = queue_law_spec.variant()

    @property
    def unit(self) -> int:
        """The shadow buffer."""
        return SHADOW

    @property
    def shown_variant(self) -> int:
        """It has one."""
        return self.variant

    def acting_on(self, state: Any, own: Any) -> Limits:
        """The share."""
        return Limits.SHARE if state.fair_q16 and state.flows > 1 else Limits.NOTHING

    def queue_target(self, limit: int, rate: int) -> int:
        """Q_t."""
        return max(1, limit * self.target_ppm // PPM)

    def sampling(self, rate: int) -> int:
        """For the shadow buffer."""
        return queue_law_spec.sampling(self, rate)

    def own(self, limit: int, rate: int) -> Mapping[str, int | Mapping[str, int]]:
        """The fair share's."""
        return {"sharing": queue_law_spec.sharing(self, limit, rate)}

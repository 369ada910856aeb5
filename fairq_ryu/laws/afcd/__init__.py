"""AFCD in the switch (``law.h``), and the policies that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu import queue_law_spec
from fairq_ryu.law_spec import FRAME
from fairq_ryu.queue_law_spec import DelayTimes, Limits, SharingLaw, Variant


@dataclass(frozen=True, slots=True)
class AfcdLaw(SharingLaw):
    """CoDel, whose drops fall on flows above their fair share."""

    kind: ClassVar[int] = 2
    name: ClassVar[str] = "afcd"
    has_delay: ClassVar[bool] = True

    target_us: int = queue_law_spec.target_us()
    interval_us: int = queue_law_spec.interval_us()
    base_rtt_us: int = queue_law_spec.base_rtt_us()

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """The delay; of ours, the share as well."""
        if state.codel.dropping:
            return Limits.DELAY
        shares = self.variant == Variant.OURS and state.fair_q16 and state.flows > 1
        return Limits.SHARE if shares else Limits.NOTHING

    def delay_times(self, limit: int, rate: int) -> DelayTimes:
        """Those of CoDel."""
        return queue_law_spec.delay_times(self, limit, rate)

    def queue_target(self, limit: int, rate: int) -> int:
        """That of the delay."""
        return max(FRAME, self.delay_times(limit, rate).target_us * rate // 1_000_000)

    def own(self, limit: int, rate: int) -> Mapping[str, int | Mapping[str, int]]:
        """The fair share's, and the delay's."""
        times = self.delay_times(limit, rate)
        delay = {"target_ns": times.target_us * 1000, "interval_ns": times.interval_us * 1000}
        return {**SharingLaw.own(self, limit, rate), **delay}

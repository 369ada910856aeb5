"""FairSwitch in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import LawSpec, parameter

_SETTLE_SHIFT = 24
"""As ``FAIRSWITCH_SETTLE_SHIFT`` in ``law.h``."""
_MEAN_INTERVALS = 16
"""By how many intervals the mean of the last 32 samples is late."""


@dataclass(frozen=True, slots=True)
class FairSwitchLaw(LawSpec):
    """The target divided by the number of flows, and a trim that follows the queue in steps, as in the code
    of the card; or a window that follows the queue by Algorithm 1, as in the text of the paper.
    """

    kind: ClassVar[int] = 2
    name: ClassVar[str] = "fairswitch"
    has_pool: ClassVar[bool] = True

    increments: int = parameter(
        0,
        "H",
        0,
        64,
        "M of Algorithm 1, intervals between updates, or more where it would swing; 0: the law of the code",
    )

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The step of the trim: the card moves it by 8 bytes each 8 us at 1 Gbit/s, so in proportion to rate
        and time. Algorithm 1 has more than M intervals between two updates where it would swing: it is an
        integrator with k = S / (M * T * target), answered after tau, and k * tau is at most a half. The
        switch knows S, the segment.
        """
        target, interval = self.target(limit), self.interval_us / 1e6
        tau = self.base_rtt_us / 1e6 + target / max(1, rate) + _MEAN_INTERVALS * interval
        settle = 2 * tau / (interval * target) * (1 << _SETTLE_SHIFT)
        return {
            "trim_step": max(1, round(rate * self.interval_us / 1e6 / 125)),
            "increments": self.increments,
            "settle_q24": min(math.ceil(settle), 0xFFFFFFFF) if self.increments else 0,
        }

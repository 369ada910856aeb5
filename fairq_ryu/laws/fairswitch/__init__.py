"""FairSwitch in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import LawSpec, parameter


@dataclass(frozen=True, slots=True)
class FairSwitchLaw(LawSpec):
    """The target divided by the number of flows, and a trim that follows the queue in steps, as in the code
    of the card; or a window that follows the queue by Algorithm 1, as in the text of the paper.
    """

    kind: ClassVar[int] = 2
    name: ClassVar[str] = "fairswitch"
    has_pool: ClassVar[bool] = True

    increments: int = parameter(
        0, "H", 0, 64, "M of Algorithm 1, intervals between two updates; 0: the law of the card's code"
    )

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The step of the trim: the card moves it by 8 bytes each 8 us at 1 Gbit/s, so in proportion to rate
        and time.
        """
        return {
            "trim_step": max(1, round(rate * self.interval_us / 1e6 / 125)),
            "increments": self.increments,
        }

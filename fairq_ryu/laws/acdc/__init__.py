"""AC/DC in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import FRAME, LawSpec, parameter


@dataclass(frozen=True, slots=True)
class AcdcLaw(LawSpec):
    """DCTCP's congestion window for each flow. ``first_window``: with which it begins."""

    kind: ClassVar[int] = 6
    name: ClassVar[str] = "acdc"
    keeps_flows: ClassVar[bool] = True

    mark_packets: int = parameter(
        20, "H", 1, 65_535, f"K, the queue length above which data counts as marked, frames of {FRAME} bytes"
    )
    weight_shift: int = parameter(
        4,
        "H",
        1,
        16,
        "g, the weight of a window of data in the mean of the marked fraction, is 2 to the power of minus "
        "this",
    )

    def target(self, limit: int) -> int:
        """K."""
        return self.mark_packets * FRAME

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The shift of g."""
        return {"weight_shift": self.weight_shift}

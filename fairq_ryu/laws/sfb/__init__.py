"""SFB in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu.law_spec import parameter
from fairq_ryu.queue_law_spec import Limits, QueueLawSpec


@dataclass(frozen=True, slots=True)
class SfbLaw(QueueLawSpec):
    """Drops by the packets that bins hold, in which a flow is by its hash."""

    kind: ClassVar[int] = 5
    name: ClassVar[str] = "sfb"
    keeps_bins: ClassVar[bool] = True

    bin_packets: int = parameter(20, "H", 1, 10_000, "a bin with so many packets becomes more likely to drop")
    bin_most: int = parameter(25, "H", 1, 10_000, "a bin takes no more packets; at least bin_packets")

    def contradiction(self) -> str | None:
        """A bin must be able to hold what makes it drop."""
        if self.bin_packets > self.bin_most:
            return f"bin_packets {self.bin_packets} is above bin_most {self.bin_most}"
        return None

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """Flows that do not respond."""
        return Limits.UNRESPONSIVE if own.filled_ns else Limits.NOTHING

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The same."""
        return {"bin_packets": self.bin_packets, "bin_most": self.bin_most}

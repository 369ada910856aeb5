"""RED in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu.law_spec import PPM, parameter
from fairq_ryu.queue_law_spec import Limits, QueueLawSpec


@dataclass(frozen=True, slots=True)
class RedLaw(QueueLawSpec):
    """Drops with a probability that grows with the mean of the queue."""

    kind: ClassVar[int] = 3
    name: ClassVar[str] = "red"

    min_ppm: int = parameter(83_300, "I", 1_000, PPM, "min_th, millionths of the buffer")
    max_ppm: int = parameter(250_000, "I", 1_000, PPM, "max_th, more than min_th, millionths of the buffer")
    max_p_ppm: int = parameter(100_000, "I", 1_000, PPM, "probability at max_th, millionths")
    weight_shift: int = parameter(
        9, "B", 1, 16, "a packet has the weight 1 / 2^weight_shift in the mean of the queue"
    )
    by_bytes: int = parameter(0, "B", 0, 1, "1: long packets are more likely to be dropped")
    abrupt: int = parameter(0, "B", 0, 1, "1: from max_th on all packets are dropped")

    @property
    def unit(self) -> int:
        """The mean is stored in that of its weight."""
        return self.weight_shift

    def contradiction(self) -> str | None:
        """The thresholds have an order."""
        if self.min_ppm >= self.max_ppm:
            return f"min_ppm {self.min_ppm} is not below max_ppm {self.max_ppm}"
        return None

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """The mean."""
        return Limits.MEAN if own.since else Limits.NOTHING

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """Thresholds in bytes, and the slopes between them."""
        least, most = limit * self.min_ppm // PPM, max(1, limit * self.max_ppm // PPM)
        probability = min(0xFFFFFFFF, (self.max_p_ppm << 32) // PPM)
        slope, steep = slopes(least, most, probability)
        return {
            "slope_q48": slope,
            "steep_q48": steep,
            "min_bytes": least,
            "max_bytes": most,
            "max_p_q32": probability,
            "weight_shift": self.weight_shift,
            "by_bytes": self.by_bytes,
            "abrupt": self.abrupt,
        }


def slopes(min_bytes: int, max_bytes: int, max_p_q32: int) -> tuple[int, int]:
    """How much RED's probability grows with each byte of the average, in 1/2^48: from min_th to max_th, and
    from there to twice max_th. 0 where there is no byte between.
    """
    between = max_bytes - min_bytes
    slope = (max_p_q32 << 16) // between if between > 0 else 0
    return slope, ((1 << 32) - max_p_q32 << 16) // max_bytes if max_bytes > 0 else 0

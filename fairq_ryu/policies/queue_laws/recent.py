"""What each flow has sent lately: samples that count less as they age (``laws/queue_recent.h``)."""

from __future__ import annotations

from dataclasses import dataclass

UNIT_SHIFT, HALF_SHIFT, MEAN_SHIFT = 20, 12, 8
STEEP, FLAT = 45426, 12658
U32 = 0xFFFFFFFF


@dataclass(slots=True)
class Recent:
    """``fq_recent``: the samples of a flow, or their mean."""

    samples_q16: int = 0
    at: int = 0

    def q16(self, now_ns: int) -> int:
        """The samples as they count now, in 1 / 2^16."""
        elapsed = (now_ns >> UNIT_SHIFT) - self.at & U32
        if elapsed >> 31:
            return self.samples_q16
        part, halvings = elapsed & (1 << HALF_SHIFT) - 1, elapsed >> HALF_SHIFT
        if halvings >= 32:
            return 0
        value = self.samples_q16 >> halvings
        return value - (value * part * (STEEP - (FLAT * part >> HALF_SHIFT)) >> HALF_SHIFT + 16)

    def set(self, samples_q16: int, now_ns: int) -> None:
        """Set the samples as of now."""
        self.samples_q16 = min(samples_q16, U32)
        self.at = now_ns >> UNIT_SHIFT & U32


def enter(flow: Recent, mean: Recent, now_ns: int, samples: int = 1) -> None:
    """Count samples of a flow. ``mean``: the recent samples that the flow of a sample has on average."""
    value = mean.q16(now_ns)
    flow.set(flow.q16(now_ns) + (samples << 16), now_ns)
    if flow.samples_q16 > value:
        value += (flow.samples_q16 - value) * samples >> MEAN_SHIFT
    else:
        value -= (value - flow.samples_q16) * samples >> MEAN_SHIFT
    mean.set(value, now_ns)

"""Step marking in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu.law_spec import FRAME, PPM, parameter
from fairq_ryu.queue_law_spec import Limits, QueueLawSpec


@dataclass(frozen=True, slots=True)
class MarkLaw(QueueLawSpec):
    """Marks from a length of the queue on. It marks always, whatever ``ecn`` says."""

    kind: ClassVar[int] = 6
    name: ClassVar[str] = "mark"

    mark_bytes: int = parameter(
        20 * FRAME, "I", FRAME, 1 << 30, "K, queue length above which packets are marked, bytes"
    )
    mark_ppm: int = parameter(0, "I", 0, PPM, "K in millionths of the buffer; 0: K is in bytes")

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """The length."""
        return Limits.LENGTH if state.backlog > self._threshold(limit) else Limits.NOTHING

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """K."""
        return {"mark_bytes": self._threshold(limit)}

    def _threshold(self, limit: int) -> int:
        """K in bytes; of a small buffer, a fraction is a frame at least."""
        return max(FRAME, limit * self.mark_ppm // PPM) if self.mark_ppm else self.mark_bytes

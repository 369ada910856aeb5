"""Step marking in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairq_ryu.law_spec import FRAME, parameter
from fairq_ryu.queue_law_spec import Limits, QueueLawSpec


@dataclass(frozen=True, slots=True)
class MarkLaw(QueueLawSpec):
    """Marks from a length of the queue on. It marks always, whatever ``ecn`` says."""

    kind: ClassVar[int] = 6
    name: ClassVar[str] = "mark"

    mark_bytes: int = parameter(
        20 * FRAME, "I", FRAME, 1 << 30, "K, queue length above which packets are marked, bytes"
    )

    def acting_on(self, state: Any, own: Any) -> Limits:
        """The length."""
        return Limits.LENGTH if state.backlog > self.mark_bytes else Limits.NOTHING

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The same."""
        return {"mark_bytes": self.mark_bytes}

"""LAS in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import LOOP_GAIN, LawSpec, parameter


@dataclass(frozen=True, slots=True)
class LasLaw(LawSpec):
    """A pool that follows the queue; flows that have sent little have more of it."""

    kind: ClassVar[int] = 5
    name: ClassVar[str] = "las"
    has_pool: ClassVar[bool] = True
    by_tenant: ClassVar[bool] = True
    loop_gain: ClassVar[float] = LOOP_GAIN

    young_bytes: int = parameter(100_000, "I", 0, 1 << 30, "a flow that has sent less is young, bytes")

    @property
    def young_below(self) -> int:
        """Young flows are counted."""
        return self.young_bytes

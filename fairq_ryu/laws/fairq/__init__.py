"""FairQ in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import LOOP_GAIN, LawSpec


@dataclass(frozen=True, slots=True)
class FairQLaw(LawSpec):
    """A pool that follows the queue; every flow has the same part of it."""

    kind: ClassVar[int] = 1
    name: ClassVar[str] = "fairq"
    has_pool: ClassVar[bool] = True
    by_tenant: ClassVar[bool] = True
    loop_gain: ClassVar[float] = LOOP_GAIN
    whole_floor: ClassVar[bool] = True

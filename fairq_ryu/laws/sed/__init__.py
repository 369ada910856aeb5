"""The part of SED that must not wait for a controller (``law.h``), the rest of it, and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import FLOOR_SEGMENTS, PPM, LawSpec, parameter


@dataclass(frozen=True, slots=True)
class SedLaw(LawSpec):
    """A base window for every flow while the queue is of the target, or new flows will make it so."""

    kind: ClassVar[int] = 4
    name: ClassVar[str] = "sed"

    linger_us: int = parameter(
        50_000, "I", 0, 3_600_000_000, "the queue must have been short for this long, microseconds"
    )
    calm_ppm: int = parameter(
        200_000, "I", 0, PPM, "from it down the queue is short (NOM), millionths of the buffer"
    )
    limiting_segments: int = parameter(
        FLOOR_SEGMENTS,
        "H",
        1,
        10,
        "window of every flow in congestion, segments of the flow: the smaller MSS of its two ends",
    )
    anticipate: int = parameter(
        0, "H", 0, 1, "1: new flows whose first windows will congest the queue count as congestion"
    )

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """The queue is short at NOM as well: ``calm`` is one byte above."""
        return {
            "linger_ns": self.linger_us * 1000,
            "calm": limit * self.calm_ppm // PPM + 1,
            "limiting_segments": self.limiting_segments,
            "anticipate": self.anticipate,
        }

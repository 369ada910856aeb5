"""IQM in the switch (``law.h``), and the policy that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import FLOOR_SEGMENTS, LOOP_GAIN, PPM, LawSpec, parameter

LINGER_US = 50_000
"""An incast is over when the queue has been short for this long, five of IQM's intervals: a moment between
two windows of the same volley does not end it."""


@dataclass(frozen=True, slots=True)
class IqmLaw(LawSpec):
    """A window for every flow in an incast; between incasts a pool, or with a target of the whole buffer no
    windows.
    """

    kind: ClassVar[int] = 3
    name: ClassVar[str] = "iqm"
    shows_incast: ClassVar[bool] = True
    loop_gain: ClassVar[float] = LOOP_GAIN
    counts_syns: ClassVar[bool] = True

    linger_us: int = parameter(
        LINGER_US, "I", 0, 3_600_000_000, "the queue must have been short for this long, microseconds"
    )
    calm_ppm: int = parameter(
        200_000, "I", 0, PPM, "below it, or empty, the queue is short, millionths of the buffer"
    )
    limiting_segments: int = parameter(
        FLOOR_SEGMENTS,
        "H",
        1,
        10,
        "window in an incast of a flow that has not sent its first window, segments of the largest MSS seen; "
        "others have one, and so has one that has sent nothing unless the target is the whole buffer",
    )

    def shares_pool(self, window: int) -> bool:
        """Between incasts, if the queue has a bound then."""
        return self.target_ppm < PPM and not window

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """An empty queue is always short."""
        return {
            "linger_ns": self.linger_us * 1000,
            "calm": max(1, limit * self.calm_ppm // PPM),
            "limiting_segments": self.limiting_segments,
        }

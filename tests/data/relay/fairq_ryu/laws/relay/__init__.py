"""Relay: a pool of two sizes, a large one while the queue is short and a small one while it is long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import PPM, LawSpec, parameter


@dataclass(frozen=True, slots=True)
class RelayLaw(LawSpec):
    """The pool changes when the queue crosses the target."""

    kind: ClassVar[int] = 7
    name: ClassVar[str] = "relay"
    has_pool: ClassVar[bool] = True

    large_ppm: int = parameter(
        800_000, "I", 10_000, PPM, "the pool while the queue is short, millionths of the buffer"
    )
    small_ppm: int = parameter(
        200_000, "I", 10_000, PPM, "the pool while it is long, millionths of the buffer"
    )
    hold_us: int = parameter(2000, "I", 0, 1_000_000, "least time between two changes, microseconds")

    def contradiction(self) -> str | None:
        """The smaller pool must not be the larger one."""
        if self.small_ppm > self.large_ppm:
            return f"small_ppm {self.small_ppm} is above large_ppm {self.large_ppm}"
        return None

    def own(self, limit: int, rate: int) -> Mapping[str, int]:
        """Bytes of the buffer."""
        return {
            "hold_ns": self.hold_us * 1000,
            "large": limit * self.large_ppm // PPM,
            "small": limit * self.small_ppm // PPM,
        }

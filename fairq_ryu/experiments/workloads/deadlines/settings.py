"""The settings of flows with deadlines."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared


@dataclass(frozen=True, kw_only=True)
class DeadlinesScenario(Scenario):
    """Flows with deadlines that start together, beside endless flows."""

    sizes_bytes: tuple[int, ...] = shared.sizes_bytes()
    deadlines_s: tuple[float, ...] = shared.deadlines_s()
    endless: int = setting(
        "number of additional flows without end and without deadline", low=0, high=100, default=0
    )
    repeats: int = shared.repeats()
    round_timeout_s: float = shared.round_timeout_s()
    warmup_s: float = shared.warmup_s()

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        shared.check_deadlines(self.sizes_bytes, self.deadlines_s)

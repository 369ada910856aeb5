"""The settings of a fan-in."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared


@dataclass(frozen=True, kw_only=True)
class FaninScenario(Scenario):
    """Volleys of several applications, for a list of numbers of flows."""

    sizes_bytes: tuple[int, ...] = shared.sizes_bytes()
    deadlines_s: tuple[float, ...] = shared.deadlines_s()
    flows: tuple[int, ...] = setting(
        "number of flows of each application that start together; all rounds are run for each "
        "number in the list",
        low=1,
        high=1000,
        example=(1, 10),
    )
    prepared: bool = setting(
        "open the connections before a round, and send on all of them when the round starts", default=False
    )
    rounds: int = shared.rounds()
    round_interval_s: float = shared.round_interval_s()
    round_timeout_s: float = shared.round_timeout_s()
    floor: bool = shared.floor()

    @property
    def applications(self) -> int:
        """Number of applications: one for each size."""
        return len(self.sizes_bytes)

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        shared.check_deadlines(self.sizes_bytes, self.deadlines_s)

"""The settings of a flood of SYNs."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared


@dataclass(frozen=True, kw_only=True)
class FloodScenario(Scenario):
    """A flood of SYNs beside elephants."""

    elephants: int = shared.elephants()
    warmup_s: float = shared.warmup_s()
    elephants_only_s: float = shared.elephants_only_s()
    flood_s: float = setting("duration of the flood", unit="s", low=0.1, high=3600, default=10.0)
    syn_rate: float = setting(
        "rate of the SYNs, which the last sender sends", unit="1/s", low=1, high=1_000_000, example=5000
    )
    flood_addresses: int = setting(
        "number of source addresses that the SYNs use in turn; none of them is the sender's own",
        low=1,
        high=250,
        default=1,
    )
    after_s: float = shared.after_s()

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        if self.senders < 2 or not self.elephants:
            raise UserError(
                "a flood needs elephants, and a sender besides the one that floods",
                "give senders at least 2 and elephants at least 1",
            )

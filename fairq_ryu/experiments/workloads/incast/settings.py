"""The settings of an incast."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared
from mininet_topos import plans


@dataclass(frozen=True, kw_only=True)
class IncastScenario(Scenario):
    """Volleys of mice beside elephants."""

    receivers: int = setting(
        "number of receiving hosts, which elephants and mice have in turn; only topologies dumbbell and tor "
        "have several",
        low=1,
        high=plans.RIGHT[1],
        default=1,
    )
    elephants: int = shared.elephants()
    mice_per_sender: int = setting(
        "number of new connections that each sender answers at a time in each round",
        low=0,
        high=1000,
        example=2,
    )
    mice_bytes: int = setting("size of each mouse", unit="bytes", low=1, high=100_000_000, example=11_500)
    requests: int = setting(
        "number of mice that follow each other in a round, in place of each single one: the next connection "
        "is opened when the one before it has ended (closed loop)",
        low=1,
        high=100_000,
        default=1,
    )
    udp_mbit: float = shared.udp_mbit()
    rounds: int = shared.rounds()
    round_interval_s: float = shared.round_interval_s()
    round_timeout_s: float = shared.round_timeout_s()
    controller_stopped_s: float = setting(
        "time for which the controller is stopped (SIGSTOP) before each volley, in addition to the interval; "
        "it goes on after the volley. Laws in the switch go on until their lease ends (`lease`, 2 s); "
        "0: never",
        unit="s",
        low=0,
        high=3600,
        default=0.0,
    )
    floor: bool = shared.floor()
    warmup_s: float = shared.warmup_s()
    elephants_only_s: float = shared.elephants_only_s()
    after_s: float = shared.after_s()

    @property
    def applications(self) -> int:
        """One for each receiver."""
        return self.receivers

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        if self.receivers > len(self.plan.receivers):
            raise UserError(
                f"topology {self.topology} has one receiver, and receivers is {self.receivers}",
                "set topology = dumbbell or tor, or receivers = 1",
            )
        if not self.elephants and not self.mice_per_sender:
            raise UserError("there is nothing to send", "raise elephants or mice_per_sender")
        if self.controller_stopped_s and not self.mice_per_sender:
            raise UserError("controller_stopped_s needs volleys, and mice_per_sender is 0", "raise it")

    @property
    def whole_interval_s(self) -> float:
        """From the start of a round to the start of the next."""
        return self.round_interval_s + self.controller_stopped_s

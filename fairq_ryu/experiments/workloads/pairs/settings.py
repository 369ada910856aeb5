"""The settings of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared

LEAST_BUFFER = 1514
LONG, SHORT = 0, 1
"""Places of the flows' hosts among the senders."""
SHORT_DSCP = 46
"""Of the short flows' packets, so that a switch can tell them apart."""


@dataclass(frozen=True, kw_only=True)
class PairsScenario(Scenario):
    """A long flow of one host and a short flow of another, both of one tenant, to the same receiver."""

    rates_mbit: tuple[float, ...] = setting(
        "rates of the bottleneck port, each with a network of its own; buffer_bytes is the buffer at "
        "rate_mbit, and as many times larger or smaller at another rate",
        unit="Mbit/s",
        low=1,
        high=100_000,
        default=(),
        default_text="`rate_mbit`",
        example=(1, 2, 10),
    )
    long_bytes: int = setting(
        "size of the long flow", unit="bytes", low=64, high=1_000_000_000, example=3_125_000
    )
    short_bytes: int = setting(
        "size of the short flow", unit="bytes", low=64, high=1_000_000_000, example=25_000
    )
    short_after_s: float = setting(
        "the long flow starts at a random time in the first second, and the short one at a random time in "
        "the second that begins here",
        unit="s",
        low=0,
        high=3600,
        default=5.0,
    )
    short_priority: int = setting(
        "priority of the short flow within its tenant, where a policy or the hosts share by priority; that "
        "of the long flow is 100",
        low=1,
        high=1000,
        default=100,
    )
    repeats: int = shared.repeats()
    round_timeout_s: float = shared.round_timeout_s()

    @property
    def tenants(self) -> Mapping[str, tuple[str, ...]]:
        """One tenant: its flows share what one flow would have."""
        return {"tenant1": tuple(self.plan.senders(self.senders))}

    @property
    def priorities(self) -> Mapping[str, int]:
        """That of the short flow's host."""
        return {self.plan.senders(self.senders)[SHORT]: self.short_priority}

    @property
    def dscp_priorities(self) -> Mapping[int, int]:
        """That of the short flow's packets."""
        return {SHORT_DSCP: self.short_priority}

    def at(self, rate_mbit: float) -> PairsScenario:
        """The scenario of this rate alone."""
        buffer = max(LEAST_BUFFER, round(self.buffer_bytes * rate_mbit / self.rate_mbit))
        return replace(self, rate_mbit=rate_mbit, buffer_bytes=buffer, rates_mbit=())

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        if self.senders != 2:
            raise UserError(
                f"senders is {self.senders}, and each of two flows has its host", "set senders = 2"
            )
        if len(set(self.rates_mbit)) < len(self.rates_mbit):
            raise UserError("rates_mbit names a rate twice", "name each once")


def steps(scenario: PairsScenario) -> dict[str, PairsScenario]:
    """The scenario of each rate, by its name in progress messages and logs."""
    return {f"{rate:g}mbit": scenario.at(rate) for rate in scenario.rates_mbit or (scenario.rate_mbit,)}

"""The settings of flows of published sizes."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared
from fairq_ryu.experiments.workloads.empirical.sizes import SOURCES, Sizes, read

MOST_FLOWS = 100_000
"""In a run: each takes memory in the generators until the end."""
MOST_EACH_SECOND = 1000
"""That the generator starts on time on a machine of two processors."""
POISSON, LOGNORMAL = "poisson", "lognormal"


@dataclass(frozen=True, kw_only=True)
class EmpiricalScenario(Scenario):
    """Flows of published sizes from the senders in turn to the receiver, at a load of the bottleneck."""

    sizes: str = setting(
        "published distribution of flow sizes: web-search (DCTCP) or data-mining (VL2)",
        choices=tuple(SOURCES),
        example="web-search",
    )
    size_divisor: float = setting(
        "k of the sizes, by which all published sizes are divided, and the limits of small and large flows "
        "with them",
        low=1,
        high=20,
        default=1.0,
    )
    size_cap_bytes: int = setting(
        "largest size of a flow, after the division: what the distribution has above it becomes as large; "
        "0: none",
        unit="bytes",
        low=0,
        high=1_000_000_000,
        default=0,
    )
    load: float = setting(
        "payload of all flows, as a share of the bottleneck's rate: mean size times flows each second",
        low=0.01,
        high=0.95,
        default=0.6,
    )
    arrivals: str = setting(
        "distribution of the times between two flows: poisson, those of a Poisson process (exponential); "
        "lognormal, clustered",
        choices=(POISSON, LOGNORMAL),
        default=POISSON,
    )
    gap_sigma: float = setting(
        "with arrivals = lognormal the standard deviation of the logarithm of these times; the larger, the "
        "more flows come together",
        low=0.1,
        high=3,
        default=2.0,
    )
    warmup_s: float = shared.warmup_s()
    measured_s: float = shared.measured_s()
    finish_s: float = setting(
        "time after the measurement in which flows may end; those that have not ended then are unfinished",
        unit="s",
        low=0,
        high=3600,
        default=20.0,
    )
    floor: bool = shared.floor()

    @property
    def distribution(self) -> Sizes:
        """The sizes of its flows."""
        return read(self.sizes, self.size_divisor, self.size_cap_bytes)

    @property
    def flows_each_second(self) -> float:
        """Mean rate of arrivals."""
        return self.load * self.rate_mbit * 1e6 / (8 * self.distribution.mean)

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        published = read(self.sizes, self.size_divisor)
        if 0 < self.size_cap_bytes < published.steps[0]:
            raise UserError(
                f"size_cap_bytes is {self.size_cap_bytes:,}, and the least flow has {published.steps[0]:,.0f}"
                " bytes: all flows would be alike",
                "raise it, or set it to 0 for no limit",
            )
        rate = self.flows_each_second
        expected = rate * (self.warmup_s + self.measured_s)
        if rate > MOST_EACH_SECOND or expected > MOST_FLOWS:
            raise UserError(
                f"{rate:,.0f} flows would start each second, {expected:,.0f} in all; at most"
                f" {MOST_EACH_SECOND:,} and {MOST_FLOWS:,} are possible",
                "lower load, rate_mbit, measured_s or size_divisor, or raise size_cap_bytes",
            )
        if rate * self.measured_s < 1:
            raise UserError(
                f"less than one flow would start in the {self.measured_s:g} s that are measured",
                "raise measured_s, load or size_divisor",
            )

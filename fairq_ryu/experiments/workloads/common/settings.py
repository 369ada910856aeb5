"""Settings that several workloads have: each workload lists those that it takes in its own settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments.settings import Scenario, setting


def elephants() -> Any:
    """Number of elephants."""
    return setting("number of long bulk flows, assigned to the senders in turn", low=0, high=1000, example=8)


def sizes_bytes() -> Any:
    """Sizes of flows that start together."""
    return setting(
        "size of each flow (`deadlines`) or of the flows of each application (`fanin`)",
        unit="bytes",
        low=64,
        high=1_000_000_000,
        example=(4000, 40_000),
    )


def deadlines_s() -> Any:
    """Deadlines of flows that start together."""
    return setting(
        "deadline for each of these sizes, in the same order, counted from the common start; 0: none",
        unit="s",
        low=0,
        high=3600,
        example=(0.2, 0),
    )


def check_deadlines(sizes: tuple[int, ...], deadlines: tuple[float, ...]) -> None:
    """`UserError` unless each of the sizes has a deadline."""
    if len(sizes) != len(deadlines):
        raise UserError(
            f"sizes_bytes has {len(sizes)} entries and deadlines_s {len(deadlines)}",
            "give one deadline for each size, 0 where there is none",
        )


def rounds() -> Any:
    """Number of volleys."""
    return setting("number of volleys; the flows of a volley start together", low=1, high=100_000, default=30)


def round_interval_s() -> Any:
    """Interval of volleys."""
    return setting(
        "time from the start of one volley to the start of the next; more if the volley takes longer",
        unit="s",
        low=0,
        high=3600,
        default=1.0,
    )


def round_timeout_s() -> Any:
    """Time limit of a flow."""
    return setting(
        "a mouse or a flow that takes longer than this is counted as unfinished",
        unit="s",
        low=0.1,
        high=3600,
        default=20.0,
    )


def udp_mbit() -> Any:
    """Rate of datagrams."""
    return setting(
        "rate at which each UDP flow sends, counted in payload; may be above that of the bottleneck "
        "(`incast`: one flow, from the last sender to the first receiver, beside everything else; 0: none)",
        unit="Mbit/s",
        low=0,
        high=10_000,
        default=0.0,
    )


def repeats() -> Any:
    """Number of runs."""
    return setting("number of runs of all flows, one run after the other", low=1, high=1000, default=10)


def floor() -> Any:
    """Whether the volleys alone are measured, too."""
    return setting(
        "measure in each repetition the same volleys alone on an idle link; no: that figure is missing "
        "(`empirical`: single flows on a network without a controller; no: on that of each policy)",
        default=True,
    )


def warmup_s() -> Any:
    """Warm-up of long flows."""
    return setting(
        "time for which elephants, endless flows or flows of published sizes run before the measurement "
        "starts",
        unit="s",
        low=0,
        high=3600,
        default=3.0,
    )


def measured_s() -> Any:
    """The one phase that is measured."""
    return setting(
        "duration of the measurement, after warmup_s", unit="s", low=0.1, high=36_000, default=60.0
    )


def elephants_only_s() -> Any:
    """Phase before the traffic that is measured."""
    return setting(
        "duration of the measurement with elephants only, before mice, flood or messages start; 0: none",
        unit="s",
        low=0,
        high=3600,
        default=3.0,
    )


def after_s() -> Any:
    """Phase after the traffic that is measured."""
    return setting(
        "duration of the measurement with elephants only, at the end; 0: none",
        unit="s",
        low=0,
        high=3600,
        default=0.0,
    )


@dataclass(frozen=True, kw_only=True)
class ShortScenario(Scenario):
    """Short flows beside other traffic."""

    short_rate: float = setting(
        "number of short flows that start each second on average, at the times of a Poisson process, "
        "from the senders in turn (`tenants`: those of no tenant), with the congestion control cc; 0: none",
        unit="1/s",
        low=0,
        high=1000,
        default=0.0,
    )
    short_least_bytes: int = setting(
        "least size of a short flow; sizes have a Pareto distribution",
        unit="bytes",
        low=64,
        high=1_000_000_000,
        default=1500,
    )
    short_most_bytes: int = setting(
        "largest size of a short flow: what the distribution has above it becomes as large",
        unit="bytes",
        low=64,
        high=1_000_000_000,
        default=10_000_000,
        default_text="10000000",
    )
    short_shape: float = setting(
        "shape of the Pareto distribution; the lower, the more of all bytes are in few flows",
        low=0.1,
        high=100,
        default=1.2,
    )

    def check(self) -> None:
        """`UserError` when the settings contradict each other, with all such faults."""
        faults = list(self.faults())
        try:
            super().check()
        except UserError as error:
            faults = [*error.faults, *faults]
        if faults:
            raise all_of(faults)

    def faults(self) -> Iterator[UserError]:
        """What contradicts in these settings; subclasses add theirs."""
        if self.short_least_bytes > self.short_most_bytes:
            yield UserError(
                f"short_least_bytes is {self.short_least_bytes}, and short_most_bytes"
                f" {self.short_most_bytes}",
                "lower the first, or raise the second",
            )

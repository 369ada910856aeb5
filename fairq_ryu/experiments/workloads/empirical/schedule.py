"""Which flows start when: all of it follows from the scenario, so every policy has the same flows."""

from __future__ import annotations

import random
from typing import NamedTuple

from fairq_ryu.experiments.workloads.empirical.settings import LOGNORMAL, EmpiricalScenario


class Planned(NamedTuple):
    """A flow that is due; its number is its place in the schedule."""

    due_s: float
    """since the first flow may start"""
    sender: int
    size: int
    """bytes"""
    seed: int
    """of its payload"""


def schedule(scenario: EmpiricalScenario) -> list[Planned]:
    """All flows of the warm-up and of the measured phase, in the order in which they are due."""
    # Three streams of random numbers: scenarios that differ in load or arrivals have the same sizes in the
    # same order, and with another load the same times on another scale.
    gaps, shares, payloads = (
        random.Random(f"{what} {scenario.seed}") for what in ("gaps", "sizes", "payloads")
    )
    sizes, mean_s = scenario.distribution, 1 / scenario.flows_each_second
    end_s = scenario.warmup_s + scenario.measured_s
    found: list[Planned] = []
    due_s = _gap(scenario, gaps) * mean_s
    while due_s < end_s:
        size = sizes.quantile(shares.random())
        found.append(Planned(due_s, len(found) % scenario.senders, size, payloads.getrandbits(32)))
        due_s += _gap(scenario, gaps) * mean_s
    return found


def _gap(scenario: EmpiricalScenario, numbers: random.Random) -> float:
    """A time between two flows, of mean 1."""
    if scenario.arrivals == LOGNORMAL:
        sigma = scenario.gap_sigma
        return numbers.lognormvariate(-sigma * sigma / 2, sigma)
    return numbers.expovariate(1.0)

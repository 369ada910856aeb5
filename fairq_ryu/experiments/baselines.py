"""Baselines: what a policy is compared with that needs no law of its own, only other host settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairq_ryu.experiments.scenario import Scenario


@dataclass(frozen=True)
class Baseline:
    """A name for ``--policy``: a policy, and settings of the scenario that it changes."""

    policy: str
    help: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario with the baseline's settings in place of its own."""
        return replace(scenario, **self.settings)


BASELINES = {
    "droptail-rto5": Baseline(
        "droptail",
        "DropTail, and every host has a least retransmission timeout of 5 ms",
        {"rto_min_ms": 5.0},
    ),
}
"""By name. The first thing an operator would try is a shorter timeout, which needs access to every host."""


def of(name: str) -> Baseline:
    """The baseline of that name; for any other name the policy itself, with nothing changed."""
    return BASELINES.get(name) or Baseline(name)

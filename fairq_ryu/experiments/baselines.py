"""Baselines: policies with changed host settings, for comparison with other policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairq_ryu.experiments.settings import Scenario


@dataclass(frozen=True)
class Baseline:
    """A name for ``--policy``: a policy, and the settings of the scenario that it replaces."""

    policy: str
    help: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario with the baseline's settings."""
        return replace(scenario, **self.settings)


BASELINES = {
    "droptail-rto5": Baseline(
        "droptail",
        "DropTail, and every host has a minimum retransmission timeout of 5 ms",
        {"rto_min_ms": 5.0},
    ),
    "droptail-dctcp": Baseline(
        "droptail",
        "DropTail, and every host runs DCTCP, although nothing marks packets",
        {"cc": "dctcp", "sender_cc": ()},
    ),
    "mark-dctcp": Baseline(
        "mark",
        "DCTCP: bottleneck ports mark packets above a threshold, and every host runs DCTCP",
        {"cc": "dctcp", "sender_cc": ()},
    ),
    "mark-d2tcp": Baseline(
        "mark",
        "D2TCP: bottleneck ports mark packets above a threshold, and every host runs D2TCP",
        {"cc": "d2tcp", "sender_cc": ()},
    ),
}
"""By name. An operator would first try a shorter timeout, which needs access to every host."""


def of(name: str) -> Baseline:
    """The baseline of this name; any other name is a policy without changed settings."""
    return BASELINES.get(name) or Baseline(name)

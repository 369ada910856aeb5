"""What a flow takes alone on the empty network, and the slowdowns over it. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairq_ryu.experiments.workloads.common import limits
from fairq_ryu.experiments.workloads.empirical import figures as all_figures
from fairq_ryu.experiments.workloads.empirical.settings import EmpiricalScenario

PROBE_BYTES = 1000
"""Size of the flows that measure the empty network: one segment each."""


def alone_ms(size: int, scenario: EmpiricalScenario, probe_ms: float) -> float:
    """The completion time of a flow of ``size`` bytes alone on the empty network, where one of `PROBE_BYTES`
    takes ``probe_ms``: the rest of its bytes at the rate of the bottleneck. Slow start costs nothing.
    """

    def limit(size: int) -> float:
        return limits.volley_ms([size], scenario, handshake=True, request=False)

    return probe_ms + (limit(size) - limit(PROBE_BYTES))


def floor(scenario: EmpiricalScenario) -> EmpiricalScenario | None:
    """The empty network alone: nothing but the probes; None if the scenario wants none."""
    if not scenario.floor:
        return None
    return replace(scenario, warmup_s=0.0, measured_s=0.0, capture=False)


def add_limits(scenario: EmpiricalScenario, figures: dict[str, Any], floor: Mapping[str, Any] | None) -> None:
    """Put the figures by size in the place of the list of flows; ``floor`` are the figures of the empty
    network without a controller, None: this policy's own is the reference.
    """
    own = figures["empirical"]
    reference = (floor or {}).get("empirical") or own
    probe_ms: float = reference["probe_ms"]
    flows = [all_figures.Flow(*each) for each in own.pop("flows")]
    alone = [alone_ms(flow.size, scenario, probe_ms) for flow in flows]
    figures["empirical"] = {
        **own,
        "alone_probe_ms": probe_ms,
        **all_figures.by_size(scenario, flows, alone),
    }

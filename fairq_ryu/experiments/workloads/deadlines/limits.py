"""Deadlines that no policy can meet: see `common.limits`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairq_ryu.experiments.workloads.common.limits import volley_ms
from fairq_ryu.experiments.workloads.deadlines.settings import DeadlinesScenario


def impossible(scenario: DeadlinesScenario) -> int:
    """Number of deadlines of a run that the link cannot meet, even if it carries nothing else and the
    earliest deadline first.
    """
    timed = sorted(
        (deadline, size)
        for size, deadline in zip(scenario.sizes_bytes, scenario.deadlines_s, strict=True)
        if deadline
    )
    # Moore and Hodgson's rule: when one would be late, the largest so far is given up.
    carried: list[int] = []
    for deadline, size in timed:
        carried.append(size)
        if volley_ms(carried, scenario, handshake=True, request=False) > deadline * 1e3:
            carried.remove(max(carried))
    return len(timed) - len(carried)


def add_limits(
    scenario: DeadlinesScenario, figures: dict[str, Any], _floor: Mapping[str, Any] | None
) -> None:
    """Add ``impossible`` to one policy's figures, for all runs."""
    figures["deadlines"]["impossible"] = impossible(scenario) * scenario.repeats

"""What no policy can beat in a fan-in: see `common.limits`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairq_ryu.experiments.workloads.common import limits
from fairq_ryu.experiments.workloads.fanin.settings import FaninScenario


def fanin_ms(scenario: FaninScenario, flows: int) -> float:
    """The physical limit of a volley with ``flows`` flows of each application, ms: that of its last byte."""
    return limits.volley_ms(_sizes(scenario, flows), scenario, handshake=not scenario.prepared, request=False)


def floor(scenario: FaninScenario) -> FaninScenario | None:
    """The same volleys on a link with an ample buffer; None if the scenario wants none."""
    if not scenario.floor:
        return None
    return replace(
        scenario,
        buffer_bytes=limits.ample_buffer(_sizes(scenario, max(scenario.flows)), scenario),
        rto_min_ms=limits.timeout_ms(fanin_ms(scenario, max(scenario.flows)), scenario),
        rounds=min(scenario.rounds, limits.FLOOR_ROUNDS),
        round_interval_s=min(scenario.round_interval_s, limits.FLOOR_INTERVAL_S),
        capture=False,
    )


def add_limits(scenario: FaninScenario, figures: dict[str, Any], floor: Mapping[str, Any] | None) -> None:
    """Add ``distance`` to each entry of one policy's sweep; ``floor`` are the figures of the floor (None: not
    known).
    """
    floors = {each["n"]: each for each in ((floor or {}).get("fanin") or {}).get("sweep", ())}
    for each in figures["fanin"]["sweep"]:
        alone = floors.get(each["n"])
        # With losses it shows how long the hosts wait, not what the volley needs.
        if alone and any(alone.get(key) for key in ("unfinished", "qdisc_drops", "rto_timeouts")):
            alone = None
        each["distance"] = limits.distance(
            each["last_byte_ms"]["p50"],
            fanin_ms(scenario, each["n"]),
            alone and alone["last_byte_ms"]["p50"],
        )


def _sizes(scenario: FaninScenario, flows: int) -> list[int]:
    return [size for size in scenario.sizes_bytes for _ in range(flows)]

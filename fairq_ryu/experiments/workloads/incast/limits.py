"""What no policy can beat in an incast: see `common.limits`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairq_ryu.experiments.workloads.common import limits
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario


def mice_ms(scenario: IncastScenario) -> float:
    """The physical limit of a volley, ms: that of its last mouse."""
    return limits.volley_ms(_sizes(scenario), scenario, handshake=True, request=True)


def floor(scenario: IncastScenario) -> IncastScenario | None:
    """The same volleys alone, on an idle link with an ample buffer; None without mice, if they follow each
    other (how long one takes is then no question of the volley), or if the scenario wants none.
    """
    if not scenario.mice_per_sender or not scenario.floor or scenario.requests > 1:
        return None
    return replace(
        scenario,
        elephants=0,
        udp_mbit=0.0,
        warmup_s=0.0,
        elephants_only_s=0.0,
        after_s=0.0,
        controller_stopped_s=0.0,
        buffer_bytes=limits.ample_buffer(_sizes(scenario), scenario),
        rto_min_ms=limits.timeout_ms(mice_ms(scenario), scenario),
        rounds=min(scenario.rounds, limits.FLOOR_ROUNDS),
        round_interval_s=min(scenario.round_interval_s, limits.FLOOR_INTERVAL_S),
        capture=False,
    )


def add_limits(scenario: IncastScenario, figures: dict[str, Any], floor: Mapping[str, Any] | None) -> None:
    """Add ``distance`` to one policy's figures, unless mice follow each other; ``floor`` are the figures of
    the floor (None: not known).
    """
    if not (figures.get("mice") or {}).get("fct_ms") or scenario.requests > 1:
        return
    mice = (floor or {}).get("mice") or {}
    # With losses it shows how long the hosts wait, not what the volley needs.
    whole = not any(mice.get(each) for each in ("unfinished", "segments_dropped", "rto_timeouts"))
    alone = mice.get("fct_ms") if whole else None
    figures["distance"] = limits.distance(
        figures["mice"]["fct_ms"]["p99"], mice_ms(scenario), alone and alone["p99"]
    )


def _sizes(scenario: IncastScenario) -> list[int]:
    return [scenario.mice_bytes] * (scenario.senders * scenario.mice_per_sender)

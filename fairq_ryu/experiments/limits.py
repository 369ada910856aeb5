"""What no policy can beat: the physical limit of a volley, and the bench's own floor.

Both say how good a result is without a word about how bad the baseline was. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairq_ryu.experiments.scenario import Scenario
from fairq_ryu.experiments.settings import DEADLINES, FANIN, INCAST

FLOOR_ROUNDS = 5
"""Volleys of the floor: each alone on the link, so they hardly differ."""
FLOOR_INTERVAL_S = 0.3
_ETHERNET, _IP, _TCP, _TIMESTAMPS = 14, 20, 20, 12
_MTU = 1500
_OPTIONS_OF_SYN = 20  # MSS, SACK, timestamps, window scale: as Linux sends them
_NO_TIMESTAMPS_SYN = 12


def wire_bytes(size: int, timestamps: bool) -> int:
    """Bytes on the wire, Ethernet headers included, of ``size`` bytes in full TCP segments over IPv4."""
    options = _TIMESTAMPS if timestamps else 0
    segments = -(-size // (_MTU - _IP - _TCP - options))
    return size + segments * (_ETHERNET + _IP + _TCP + options)


def volley_ms(sizes: Sequence[int], scenario: Scenario, *, handshake: bool, request: bool) -> float:
    """Time in ms to carry a volley of these flows over the scenario's link: their bytes on the wire at its
    rate, and the propagation delay of a handshake, of a request (where the receiver asks), and of the data.
    """
    syn = _ETHERNET + _IP + _TCP + (_OPTIONS_OF_SYN if scenario.timestamps else _NO_TIMESTAMPS_SYN)
    carried = sum(wire_bytes(size, scenario.timestamps) for size in sizes)
    carried += len(sizes) * syn if handshake else 0
    # A handshake takes a round trip, and data half of one. Where the receiver asks, half of one more.
    trips = (1.0 if handshake else 0.0) + 0.5 + (0.5 if request else 0.0)
    return carried * 8 / (scenario.rate_mbit * 1e3) + trips * rtt_ms(scenario)


def rtt_ms(scenario: Scenario) -> float:
    """The delay that the scenario's network adds to a round trip, ms."""
    return float(getattr(scenario, "rtt_ms", 0.0) or 0.0)


def mice_ms(scenario: Scenario) -> float:
    """The physical limit of an incast's volley, ms: that of its last mouse."""
    count = scenario.senders * scenario.mice_per_sender
    return volley_ms([scenario.mice_bytes] * count, scenario, handshake=True, request=True)


def fanin_ms(scenario: Scenario, flows: int) -> float:
    """The same of a fan-in's volley with so many flows an application."""
    sizes = [size for size in scenario.sizes_bytes for _ in range(flows)]
    return volley_ms(sizes, scenario, handshake=not scenario.prepared, request=False)


def impossible(scenario: Scenario) -> int:
    """Deadlines of a run of traffic `deadlines` that the link cannot meet, even if it carries nothing else
    and the earliest deadline first.
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


def floor_scenario(scenario: Scenario) -> Scenario | None:
    """The same volleys alone, on an idle link whose buffer holds them twice; None where there are none."""
    if scenario.traffic == INCAST and scenario.mice_per_sender:
        sizes = [scenario.mice_bytes] * (scenario.senders * scenario.mice_per_sender)
        other: dict[str, Any] = {"elephants": 0, "warmup_s": 0.0, "elephants_only_s": 0.0, "after_s": 0.0}
    elif scenario.traffic == FANIN:
        sizes = [size for size in scenario.sizes_bytes for _ in range(max(scenario.flows))]
        other = {}
    else:
        return None
    room = 2 * sum(wire_bytes(size, scenario.timestamps) for size in sizes)
    return replace(
        scenario,
        buffer_bytes=max(scenario.buffer_bytes, room),
        rounds=min(scenario.rounds, FLOOR_ROUNDS),
        round_interval_s=min(scenario.round_interval_s, FLOOR_INTERVAL_S),
        capture=False,
        **other,
    )


def annotate(scenario: Scenario, figures: dict[str, Any], floor: Mapping[str, Any] | None) -> None:
    """Add to one policy's figures their distance to the limit and to the ``floor`` (None: not known)."""
    if scenario.traffic == INCAST and (figures.get("mice") or {}).get("fct_ms"):
        least = ((floor or {}).get("mice") or {}).get("fct_ms")
        figures["distance"] = _distance(
            figures["mice"]["fct_ms"]["p99"], mice_ms(scenario), least and least["p99"]
        )
    elif scenario.traffic == FANIN:
        floors = {each["n"]: each for each in ((floor or {}).get("fanin") or {}).get("sweep", ())}
        for each in figures["fanin"]["sweep"]:
            least = floors.get(each["n"])
            each["distance"] = _distance(
                each["last_byte_ms"]["p50"],
                fanin_ms(scenario, each["n"]),
                least and least["last_byte_ms"]["p50"],
            )
    elif scenario.traffic == DEADLINES:
        figures["deadlines"]["impossible"] = impossible(scenario) * scenario.repeats


def _distance(figure: float, limit: float, floor: float | None) -> dict[str, float | None]:
    return {
        "limit_ms": limit,
        "limit_times": figure / limit,
        "floor_ms": floor,
        "floor_times": figure / floor if floor else None,
    }

"""What no policy can beat: the physical limit of a volley, and the floor, which is the same volley alone.

Both show how good a result is, however bad the baseline was. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairq_ryu.experiments.settings import Scenario

FLOOR_ROUNDS = 5
"""Volleys of a floor: each is alone on the link, so they hardly differ."""
FLOOR_INTERVAL_S = 0.3
_LEAST_TIMEOUT_MS = 200.0  # Linux's
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
    return carried * 8 / (scenario.rate_mbit * 1e3) + trips * scenario.rtt_ms


def ample_buffer(sizes: Sequence[int], scenario: Scenario) -> int:
    """A buffer, bytes, that holds a volley of these flows twice."""
    return max(scenario.buffer_bytes, 2 * sum(wire_bytes(size, scenario.timestamps) for size in sizes))


def timeout_ms(volley: float, scenario: Scenario) -> float:
    """The least retransmission timeout, ms, with which nobody sends again what only waits in an ample buffer,
    for a volley that takes ``volley`` ms: otherwise the volley alone would take longer than with a small
    buffer.
    """
    return max(scenario.rto_min_ms, _LEAST_TIMEOUT_MS, 2 * volley)


def distance(figure: float, limit: float, floor: float | None) -> dict[str, float | None]:
    """A time as a multiple of its limit and of its floor (None: not known), all in ms."""
    return {
        "limit_ms": limit,
        "limit_times": figure / limit,
        "floor_ms": floor,
        "floor_times": figure / floor if floor else None,
    }

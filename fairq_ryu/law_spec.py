"""Window laws that run in the switch: what a controller asks of an agent.

A law is an object of the window channel, as a meter is in OpenFlow: it has a kind and parameters, and does
nothing until a rule of a port refers to it. Its parameters are relative to the port's buffer, so that they
stay right when the port changes; the agent works out bytes from the buffer and the rate of the port.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag


class LawKind(IntEnum):
    """The laws, by their numbers on the wire and in the eBPF maps (``FQ_LAW_...`` in ``layout.h``)."""

    FAIRQ = 1
    FAIRSWITCH = 2
    IQM = 3
    SED_BASE = 4
    LAS = 5
    ACDC = 6


class LawFlags(IntFlag):
    """``ANTICIPATE``: SED's base windows are in force when new flows will congest the queue. ``TURNS``: new
    connections wait until the buffer has room for one more first window.
    """

    ANTICIPATE = 1
    TURNS = 2


NO_FLAGS = LawFlags(0)
ALL_FLAGS = LawFlags.ANTICIPATE | LawFlags.TURNS


class Mode(IntFlag):
    """What a law is doing (``FQ_MODE_...``). ``LIMITING``: it limits every flow because of an incast (IQM) or
    congestion (SED); ``FLOORED``: the flows' minimum windows are more than the pool.
    """

    LIMITING = 1
    FLOORED = 2


class LimitedBy(IntEnum):
    """What limits the pool (``FQ_LIMITED_BY_...``): the queue; its flows, which do not use their windows; the
    capacity of the port; or the flows' minimum windows.
    """

    QUEUE = 0
    FLOWS = 1
    CAP = 2
    FLOOR = 3


POOL_KINDS = frozenset({LawKind.FAIRQ, LawKind.FAIRSWITCH, LawKind.LAS})
"""The laws whose flows share a pool. The others give every flow the same window, or none."""


TICK_US = 200
"""T of the laws with a pool. A fifth of the round trip that they assume, so that a pool follows its queue in
small steps; a packet of 1514 bytes takes as long at 60 Mbit/s, and slower ports tick at every packet."""

FLOOR_SEGMENTS = 2
"""Linux sends segments of at most half of the largest window it has seen: with windows of one segment, it
sends twice as many packets. Where the buffer does not hold two of each flow, the laws go down to one."""

LINGER_US = 50_000
"""An incast is over when the queue has been short for this long, five of IQM's intervals: a moment between
two windows of the same volley does not end it."""

LIMITING_SEGMENTS = FLOOR_SEGMENTS
"""In an incast, of flows that are new; the others have one."""

SYN_ALLOWANCE = 256
"""More connections than an aggregator opens in one volley; so few that a flood of SYNs limits windows for
0.1 s in 10 s."""

FIRST_WINDOW = 10
"""Segments that hosts send at once (RFC 6928)."""


@dataclass(frozen=True, slots=True)
class LawSpec:
    """A law and its parameters. Times in microseconds, sizes in bytes, ``..._ppm`` in millionths of the
    buffer.

    ``interval_us`` T, minimum time between two ticks; ``base_rtt_us`` the round-trip time with empty queues;
    ``target_ppm`` the queue length that the law aims at (SED: K; IQM: between incasts, the whole buffer for
    no windows then); ``calm_ppm`` below it, the queue is short
    (IQM, SED); ``linger_us`` the queue must have been short for this long;
    ``first_window`` x, the segments that a new flow sends at once; ``floor_segments`` the minimum window
    while the buffer holds that of all flows; ``limiting_segments`` the window of every flow in congestion
    (SED), or in an incast, after the first segment, until it has sent ``first_window`` (IQM);
    ``young_bytes`` a flow that has sent less is young (LAS);
    ``syn_allowance`` limit against SYN floods: at most this many flows count as new ones before their
    handshakes are complete (IQM, SED), or use up the turns of new connections (FairQ, FairSwitch, LAS);
    ``mark_packets`` K, the queue length above which data counts as marked, in full frames (ACDC);
    ``weight_shift`` g, the weight of a window of data in the mean, is 2 to the power of minus this (ACDC).
    """

    kind: LawKind
    flags: LawFlags = NO_FLAGS
    interval_us: int = TICK_US
    base_rtt_us: int = 1000
    linger_us: int = LINGER_US
    target_ppm: int = 250_000
    calm_ppm: int = 200_000
    young_bytes: int = 100_000
    first_window: int = FIRST_WINDOW
    floor_segments: int = FLOOR_SEGMENTS
    limiting_segments: int = LIMITING_SEGMENTS
    syn_allowance: int = SYN_ALLOWANCE
    mark_packets: int = 0
    weight_shift: int = 0


LAW_BOUNDS: dict[str, tuple[int, int]] = {
    "interval_us": (50, 10_000),
    "base_rtt_us": (0, 1_000_000),
    "linger_us": (0, 3_600_000_000),
    "target_ppm": (10_000, 1_000_000),
    "calm_ppm": (0, 1_000_000),
    "young_bytes": (0, 1 << 30),
    "first_window": (1, 1000),
    "floor_segments": (1, 10),
    "limiting_segments": (1, 10),
    "syn_allowance": (1, 1_000_000),
    "mark_packets": (0, 65_535),
    "weight_shift": (0, 16),
}
"""The bounds of the parameters, inclusive; the only table of them."""


def out_of_bounds(spec: LawSpec) -> str | None:
    """The first parameter that is out of its bounds, in words; None: all are within."""
    for name, (least, most) in LAW_BOUNDS.items():
        value = getattr(spec, name)
        if not least <= value <= most:
            return f"{name} {value} is not between {least} and {most}"
    if spec.kind is LawKind.ACDC and not (spec.mark_packets and spec.weight_shift):
        return f"mark_packets {spec.mark_packets} or weight_shift {spec.weight_shift} is 0"
    return None


def trim_step(rate: int, interval: float) -> int:
    """By how much FairSwitch's trim moves in one interval (seconds), bytes: the card moves it by 8 bytes each
    8 us at 1 Gbit/s, so in proportion to ``rate`` (bytes/s) and time.
    """
    return max(1, round(rate * interval / 125))

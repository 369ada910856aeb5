"""Queue laws, which judge each packet that is about to enter the queue of a port: kinds, variants and flags.

Their numbers are those of the wire and of the eBPF maps (``queue_law_layout.h``).

Like a window law, a queue law is an object of the window channel: it has parameters, and does nothing until a
rule of a port refers to it. Lengths are relative to the port's buffer, and times may be left to the agent
(0), which works them out of the buffer and the rate of the port.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NamedTuple

FRAME = 1514
"""A full Ethernet frame, bytes: the packet in which the laws count."""
SHADOW = 2000
"""Samples in the shadow buffer of AFQ and AFCD."""


class QueueLawKind(IntEnum):
    """The laws (``FQ_QLAW_...``)."""

    AFQ = 1
    AFCD = 2
    RED = 3
    CODEL = 4
    SFB = 5
    MARK = 6


class Variant(IntEnum):
    """AFQ and AFCD as in the paper, as in the code of its authors, or ours (``FQ_VARIANT_...``). Ours knows
    what flows have sent in the last seconds: AFQ allows small ones 1.25 fair shares, and AFCD is this and a
    CoDel whose drops fall on large ones.
    """

    PAPER = 1
    AUTHORS = 2
    OURS = 3


class QueueLawFlags(IntFlag):
    """``ECN``: packets that are ECN-capable are marked where others are dropped (kind ``MARK`` always marks).
    ``BYTES``: RED drops long packets with a higher probability. ``ABRUPT``: RED drops all packets from its
    upper threshold on.
    """

    ECN = 1
    BYTES = 2
    ABRUPT = 4


FLOW_TABLE_KINDS = frozenset({QueueLawKind.AFQ, QueueLawKind.AFCD, QueueLawKind.SFB})
"""The laws that need a flow table, or bins, beside the state of the port."""
SHARING_KINDS = frozenset({QueueLawKind.AFQ, QueueLawKind.AFCD})
"""The laws that count flows and know a fair share."""
DELAY_KINDS = frozenset({QueueLawKind.CODEL, QueueLawKind.AFCD})
"""The laws that aim at a queueing delay."""
NO_QUEUE_FLAGS = QueueLawFlags(0)
ALL_QUEUE_FLAGS = QueueLawFlags.ECN | QueueLawFlags.BYTES | QueueLawFlags.ABRUPT


class Limits(IntEnum):
    """What a law acts on now: nothing; the queue is longer than K (MARK); the mean of the queue is above the
    least threshold (RED); the queueing delay has been above its target for too long (CODEL, AFCD); two flows
    or more have samples, and the fair share is known (AFQ, AFCD ours); a flow has not responded (SFB).
    """

    NOTHING = 0
    LENGTH = 1
    MEAN = 2
    DELAY = 3
    SHARE = 4
    UNRESPONSIVE = 5


UPDATE_US = 6250
"""tau_q: 1/160 s, that of AFD (Pan et al.). The switch updates sooner where it would overshoot."""

SAMPLE_EVERY = 0
"""0: worked out from the rate of the port, for 1.2 seconds of a full link (:func:`sampling`)."""


@dataclass(frozen=True, slots=True)
class QueueLawSpec:
    """A queue law and its parameters. Times in microseconds, ``..._ppm`` in millionths, of the buffer if they
    are lengths.

    ``target_us`` the delay that CODEL and AFCD aim at (0: worked out from the port); ``interval_us`` for how
    long the delay must be above it (0: likewise); ``base_rtt_us`` the round-trip time with empty queues;
    ``update_us`` tau_q, the time between two updates of the fair share; ``target_ppm`` Q_t, the queue length
    that AFQ aims at; ``sample_every`` which packet enters the shadow buffer (0: worked out); ``min_ppm`` and
    ``max_ppm`` the lengths between which RED drops with a probability of up to ``max_p_ppm``;
    ``weight_shift`` the weight of a packet in RED's mean is 2 to the power of minus this; ``bin_packets`` the
    packets in a bin of SFB from which its probability grows, ``bin_most`` those that it takes; ``mark_bytes``
    K, the queue length from which MARK marks.
    """

    kind: QueueLawKind
    variant: Variant = Variant.OURS
    flags: QueueLawFlags = NO_QUEUE_FLAGS
    target_us: int = 0
    interval_us: int = 0
    base_rtt_us: int = 1000
    update_us: int = UPDATE_US
    target_ppm: int = 200_000
    min_ppm: int = 83_333
    max_ppm: int = 250_000
    max_p_ppm: int = 100_000
    mark_bytes: int = 20 * FRAME
    sample_every: int = SAMPLE_EVERY
    weight_shift: int = 9
    bin_packets: int = 20
    bin_most: int = 25


QUEUE_LAW_BOUNDS: dict[str, tuple[int, int]] = {
    "target_us": (0, 10_000_000),
    "interval_us": (0, 60_000_000),
    "base_rtt_us": (0, 10_000_000),
    "update_us": (100, 1_000_000),
    "target_ppm": (10_000, 1_000_000),
    "min_ppm": (1_000, 1_000_000),
    "max_ppm": (1_000, 1_000_000),
    "max_p_ppm": (1_000, 1_000_000),
    "mark_bytes": (FRAME, 1 << 30),
    "sample_every": (0, 10_000),
    "weight_shift": (1, 16),
    "bin_packets": (1, 10_000),
    "bin_most": (1, 10_000),
}
"""The bounds of the parameters, inclusive; the only table of them."""


def out_of_bounds(spec: QueueLawSpec) -> str | None:
    """The first parameter that is out of its bounds, in words; None: all are within."""
    for name, (least, most) in QUEUE_LAW_BOUNDS.items():
        value = getattr(spec, name)
        if not least <= value <= most:
            return f"{name} {value} is not between {least} and {most}"
    if spec.min_ppm >= spec.max_ppm:
        return f"min_ppm {spec.min_ppm} is not below max_ppm {spec.max_ppm}"
    if spec.bin_packets > spec.bin_most:
        return f"bin_packets {spec.bin_packets} is above bin_most {spec.bin_most}"
    return None


class DelayTimes(NamedTuple):
    """Target and interval of the queueing delay, microseconds."""

    target_us: int
    interval_us: int


def delay_times(spec: QueueLawSpec, limit: int, rate: int) -> DelayTimes:
    """Target and interval that are in force on a port with this buffer (bytes) and rate (bytes/s, not 0).

    The interval is at least 10 ms, and two round trips with a full buffer: 100 ms and a target of 5 ms, made
    for paths of 120 ms, would never act where the whole buffer is 5 ms. The target is a twentieth of the
    interval, and at least one and a half packets. Both are within :data:`QUEUE_LAW_BOUNDS`.
    """
    drain_us = limit * 1_000_000 // rate
    interval = spec.interval_us or max(10_000, 2 * (spec.base_rtt_us + drain_us))
    target = spec.target_us or max(interval // 20, 3 * FRAME * 1_000_000 // (2 * rate))
    most = QUEUE_LAW_BOUNDS
    return DelayTimes(min(target, most["target_us"][1]), min(interval, most["interval_us"][1]))


def sampling(spec: QueueLawSpec, rate: int) -> int:
    """Which packet enters the shadow buffer at this rate (bytes/s), so that the buffer has the samples of 1.2
    seconds of a full link.
    """
    return spec.sample_every or max(1, round(1.2 * rate / FRAME / SHADOW))


def red_slopes(min_bytes: int, max_bytes: int, max_p_q32: int) -> tuple[int, int]:
    """How much RED's probability grows with each byte of the average, in 1/2^48: from min_th to max_th, and
    from there to twice max_th. 0 where there is no byte between.
    """
    between = max_bytes - min_bytes
    slope = (max_p_q32 << 16) // between if between > 0 else 0
    return slope, ((1 << 32) - max_p_q32 << 16) // max_bytes if max_bytes > 0 else 0


def queue_target(spec: QueueLawSpec, limit: int, rate: int) -> int:
    """Q_t: the queue length at which the fair share stays, bytes. AFCD's is its target of the delay."""
    if spec.kind is QueueLawKind.AFCD:
        return max(FRAME, delay_times(spec, limit, rate).target_us * rate // 1_000_000)
    return max(1, limit * spec.target_ppm // 1_000_000)

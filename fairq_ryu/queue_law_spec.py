"""Queue laws, which judge each packet that is about to enter the queue of a port: what a controller asks for.

Like a window law, a queue law is an object of the window channel: it has parameters, and does nothing until a
rule of a port refers to it. Lengths are relative to the port's buffer, and times may be left to the agent
(0), which works them out of the buffer and the rate of the port. Each kind is a class in its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Protocol

from fairq_ryu.law_spec import FRAME, Parameters, parameter

SHADOW = 2000
"""Samples in the shadow buffer of laws with a fair share."""


class Variant(IntEnum):
    """A law as in the paper, as in the code of its authors, or ours (``FQ_VARIANT_...``). Ours knows what
    flows have sent in the last seconds: AFQ allows small ones 1.25 fair shares, and AFCD is this and a CoDel
    whose drops fall on large ones.
    """

    PAPER = 1
    AUTHORS = 2
    OURS = 3


class Limits(IntEnum):
    """What a law acts on now: nothing; the queue is longer than its threshold; the mean of the queue is above
    the least threshold; the queueing delay has been above its target for too long; two flows or more have
    samples, and the fair share is known; a flow has not responded.
    """

    NOTHING = 0
    LENGTH = 1
    MEAN = 2
    DELAY = 3
    SHARE = 4
    UNRESPONSIVE = 5


class DelayTimes(NamedTuple):
    """Target and interval of the queueing delay, microseconds."""

    target_us: int
    interval_us: int


@dataclass(frozen=True, slots=True)
class QueueLawSpec(Parameters):
    """The common part of all queue laws. Times in microseconds, ``..._ppm`` in millionths, of the buffer if
    they are lengths.

    A kind says by its class what it needs: ``has_share``, it counts flows and knows a fair share;
    ``has_delay``, it aims at a queueing delay; ``keeps_flows``, it has a flow table, ``keeps_bins``, it has
    bins, beside the state of the port.
    """

    has_share: ClassVar[bool] = False
    has_delay: ClassVar[bool] = False
    keeps_flows: ClassVar[bool] = False
    keeps_bins: ClassVar[bool] = False

    ecn: int = parameter(0, "I", 0, 1, "1: packets that are ECN-capable are marked in place of being dropped")

    @property
    def unit(self) -> int:
        """In which the state of the law counts: with another, it begins anew."""
        return 0

    @property
    def shown_variant(self) -> int:
        """The :class:`Variant`, for reports; 0: the law has none."""
        return 0

    def acting_on(self, state: Any, own: Any, limit: int) -> Limits:
        """What the law acts on now; ``state`` as in the maps (``fq_queue_law_state``), ``own`` the law's part
        of it (``struct NAME_state``; None: it has none), ``limit`` the port's buffer, bytes.
        """
        return Limits.NOTHING

    def delay_times(self, limit: int, rate: int) -> DelayTimes:
        """Target and interval that are in force on a port; 0: the law has none."""
        return DelayTimes(0, 0)

    def queue_target(self, limit: int, rate: int) -> int:
        """The queue length that the law aims at, bytes; 0: none."""
        return 0

    def sampling(self, rate: int) -> int:
        """Which packet the law samples, one in so many; 0: none."""
        return 0


# What kinds share


class Delay(Protocol):
    """A kind that aims at a queueing delay."""

    @property
    def target_us(self) -> int: ...

    @property
    def interval_us(self) -> int: ...

    @property
    def base_rtt_us(self) -> int: ...


MOST_TARGET_US, MOST_INTERVAL_US, MOST_RTT_US = 10_000_000, 60_000_000, 10_000_000


def target_us() -> Any:
    """The parameter of :class:`Delay`."""
    return parameter(
        0, "I", 0, MOST_TARGET_US, "queueing delay that the law aims at; 0: worked out, microseconds"
    )


def interval_us() -> Any:
    """The parameter of :class:`Delay`."""
    return parameter(
        0, "I", 0, MOST_INTERVAL_US, "for how long the delay must be above it; 0: worked out, microseconds"
    )


def base_rtt_us() -> Any:
    """The parameter of :class:`Delay`."""
    return parameter(1000, "I", 0, MOST_RTT_US, "round-trip time with empty queues, microseconds")


def delay_times(law: Delay, limit: int, rate: int) -> DelayTimes:
    """Target and interval that are in force on a port with this buffer (bytes) and rate (bytes/s, not 0).

    The interval is two round trips with a full buffer: 100 ms and a target of 5 ms, made for paths of 120 ms,
    would never act where the whole buffer is 5 ms. The target is a twentieth of it, and at least one and a
    half packets; a given target has an interval of twenty times as long, as CoDel's own. The interval is at
    least 10 ms. Both are within the bounds of the parameters.
    """
    drain_us = limit * 1_000_000 // rate
    interval = law.interval_us or max(10_000, 20 * law.target_us or 2 * (law.base_rtt_us + drain_us))
    target = law.target_us or max(interval // 20, 3 * FRAME * 1_000_000 // (2 * rate))
    return DelayTimes(min(target, MOST_TARGET_US), min(interval, MOST_INTERVAL_US))


@dataclass(frozen=True, slots=True)
class SharingLaw(QueueLawSpec):
    """The common part of laws with a fair share. ``update_us``: tau_q of 1/160 s is that of AFD (Pan et al.);
    the switch updates sooner where it would overshoot.
    """

    has_share: ClassVar[bool] = True
    keeps_flows: ClassVar[bool] = True

    update_us: int = parameter(
        6250, "I", 100, 1_000_000, "tau_q, longest time between two updates of the fair share, microseconds"
    )
    sample_every: int = parameter(
        0, "H", 0, 10_000, "one packet of so many enters the shadow buffer; 0: worked out"
    )
    variant: int = parameter(
        Variant.OURS, "H", min(Variant), max(Variant), "1 as the paper, 2 as its authors' code, 3 ours"
    )

    @property
    def unit(self) -> int:
        """The shadow buffer."""
        return SHADOW

    @property
    def shown_variant(self) -> int:
        """It has one."""
        return self.variant

    def sampling(self, rate: int) -> int:
        """Which packet enters the shadow buffer at this rate (bytes/s), so that the buffer has the samples of
        1.2 seconds of a full link.
        """
        return self.sample_every or max(1, round(1.2 * rate / FRAME / SHADOW))

    def own(self, limit: int, rate: int) -> Mapping[str, int | Mapping[str, int]]:
        """``struct fq_sharing``, within that of the law."""
        return {
            "sharing": {
                "update_ns": self.update_us * 1000,
                "target_bytes": min(0xFFFFFFFF, self.queue_target(limit, rate)),
                "shadow_packets": SHADOW,
                "sample_every": self.sampling(rate),
                "variant": self.variant,
            }
        }

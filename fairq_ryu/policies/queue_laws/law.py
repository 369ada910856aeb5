"""What the queue laws have in common, and marking by a threshold (``laws/queue_law.h``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum

from fairq_ryu.queue_law_spec import QueueLawFlags, Variant, red_slopes

NS_PER_S = 1_000_000_000
FULL_FRAME = 1514
Q32_ONE = 1 << 32


class Verdict(IntEnum):
    """What a law decides about a packet (``FQ_PASS``, ``FQ_DROP``, ``FQ_MARK``)."""

    PASS = 0
    DROP = 1
    MARK = 2


@dataclass(frozen=True, slots=True)
class QueueLawParameters:
    """``fq_queue_law`` of ``queue_law_layout.h``. Sizes in bytes, times in ns, ``rate`` in bytes/s."""

    kind: int
    rate: int
    limit_bytes: int = 125_000
    target_ns: int = 5_000_000
    interval_ns: int = 100_000_000
    update_ns: int = 6_250_000
    target_bytes: int = 25_000
    mark_bytes: int = 30_280
    min_bytes: int = 10_416
    max_bytes: int = 31_250
    max_p_q32: int = 429_496_730
    shadow_packets: int = 2000
    sample_every: int = 10
    fair_q16: int = 0
    bin_packets: int = 20
    bin_most: int = 25
    seed: int = 0
    table: int = 0
    variant: int = Variant.PAPER
    flags: int = 0
    weight_shift: int = 9
    slope_q48: int = field(init=False)
    steep_q48: int = field(init=False)

    def __post_init__(self) -> None:
        """Divide once, as the agent does."""
        slope, steep = red_slopes(self.min_bytes, self.max_bytes, self.max_p_q32)
        object.__setattr__(self, "slope_q48", slope)
        object.__setattr__(self, "steep_q48", steep)


@dataclass(frozen=True, slots=True)
class Packet:
    """``fq_queue_law_input``: a packet that arrives, what it finds, and the random number that it gets.

    ``backlog`` bytes in the queue, ``low`` their least since the last packet; ``len`` bytes; ``random`` of 32
    bits; ``ect`` whether it is ECN-capable; ``segments`` that it is on the wire.
    """

    now_ns: int
    backlog: int
    low: int
    len: int
    hash: int
    random: int
    ect: bool = False
    segments: int = 1

    @property
    def segment_bytes(self) -> int:
        """The length of a segment."""
        return self.len // self.segments


@dataclass(slots=True)
class Counts:
    """``fq_queue_law_counts``."""

    judged: int = 0
    dropped: int = 0
    dropped_bytes: int = 0
    marked: int = 0
    not_ect: int = 0
    unmarked: int = 0
    sampled: int = 0
    updates: int = 0


class QueueLaw(ABC):
    """One law on one port; its fields, and those of the laws derived from it, are those of
    ``fq_queue_law_state``.
    """

    def __init__(self, parameters: QueueLawParameters) -> None:
        self.parameters = parameters
        self.counts = Counts()
        self.last_ns = self.backlog = 0

    def judge(self, packet: Packet) -> Verdict:
        """Decide about a packet that is about to enter the queue."""
        counts = self.counts
        self.backlog = packet.backlog
        verdict = self._judge(packet)
        counts.judged += packet.segments
        counts.not_ect += 0 if packet.ect else packet.segments
        if verdict == Verdict.DROP:
            counts.dropped += packet.segments
            counts.dropped_bytes += packet.len
        counts.marked += packet.segments if verdict == Verdict.MARK else 0
        self.last_ns = packet.now_ns
        return verdict

    @abstractmethod
    def _judge(self, packet: Packet) -> Verdict:
        """What the law decides."""

    def _signal(self, packet: Packet) -> Verdict:
        """A packet is to be dropped, or marked in place of that."""
        if not self.parameters.flags & QueueLawFlags.ECN:
            return Verdict.DROP
        if packet.ect:
            return Verdict.MARK
        self.counts.unmarked += packet.segments
        return Verdict.DROP


class Mark(QueueLaw):
    """DCTCP's marking: ECN-capable packets that find more than K bytes, with their own up to the middle one
    of their segments; others pass.
    """

    def _judge(self, packet: Packet) -> Verdict:
        middle = (packet.len + packet.segment_bytes) // 2
        if packet.backlog + middle <= self.parameters.mark_bytes:
            return Verdict.PASS
        if packet.ect:
            return Verdict.MARK
        self.counts.unmarked += packet.segments
        return Verdict.PASS


def queueing_delay(parameters: QueueLawParameters, backlog: int) -> int:
    """For how long a packet waits that finds this backlog (bytes), ns."""
    return divided(backlog * NS_PER_S, parameters.rate)


def divided(a: int, b: int) -> int:
    """The quotient, rounded down; 0 if ``b`` is 0, as eBPF divides."""
    return a // b if b else 0

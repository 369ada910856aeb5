"""RED, "gentle" (``laws/queue_red.h``). Probabilities are in 1 / 2^32."""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.law import (
    FULL_FRAME,
    NS_PER_S,
    Q32_ONE,
    Packet,
    QueueLaw,
    QueueLawParameters,
    Verdict,
    queueing_delay,
)
from fairq_ryu.queue_law_spec import QueueLawFlags

IDLE_BITS = 24
MOST_IDLE = 100 * NS_PER_S
MOST_LEN = 1 << 20
MOST_SINCE = (1 << 32) - 1


class Red(QueueLaw):
    """Random early detection."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.average = self.left_bytes = self.since = self.draw_q32 = 0

    def _judge(self, packet: Packet) -> Verdict:
        p = self.parameters
        self._update(packet)
        self.draw_q32 = self.draw_q32 or packet.random
        average = self.average >> p.weight_shift
        if average < p.min_bytes:
            self.since = 0
            return Verdict.PASS
        self.since = max(self.since, 1)
        if average >= p.max_bytes * (1 if p.flags & QueueLawFlags.ABRUPT else 2):
            self.since = 1
            return Verdict.DROP
        probability = self._probability(average)
        if p.flags & QueueLawFlags.BYTES:
            probability = probability * min(packet.segment_bytes, MOST_LEN) // FULL_FRAME
        probability = min(probability, Q32_ONE - 1)
        last = min(self.since + packet.segments - 1, MOST_SINCE)
        if not self.draw_q32 or probability * last < self.draw_q32:
            self.since = min(last + 1, MOST_SINCE)
            return Verdict.PASS
        self.since, self.draw_q32 = 1, 0
        return self._signal(packet) if average < p.max_bytes else Verdict.DROP

    def _update(self, packet: Packet) -> None:
        p = self.parameters
        idle = 0
        if not packet.backlog and self.average:
            drained_ns = self.last_ns + queueing_delay(p, self.left_bytes)
            idle = min(max(packet.now_ns - drained_ns, 0), MOST_IDLE)
        if idle:
            passed = p.rate // 1000 * idle // 1_000_000 // FULL_FRAME
            self.average = left(self.average, passed, p.weight_shift)
        elif packet.segments == 1:
            self.average += packet.backlog - (self.average >> p.weight_shift)
        else:
            found = packet.backlog + (packet.len - packet.segment_bytes) // 2 << p.weight_shift
            distance = left(abs(self.average - found), packet.segments, p.weight_shift)
            self.average = found + (distance if self.average > found else -distance)
        self.left_bytes = packet.backlog + packet.len

    def _probability(self, average: int) -> int:
        p = self.parameters
        if average < p.max_bytes:
            return (average - p.min_bytes) * p.slope_q48 >> 16
        return p.max_p_q32 + ((average - p.max_bytes) * p.steep_q48 >> 16)


def left(distance: int, packets: int, weight_shift: int) -> int:
    """What is left of a distance between average and queue after so many packets."""
    factor = Q32_ONE - (Q32_ONE >> weight_shift)
    if packets >> IDLE_BITS:
        return 0
    while packets:
        if packets & 1:
            distance = distance * factor >> 32
        factor = factor * factor >> 32
        packets >>= 1
    return distance

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
    divided,
    queueing_delay,
)
from fairq_ryu.queue_law_spec import QueueLawFlags

IDLE_BITS = 24
MOST_IDLE = 100 * NS_PER_S
MOST_LEN = 1 << 20


class Red(QueueLaw):
    """Random early detection."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.average = self.drained_ns = self.since = 0

    def _judge(self, packet: Packet) -> Verdict:
        p = self.parameters
        self._update(packet)
        average = self.average >> p.weight_shift
        if average < p.min_bytes:
            self.since = 0
            return Verdict.PASS
        if average >= 2 * p.max_bytes:
            self.since = 1
            return Verdict.DROP
        probability = self._probability(average)
        if p.flags & QueueLawFlags.BYTES:
            probability = probability * min(packet.len, MOST_LEN) // FULL_FRAME
        probability = min(probability, Q32_ONE - 1)
        spread = probability * self.since
        self.since += 1
        if spread < Q32_ONE and (probability << 32) // (Q32_ONE - spread) <= packet.random:
            return Verdict.PASS
        self.since = 1
        return self._signal(packet) if average < p.max_bytes else Verdict.DROP

    def _update(self, packet: Packet) -> None:
        p = self.parameters
        idle = min(max(packet.now_ns - self.drained_ns, 0), MOST_IDLE)
        if not packet.backlog and self.last_ns and idle:
            passed = p.rate // 1000 * idle // 1_000_000 // FULL_FRAME
            self.average = after_idle(self.average, passed, p.weight_shift)
        else:
            self.average += packet.backlog - (self.average >> p.weight_shift)
        self.drained_ns = packet.now_ns + queueing_delay(p, packet.backlog + packet.len)

    def _probability(self, average: int) -> int:
        p = self.parameters
        if average < p.max_bytes:
            return divided(p.max_p_q32 * (average - p.min_bytes), p.max_bytes - p.min_bytes)
        part = divided((average - p.max_bytes) << 32, p.max_bytes)
        return p.max_p_q32 + (part * (Q32_ONE - p.max_p_q32) >> 32)


def after_idle(average: int, packets: int, weight_shift: int) -> int:
    """The average after the queue was empty for the time of so many packets."""
    factor = Q32_ONE - (Q32_ONE >> weight_shift)
    if packets >> IDLE_BITS:
        return 0
    while packets:
        if packets & 1:
            average = average * factor >> 32
        factor = factor * factor >> 32
        packets >>= 1
    return average

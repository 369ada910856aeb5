"""Which flow has which share of the queue, and which share is fair (``laws/queue_flows.h``)."""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.law import (
    FULL_FRAME,
    NS_PER_S,
    Packet,
    QueueLaw,
    QueueLawParameters,
    divided,
)
from fairq_ryu.queue_law_spec import QueueLawFlags

SLOTS, SHADOW = 2048, 2000
GAIN_OLD, GAIN_NEW, LEAST_PART = 17, 18, 8


class FlowShares(QueueLaw):
    """The flow table, the shadow buffer and the fair share, of AFQ and AFCD."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.update_at_ns = self.fair_q16 = self.old_bytes = 0
        self.flows = self.filled = self.next = self.skipped = 0
        self.samples = [0] * SLOTS
        self.shadow = [0] * SHADOW
        self._size = min(max(parameters.shadow_packets, 1), SHADOW)

    def _sample(self, slot: int) -> None:
        """Enter every s-th packet in the shadow buffer and the flow table."""
        self.skipped += 1
        if self.skipped < self.parameters.sample_every:
            return
        self.skipped = 0
        place = self.next if self.next < self._size else 0
        old = self.shadow[place]
        if not old:
            self.filled += 1
        elif self.samples[old - 1]:
            self.samples[old - 1] -= 1
            self.flows -= not self.samples[old - 1] and self.flows > 0
        self.shadow[place] = slot + 1
        self.flows += not self.samples[slot]
        self.samples[slot] += 1
        self.next = place + 1
        self.counts.sampled += 1

    def _follow(self, packet: Packet, by_queue: bool) -> None:
        """Enter a packet, and work out the fair share if it is due; ``by_queue``: with Eq. 1 and not only Eq.
        4, from which it begins when the ring is full.
        """
        p, filling = self.parameters, self._is_filling()
        given = bool(p.flags & QueueLawFlags.FAIR_GIVEN)
        self._sample(packet.hash % SLOTS)
        flows = max(self.flows, 1)
        if given and p.fair_q16:
            self.fair_q16 = p.fair_q16
            return
        if not by_queue or given or filling or not self.fair_q16:
            self.fair_q16 = (self.filled << 16) // flows
        else:
            if packet.now_ns < self.update_at_ns:
                return
            self.fair_q16 = next_fair_share(
                self.fair_q16, self.old_bytes, packet.backlog, p.target_bytes, self._size, flows
            )
            self.counts.updates += 1
        self.old_bytes = packet.backlog
        self.update_at_ns = packet.now_ns + self._step_ns()

    def _step_ns(self) -> int:
        """tau: shorter than asked for where Eq. 1 would swing."""
        p = self.parameters
        step = divided((self.fair_q16 >> 8) * 10 * FULL_FRAME * NS_PER_S, (2 * GAIN_OLD << 8) * p.rate)
        return min(p.update_ns, step)

    def _has_share(self, samples: int) -> bool:
        """Whether a flow with so many samples can be judged by its share."""
        return samples > 0 and self.flows > 1 and self.fair_q16 > 0 and not self._is_filling()

    def _is_filling(self) -> bool:
        return self.filled < self._size


def next_fair_share(
    fair_q16: int, old_bytes: int, backlog: int, target_bytes: int, size: int, flows: int
) -> int:
    """The fair share after one update (Eq. 1), in samples << 16; ``old_bytes`` the queue at the last one,
    ``size`` the samples in the shadow buffer. For controllers that compute it, too.
    """
    up = GAIN_OLD * old_bytes + GAIN_NEW * target_bytes
    down = GAIN_OLD * target_bytes + GAIN_NEW * backlog
    moved = (abs(up - down) << 16) // (10 * FULL_FRAME)
    fair = fair_q16 + moved if up >= down else max(fair_q16 - moved, 0)
    return min(max(fair, (size << 16) // (LEAST_PART * max(flows, 1))), size << 16)

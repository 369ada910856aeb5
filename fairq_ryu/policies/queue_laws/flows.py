"""Which flow has which share of the queue, and which share is fair (``laws/queue_flows.h``).

The flows and samples that are counted here are those of the switch; a controller that works the share out
(:mod:`fairq_ryu.policies.parts.fair_share`) reads them from the agent's reports.
"""

from __future__ import annotations

from fairq_ryu.policies.parts import fair_share_steps as steps
from fairq_ryu.policies.queue_laws.law import Packet, QueueLaw, QueueLawParameters
from fairq_ryu.queue_law_spec import QueueLawFlags

SLOTS, SHADOW = 2048, 2000
MOST_SAMPLES = 8


class FlowShares(QueueLaw):
    """The flow table, the shadow buffer and the fair share, of AFQ and AFCD."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.update_at_ns = self.fair_q16 = self.old_bytes = 0
        self.flows = self.filled = self.next = self.skipped = 0
        self.samples = [0] * SLOTS
        self.shadow = [0] * SHADOW
        self._size = min(max(parameters.shadow_packets, 1), SHADOW)

    def _sample(self, packet: Packet) -> int:
        """Enter every s-th segment in the shadow buffer and the flow table. Returns the number of those of
        this packet.
        """
        samples, self.skipped = divmod(self.skipped + packet.segments, max(self.parameters.sample_every, 1))
        samples = min(samples, MOST_SAMPLES)
        for _ in range(samples):
            self._enter_sample(packet.hash % SLOTS)
        return samples

    def _enter_sample(self, slot: int) -> None:
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

    def _follow(self, packet: Packet, by_queue: bool) -> int:
        """Enter a packet, and work out the fair share if it is due; ``by_queue``: with Eq. 1 and not only Eq.
        4, from which it begins when the ring is full. Returns the number of its segments that were sampled.
        """
        p, filling = self.parameters, self._is_filling()
        given = bool(p.flags & QueueLawFlags.FAIR_GIVEN)
        sampled = self._sample(packet)
        if given and p.fair_q16:
            self.fair_q16 = p.fair_q16
            return sampled
        if not by_queue or given or filling or not self.fair_q16:
            self.fair_q16 = steps.share_of_samples(self.filled, self.flows)
        else:
            if packet.now_ns < self.update_at_ns:
                return sampled
            moved = self.fair_q16 + steps.move(self.old_bytes, packet.backlog, p.target_bytes)
            self.fair_q16 = steps.bounded(moved, self._size, self.flows)
            self.counts.updates += 1
        self.old_bytes = packet.backlog
        self.update_at_ns = packet.now_ns + steps.step_ns(self.fair_q16, p.rate, p.update_ns)
        return sampled

    def _has_share(self, samples: int) -> bool:
        """Whether a flow with so many samples can be judged by its share."""
        return samples > 0 and self.flows > 1 and self.fair_q16 > 0 and not self._is_filling()

    def _is_filling(self) -> bool:
        return self.filled < self._size

"""AFQ: a flow above the fair share loses what it has more than that (``laws/queue_afq.h``)."""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.flows import SLOTS, FlowShares
from fairq_ryu.policies.queue_laws.law import FULL_FRAME, Packet, Verdict
from fairq_ryu.queue_law_spec import Variant

AUTHORS_PART, AUTHORS_ABOVE = 1000, 12


class Afq(FlowShares):
    """Approximate fairness by differential dropping."""

    def _judge(self, packet: Packet) -> Verdict:
        self._follow(packet, by_queue=True)
        drop = self._share_drops(packet, self.samples[packet.hash % SLOTS])
        return self._signal(packet) if drop else Verdict.PASS

    def _share_drops(self, packet: Packet, samples: int) -> bool:
        """Whether a packet of a flow with so many samples is dropped for its share (Eq. 2)."""
        authors = self.parameters.variant == Variant.AUTHORS
        if not self._has_share(samples) or (not authors and packet.backlog <= FULL_FRAME):
            return False
        drop_q32 = probability_q16(self.fair_q16, samples) << 16
        if authors:
            if (samples << 16) * 10 <= self.fair_q16 * AUTHORS_ABOVE:
                return False
            drop_q32 //= AUTHORS_PART
        return packet.random < drop_q32


def probability_q16(fair_q16: int, samples: int) -> int:
    """D_i in 1 / 2^16, of a flow with so many samples, above 0."""
    return max((1 << 16) - fair_q16 // samples, 0)

"""AFQ: a flow above the fair share loses what it has more than that (``laws/queue_afq.h``)."""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.flows import SLOTS, FlowShares
from fairq_ryu.policies.queue_laws.law import FULL_FRAME, Packet, QueueLawParameters, Verdict
from fairq_ryu.policies.queue_laws.recent import Recent, enter
from fairq_ryu.queue_law_spec import Variant

AUTHORS_PART, AUTHORS_ABOVE = 1000, 12
SMALL_ABOVE = 5


class Afq(FlowShares):
    """Approximate fairness by differential dropping."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.recent: dict[int, Recent] = {}
        """``fq_recent`` of each slot that was used; of the variant ours."""
        self.mean = Recent()

    def _judge(self, packet: Packet) -> Verdict:
        sampled = self._follow(packet, by_queue=True)
        samples = self.samples[packet.hash % SLOTS]
        if self.parameters.variant == Variant.OURS:
            return self._signal_and_enter(packet, sampled, self._ours_drops(packet, samples))
        return self._signal(packet) if self._share_drops(packet, samples) else Verdict.PASS

    def _flow(self, packet: Packet) -> Recent:
        return self.recent.setdefault(packet.hash % SLOTS, Recent())

    def _is_small(self, packet: Packet) -> bool:
        """Whether the flow has sent less in the last seconds than the mean over packets of their flows."""
        return self._flow(packet).q16(packet.now_ns) < self.mean.q16(packet.now_ns)

    def _ours_drops(self, packet: Packet, samples: int) -> bool:
        """Whether a packet is dropped for the share of its flow; a small one may have 1.25 fair shares."""
        near = (samples << 16) * 4 < self.fair_q16 * SMALL_ABOVE
        return self._share_drops(packet, samples) and not (near and self._is_small(packet))

    def _signal_and_enter(self, packet: Packet, sampled: int, drop: bool) -> Verdict:
        """Drop or mark a packet, or let it pass; if it stays, its samples count as sent by its flow."""
        verdict = self._signal(packet) if drop else Verdict.PASS
        if verdict != Verdict.DROP and sampled:
            enter(self._flow(packet), self.mean, packet.now_ns, sampled)
        return verdict

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

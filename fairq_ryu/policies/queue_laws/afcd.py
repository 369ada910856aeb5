"""AFCD: CoDel by the shares of flows (``laws/queue_afcd.h`` describes the variants)."""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.afq import Afq
from fairq_ryu.policies.queue_laws.codel import CoDelState, drops_of_port, is_below
from fairq_ryu.policies.queue_laws.flows import SLOTS
from fairq_ryu.policies.queue_laws.law import Packet, QueueLawParameters, Verdict
from fairq_ryu.queue_law_spec import Variant

LEAST_RATIO, MOST_RATIO = 64, 1024
AUTHORS_FACTOR = AUTHORS_PART = 10


class Afcd(Afq):
    """Approximated-fair and controlled-delay queuing."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.codel = CoDelState()
        self.slots: dict[int, CoDelState] = {}
        """``first_above_ns`` of each slot that was used; not of the variant ours."""

    def target(self, samples: int) -> int:
        """The target of a flow with so many samples (Eq. 6), ns."""
        p = self.parameters
        if not samples or self.flows <= 1 or not self.fair_q16:
            return p.target_ns
        ratio = min(max((self.fair_q16 >> 8) // samples, LEAST_RATIO), MOST_RATIO)
        if p.variant == Variant.AUTHORS:
            return AUTHORS_FACTOR * ((p.target_ns * ratio * ratio >> 16) * ratio * ratio >> 16)
        return p.target_ns * ratio * ratio * ratio >> 24

    def _judge(self, packet: Packet) -> Verdict:
        p, now, slot = self.parameters, packet.now_ns, packet.hash % SLOTS
        authors = p.variant == Variant.AUTHORS
        sampled = self._follow(packet, by_queue=not authors)
        samples = self.samples[slot]
        if p.variant == Variant.OURS:
            return self._ours(packet, sampled, samples)
        flow = self.slots.setdefault(slot, CoDelState())
        below = is_below(p, packet, self.target(samples))
        due = flow.is_due(below, now, p.interval_ns // AUTHORS_PART if authors else p.interval_ns)
        if authors and samples << 16 < self.fair_q16:
            due = False
        drop = self.codel.drops(due, below, now, p.interval_ns)
        return self._signal(packet) if drop else Verdict.PASS

    def _ours(self, packet: Packet, sampled: int, samples: int) -> Verdict:
        spared = self._may_wait(packet.now_ns) and self._is_small(packet)
        drop = drops_of_port(self.codel, self.parameters, packet, spared)
        return self._signal_and_enter(packet, sampled, drop or self._ours_drops(packet, samples))

    def _may_wait(self, now_ns: int) -> bool:
        """Whether a drop that is due may still wait for a packet of a larger flow: at most an interval."""
        due_ns = self.codel.drop_next_ns if self.codel.dropping else self.codel.first_above_ns
        return due_ns <= now_ns < due_ns + self.parameters.interval_ns

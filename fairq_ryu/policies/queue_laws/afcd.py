"""AFCD: CoDel with a target for each flow, by its share (``laws/queue_afcd.h`` describes the variants)."""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.afq import Afq
from fairq_ryu.policies.queue_laws.codel import CoDelState, is_below
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
        """CoDel of each slot that was used: of variants paper and authors ``first_above_ns`` only."""

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
        authors, ours = p.variant == Variant.AUTHORS, p.variant == Variant.OURS
        flow = self.slots.setdefault(slot, CoDelState())
        self._follow(packet, by_queue=not authors)
        samples = self.samples[slot]
        below = is_below(p, packet, self.target(samples))
        due = flow.is_due(below, now, p.interval_ns // AUTHORS_PART if authors else p.interval_ns)
        if authors and samples << 16 < self.fair_q16:
            due = False
        drop = (flow if ours else self.codel).drops(due, below, now, p.interval_ns)
        drop = drop or (ours and self._share_drops(packet, samples))
        return self._signal(packet) if drop else Verdict.PASS

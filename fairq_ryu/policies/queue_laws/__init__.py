"""The queue laws in Python: the twins of ``agent/bpf/laws/queue_*.h``.

Same integers, same order, no floating point: for the same packets both decide the same and have the same
state, bit for bit, and a test drives both with random traces. The twins are the reference for readers and for
models of a network; the C code decides in the switch.
"""

from __future__ import annotations

from fairq_ryu.policies.queue_laws.afcd import Afcd
from fairq_ryu.policies.queue_laws.afq import Afq
from fairq_ryu.policies.queue_laws.codel import CoDel
from fairq_ryu.policies.queue_laws.law import Mark, Packet, QueueLaw, QueueLawParameters, Verdict
from fairq_ryu.policies.queue_laws.red import Red
from fairq_ryu.policies.queue_laws.sfb import Sfb
from fairq_ryu.queue_law_spec import QueueLawKind

__all__ = [
    "LAWS",
    "Afcd",
    "Afq",
    "CoDel",
    "Mark",
    "Packet",
    "QueueLaw",
    "QueueLawParameters",
    "Red",
    "Sfb",
    "Verdict",
    "make_law",
]

LAWS: dict[QueueLawKind, type[QueueLaw]] = {
    QueueLawKind.AFQ: Afq,
    QueueLawKind.AFCD: Afcd,
    QueueLawKind.RED: Red,
    QueueLawKind.CODEL: CoDel,
    QueueLawKind.SFB: Sfb,
    QueueLawKind.MARK: Mark,
}


def make_law(parameters: QueueLawParameters) -> QueueLaw:
    """A law of the kind that the parameters name, in its first state."""
    return LAWS[QueueLawKind(parameters.kind)](parameters)

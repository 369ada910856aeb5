"""Queue laws, which judge each packet that is about to enter the queue of a port: kinds, variants and flags.

Their numbers are those of the wire and of the eBPF maps (``queue_law_layout.h``).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class QueueLawKind(IntEnum):
    """The laws (``FQ_QLAW_...``)."""

    AFQ = 1
    AFCD = 2
    RED = 3
    CODEL = 4
    SFB = 5
    MARK = 6


class Variant(IntEnum):
    """AFQ and AFCD as in the paper, as in the code of its authors, or (AFCD) ours: CoDel for each flow and
    the drop probability of AFQ (``FQ_VARIANT_...``).
    """

    PAPER = 1
    AUTHORS = 2
    OURS = 3


class QueueLawFlags(IntFlag):
    """``ECN``: packets that are ECN-capable are marked where others are dropped (kind ``MARK`` always marks).
    ``FAIR_GIVEN``: the controller computes the fair share of AFQ and AFCD. ``BYTES``: RED drops long packets
    with a higher probability.
    """

    ECN = 1
    FAIR_GIVEN = 2
    BYTES = 4


FLOW_TABLE_KINDS = frozenset({QueueLawKind.AFQ, QueueLawKind.AFCD, QueueLawKind.SFB})
"""The laws that need a flow table, or bins, beside the state of the port."""

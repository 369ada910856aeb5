"""Buffers copies of answers that arrive before the copy of their SYN.

The two sides of a connection are usually behind different switches, and the copies of each switch arrive on a
connection of their own. So a SYN-ACK may be handled before the SYN that it answers, and so may later segments
of the same side. Segments that may be such answers are stored for a short time and handled again after the
SYN. The buffer is bounded by time and number.
"""

from __future__ import annotations

from collections import OrderedDict

from fairq_ryu.fabric.flows.connection import CopiedSegment, answers
from fairq_ryu.model import FlowKey, TcpSegment

# The maximum difference in delay between two copies, seconds.
_LIFETIME = 0.5
# The maximum number of directions. A port scan, or a SYN flood with forged source addresses, produces an
# unlimited number of answers without a known SYN.
_CAPACITY = 1024
# The maximum number of segments of one direction: SYN-ACK, FIN and RST, and a repetition of one of them.
_MAX_PER_DIRECTION = 4


class ReorderBuffer:
    """Segments that arrived too early, by their direction."""

    def __init__(self) -> None:
        self._kept: OrderedDict[FlowKey, tuple[float, list[CopiedSegment]]] = OrderedDict()

    def keep(self, arrival: CopiedSegment, now: float) -> None:
        """Store a segment of no known connection, if it answers a SYN or follows a stored answer."""
        segment = arrival.segment
        kept = self._kept.get(segment.key)
        if kept is not None and now - kept[0] <= _LIFETIME:
            if len(kept[1]) < _MAX_PER_DIRECTION:
                kept[1].append(arrival)
        elif is_answer(segment):
            self._kept.pop(segment.key, None)  # the newest direction is the last one
            if len(self._kept) >= _CAPACITY:
                self._kept.popitem(last=False)
            self._kept[segment.key] = now, [arrival]

    def take(self, syn: TcpSegment, now: float) -> list[CopiedSegment]:
        """Remove and return the stored answer to this SYN and the segments after it."""
        if not self._kept:
            return []
        since, kept = self._kept.pop(syn.key.reversed, (now, []))
        if now - since > _LIFETIME:
            return []
        for place, arrival in enumerate(kept):
            if is_answer(arrival.segment) and answers(arrival.segment, syn.seq, syn.payload):
                return kept[place:]
        return []

    def expire(self, now: float) -> None:
        """Remove segments whose time limit has passed."""
        for flow in [flow for flow, (since, _) in self._kept.items() if now - since > _LIFETIME]:
            del self._kept[flow]


def is_answer(segment: TcpSegment) -> bool:
    """Whether it answers a SYN: a SYN-ACK, or the reset of a closed port (RFC 9293, section 3.10.7.1)."""
    return segment.ack and (segment.syn or (segment.rst and segment.seq == 0))

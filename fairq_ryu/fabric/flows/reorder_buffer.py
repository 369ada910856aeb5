"""Answers whose question has not come yet.

The two sides of a connection are mostly behind different switches, and each switch's copies come by a
connection of their own: a SYN-ACK may be handled before the SYN that it answers, and so may what follows
it from the same side. What may be such an answer is kept for a moment, and read again after the SYN.
"""

from __future__ import annotations

from fairq_ryu.fabric.flows.connection import Arrival, answers
from fairq_ryu.model import FlowKey, TcpSegment

# A copy is not overtaken by more than this, seconds.
_LIFETIME = 0.5
# Somebody who scans, or whose address a flood of SYNs borrows, gets answers to nothing without end.
_CAPACITY = 1024
# SYN-ACK, FIN and RST, and one of them again.
_MOST_OF_ONE = 4


class EarlyAnswers:
    """What came too early, by the direction that sent it."""

    def __init__(self) -> None:
        self._kept: dict[FlowKey, tuple[float, list[Arrival]]] = {}

    def keep(self, arrival: Arrival, now: float) -> None:
        """Keep a segment that belongs to nothing, if it answers a SYN or follows one that does."""
        segment = arrival.segment
        kept = self._kept.get(segment.key)
        if kept is not None and now - kept[0] <= _LIFETIME:
            if len(kept[1]) < _MOST_OF_ONE:
                kept[1].append(arrival)
        elif is_answer(segment):
            self._kept.pop(segment.key, None)  # the newest is to be last
            if len(self._kept) >= _CAPACITY:
                del self._kept[next(iter(self._kept))]
            self._kept[segment.key] = now, [arrival]

    def take(self, syn: TcpSegment, now: float) -> list[Arrival]:
        """What has answered this SYN already, and what followed that; it is kept no longer."""
        if not self._kept:
            return []
        since, kept = self._kept.pop(syn.key.reversed, (now, []))
        if now - since > _LIFETIME:
            return []
        for place, arrival in enumerate(kept):
            if is_answer(arrival.segment) and answers(arrival.segment, syn.seq):
                return kept[place:]
        return []

    def expire(self, now: float) -> None:
        """Forget what nobody has asked for."""
        for flow in [flow for flow, (since, _) in self._kept.items() if now - since > _LIFETIME]:
            del self._kept[flow]


def is_answer(segment: TcpSegment) -> bool:
    """Does it answer a SYN: SYN-ACK, or the reset of a closed port (RFC 9293 section 3.10.7.1)?"""
    return segment.ack and (segment.syn or (segment.rst and segment.seq == 0))

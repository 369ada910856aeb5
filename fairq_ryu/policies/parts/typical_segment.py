"""Segment size and window step of a port's flows: those of most of them, because an odd one must not set
the measure.
"""

from __future__ import annotations

from collections import Counter

from fairq_ryu.model import FlowInfo

DEFAULT_SEGMENT = 1460


class Shapes:
    """Of one port, counted. Bytes."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int]] = Counter()

    def started(self, flow: FlowInfo) -> None:
        """A flow has started."""
        self.counts[flow.mss, flow.step] += 1

    def ended(self, flow: FlowInfo) -> None:
        """A flow has ended."""
        self.counts[flow.mss, flow.step] -= 1
        self.counts = +self.counts  # those of no flow go

    def typical(self) -> tuple[int, int]:
        """Segment size and window step that most flows have; the larger of two that are as frequent."""
        if not self.counts:
            return DEFAULT_SEGMENT, 1
        shape, _ = max(self.counts.items(), key=lambda item: (item[1], item[0]))
        return shape

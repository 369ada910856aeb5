"""The segment size and window step that most flows of a port have, so that one unusual flow does not
determine the windows of all.
"""

from __future__ import annotations

from collections import Counter

from fairq_ryu.model import FlowInfo

DEFAULT_SEGMENT = 1460


class TypicalSegment:
    """The pairs (segment size, window step) of one port's flows, counted. Bytes."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int]] = Counter()

    def started(self, flow: FlowInfo) -> None:
        """A flow has started."""
        self.counts[flow.mss, flow.step] += 1

    def ended(self, flow: FlowInfo) -> None:
        """A flow has ended."""
        self.counts[flow.mss, flow.step] -= 1
        self.counts = +self.counts  # drop the pairs that no flow has

    def typical(self) -> tuple[int, int]:
        """Segment size and window step of most flows; the larger of two equally frequent pairs."""
        if not self.counts:
            return DEFAULT_SEGMENT, 1
        pair, _ = max(self.counts.items(), key=lambda item: (item[1], item[0]))
        return pair

"""The segment size that most flows of a port have, so that one unusual flow does not decide for all."""

from __future__ import annotations

from collections import Counter

from fairq_ryu.model import FlowInfo

DEFAULT_SEGMENT = 1460


class TypicalSegment:
    """The segment sizes of one port's flows, counted. Bytes."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def started(self, flow: FlowInfo) -> None:
        """A flow has started."""
        self.counts[flow.mss] += 1

    def ended(self, flow: FlowInfo) -> None:
        """A flow has ended."""
        self.counts[flow.mss] -= 1
        self.counts = +self.counts  # drop the sizes that no flow has

    def typical(self) -> int:
        """The segment size of most flows; the larger of two equally frequent ones."""
        if not self.counts:
            return DEFAULT_SEGMENT
        size, _ = max(self.counts.items(), key=lambda item: (item[1], item[0]))
        return size

"""The order of queued SYNs: earliest deadline first, fair between ports. Pure; times in seconds of one clock.

A SYN whose flow has an announced deadline is ordered by it, the earliest first (EDF, as in SED's GIF table).
Other SYNs are due some time after they came, later with each SYN that the same port has queued already: so
ports take turns, and a port that floods delays itself.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from typing import Generic, TypeVar

from fairq_ryu.model import PortKey

T = TypeVar("T")

# Seconds. A SYN without a deadline is due this long after it came, plus the second value for each SYN that is
# queued for the same port already.
DEFAULT_DEADLINE = 0.2
PER_QUEUED = 0.01


class SynQueue(Generic[T]):
    """``T`` is what the caller keeps for a SYN."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PortKey, T]] = []
        self._queued_by: Counter[PortKey] = Counter()
        self._numbers = itertools.count()  # of SYNs that are due at the same time, the first to come is first

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, syn: T, port: PortKey, deadline: float | None, now: float) -> None:
        """Queue a SYN that came in by ``port``; ``deadline``: of its flow, if it starts now; None: it has
        none.
        """
        due = (
            deadline if deadline is not None else now + DEFAULT_DEADLINE + PER_QUEUED * self._queued_by[port]
        )
        heapq.heappush(self._heap, (due, next(self._numbers), port, syn))
        self._queued_by[port] += 1

    def take(self) -> T:
        """Remove and return the next SYN. Raises IndexError if the queue is empty."""
        _, _, port, syn = heapq.heappop(self._heap)
        self._queued_by[port] -= 1
        if not self._queued_by[port]:
            del self._queued_by[port]
        return syn

"""SYNs that wait for their turn: which is next. Pure; times in seconds of one clock.

A SYN whose flow has an announced deadline waits by that, the earliest first (EDF, as SED's GIF table). Others
are due a while after they came, later with each that waits from the same port already: so ports take turns,
and a port that floods waits for itself.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from typing import Generic, TypeVar

from fairq_ryu.model import PortKey

T = TypeVar("T")

# A SYN without a deadline goes before those whose deadline is further away than this; and each that waits
# from the same port already puts it off by so much more. Seconds.
PATIENCE = 0.2
TURN = 0.01


class SynQueue(Generic[T]):
    """What waits. ``T`` is whatever belongs to a SYN."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PortKey, T]] = []
        self._waiting: Counter[PortKey] = Counter()
        self._numbers = itertools.count()  # of those that are due together, the first to come is the first

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, syn: T, port: PortKey, deadline: float | None, now: float) -> None:
        """One has come by ``port``; ``deadline``: of its flow, if it starts now (None: it has none)."""
        due = deadline if deadline is not None else now + PATIENCE + TURN * self._waiting[port]
        heapq.heappush(self._heap, (due, next(self._numbers), port, syn))
        self._waiting[port] += 1

    def take(self) -> T:
        """The one whose turn it is. IndexError if none waits."""
        _, _, port, syn = heapq.heappop(self._heap)
        self._waiting[port] -= 1
        if not self._waiting[port]:
            del self._waiting[port]
        return syn

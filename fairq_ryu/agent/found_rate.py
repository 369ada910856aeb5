"""The rate of a line that neither the configuration nor the link says: found from what arrives. Pure.

While something stands in the queue before a line, data arrives at the rate of the line. Until that has been
seen, the rate is not known, and no window is lowered. Losses elsewhere, and senders that take their time, can
look like it: a rate that was found too low is raised again, by steps that double.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.far_queue import LEAST_RATE

_TRY = 0.03
"""A line that was found may have become faster: by this part more is tried, by twice as much each time that
it went well."""
_MOST_TRY = 1.0
"""... and at most by that."""
_PASSED = 2
"""While nothing has stood, arrivals at more than so many times the rate show that it is wrong."""
_PASSED_LOOKS = 4
"""... if so many looks in a row see them, a second apart: one may see a burst that was delayed."""
_TRY_AFTER_S = 10.0
"""... after so long at nearly the whole rate, with hardly anything in the queue."""
_REST_S = 60.0
"""... and so long after a rate that was too high."""
_DIFFERS = 0.02
"""A rate that differs by less is the same."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What has been seen since the line has this rate, bytes per second. ``served``: the highest rate of
    arrivals while the hidden queue stood (0: it never did); ``peak``: the highest of the last seconds;
    ``lost``: segments that the hidden queue has lost since the last look; ``at_most``: the virtual queue
    drains at nearly the whole rate, and is used.
    """

    served: int
    peak: int
    lost: int
    at_most: bool


class FoundRate:
    """The rate of one line. ``rate`` in bytes per second; 0: not known yet."""

    def __init__(self) -> None:
        self.rate = 0
        self._at_most_since: float | None = None
        self._rests_until = 0.0
        self._step = _TRY
        self._tried = 0.0
        self._passed = 0

    def look(self, seen: Seen, now: float) -> bool:
        """Work out the rate, about once a second; ``now`` in seconds. Returns whether it has changed."""
        before, self.rate = self.rate, self._judge(seen, now)
        if self.rate != before:
            self._at_most_since, self._passed = None, 0
        return self.rate != before

    def _judge(self, seen: Seen, now: float) -> int:
        if not self.rate:
            # A burst that ends before an interval does loses segments nevertheless. A trickle shows no line.
            rate = seen.served or (seen.peak if seen.lost else 0)
            return rate if rate >= LEAST_RATE else 0
        if seen.served > self.rate * (1 + _DIFFERS):
            self._step, self._tried = _TRY, 0.0
            return seen.served
        if LEAST_RATE <= seen.served < self.rate * (1 - _DIFFERS) and not self._is_of_others(seen):
            self._rests_until = now + _REST_S
            self._step, self._tried = _TRY, 0.0
            return seen.served
        self._passed = self._passed + 1 if not seen.served and seen.peak > _PASSED * self.rate else 0
        if self._passed >= _PASSED_LOOKS:
            return seen.peak // _PASSED
        if not seen.at_most:
            self._at_most_since = None
        elif self._at_most_since is None:
            self._at_most_since = now
        elif now - self._at_most_since >= _TRY_AFTER_S and now >= self._rests_until:
            self._tried, self._step = self._step, min(2 * self._step, _MOST_TRY)
            return int(self.rate * (1 + self._tried))
        return self.rate

    def _is_of_others(self, seen: Seen) -> bool:
        """Whether the queue stood because of others. What they leave is no rate of the line: that has served
        nearly as much a moment ago.
        """
        return seen.served < self.rate / (1 + max(_TRY, self._tried)) * (1 - 2 * _DIFFERS)

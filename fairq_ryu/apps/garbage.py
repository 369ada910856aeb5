"""Python's garbage collector in a controller: it must not stop the event loop.

Memory is freed when the last reference goes; the collector only finds objects that refer to each other. A
full collection looks at every object of the process, and meanwhile no window is worked out and no lease
renewed. Python makes one whenever there are a quarter more objects, many times while agents report what they
know. Here young objects are collected as before, and everything only once in :data:`INTERVAL`.

Python counts the objects that are made less those that are freed. Where as many connections end as begin,
that number hardly grows, and the objects of seconds are collected at once: 20 ms and more. So the young ones
are also collected every :data:`YOUNG_INTERVAL`. Under load that takes milliseconds, 5 to 9 % of all time, and
finds nothing, because the objects of connections form no cycles. Then only one collection of fifty is made;
instead of the others, what is young is put aside until the next full collection. Requests of the REST
interface leave some garbage, so the collections just after a request are made. A long request may leave some
that is put aside.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

# Objects more since the last collection of the youngest, and these collections before one of the next
# generation. The third number is for full collections.
_YOUNG, _MIDDLE, _NEVER = 2000, 10, 1_000_000_000
# A collection that takes less, seconds, is made each time. After another that finds nothing, this many are
# left out. After a REST request, so many are made.
_CHEAP, _LEFT_OUT, _AFTER_REQUEST = 0.0005, 49, 5
INTERVAL = 3600.0
"""Seconds between two full collections."""
YOUNG_INTERVAL = 0.02
"""Seconds between two calls of :meth:`Young.collect`."""


def configure() -> None:
    """Leave full collections to :func:`collect`."""
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)


class Young:
    """Collections of young objects. ``requests``: how many REST requests were answered so far; ``clock`` in
    seconds.
    """

    def __init__(
        self, requests: Callable[[], int] = lambda: 0, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._requests, self._clock = requests, clock
        self._answered = 0
        self._skipped = 0  # collections that are still to be left out
        self._made = 0  # those that are to be made in any case

    def collect(self) -> None:
        """Collect what is young, unless that took long and found nothing lately. Both young generations at
        once: to look at everything a second time, some collections later, takes ten times as long as one.
        """
        answered = self._requests()
        if answered != self._answered:
            self._answered, self._skipped, self._made = answered, 0, _AFTER_REQUEST
        if self._skipped:
            self._skipped -= 1
            gc.freeze()
            return
        began = self._clock()
        found = gc.collect(1)
        self._made = max(0, self._made - 1)
        if not found and not self._made and self._clock() - began > _CHEAP:
            self._skipped = _LEFT_OUT


def collect() -> None:
    """A full collection, also of what was put aside."""
    gc.unfreeze()
    gc.collect()

"""Unexpected exceptions in the greenlets of the controller: none ends what must go on, and none is silent."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOG = logging.getLogger(__name__)
RECENT = 60.0
"""For so long a fault is reported as the state of the controller, seconds."""
# The same kind of fault is logged so often at most, seconds.
_LOG_AGAIN = 60.0


class Faults:
    """``counts``: the exceptions of each part of the controller."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._clock = clock
        self._last: dict[str, float] = {}
        self._logged: dict[tuple[str, type[Exception]], float] = {}

    @contextmanager
    def noted(self, part: str) -> Iterator[None]:
        """After an exception of what is in here, go on behind it."""
        try:
            yield
        except Exception as error:
            self.add(part, error)

    def add(self, part: str, error: Exception) -> None:
        """Count an exception, and log it with its traceback, each kind once in a while."""
        now, kind = self._clock(), (part, type(error))
        self.counts[part] += 1
        self._last[part] = now
        if kind not in self._logged or now - self._logged[kind] >= _LOG_AGAIN:
            self._logged[kind] = now
            LOG.error("%s has failed (%d times so far), and goes on", part, self.counts[part], exc_info=error)

    def recent(self) -> list[str]:
        """The parts that have failed in the last :data:`RECENT` seconds."""
        now = self._clock()
        return sorted(part for part, at in self._last.items() if now - at < RECENT)

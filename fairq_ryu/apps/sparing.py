"""Lines in the log that a stranger can cause: so many a minute for each of them, and the others counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_WINDOW = 60.0
# Lines a minute for one peer, and for all together.
_MOST_OF_ONE = 5
_MOST_OF_ALL = 60


class SparingLog:
    """Warnings by peer. What is not said is counted, and the count is said when there is room again."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._began = float("-inf")
        self._said: dict[str, int] = {}
        self._all = 0
        self._unsaid = 0

    def say(self, peer: str, text: str) -> None:
        """Say it, or count it."""
        now = self._clock()
        if now - self._began >= _WINDOW:
            if self._unsaid:
                self._log.warning("%d more such lines were suppressed", self._unsaid)
            self._began, self._all, self._unsaid = now, 0, 0
            self._said.clear()
        said = self._said.get(peer, 0)
        if said >= _MOST_OF_ONE or self._all >= _MOST_OF_ALL:
            self._unsaid += 1
            return
        self._said[peer] = said + 1
        self._all += 1
        last = said + 1 == _MOST_OF_ONE
        self._log.warning(
            "%s%s", text, " (more lines about this address are suppressed for a minute)" if last else ""
        )

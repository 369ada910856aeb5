"""Lines in the log that a stranger can cause: so many a minute for each of them, and the others counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_WINDOW = 60.0
# Lines a minute for one peer, and for all together.
MOST_OF_ONE = 5
MOST_OF_ALL = 60


class SparingLog:
    """Warnings by peer. What is not said is counted, and the count is said when there is room again."""

    def __init__(
        self,
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
        of_one: int = MOST_OF_ONE,
        of_all: int = MOST_OF_ALL,
    ) -> None:
        self._log, self._clock = log, clock
        self._of_one, self._of_all = of_one, of_all
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
        if said >= self._of_one or self._all >= self._of_all:
            self._unsaid += 1
            return
        self._said[peer] = said + 1
        self._all += 1
        last = said + 1 == self._of_one
        self._log.warning("%s%s", text, " (more lines about it are suppressed for a minute)" if last else "")

"""Log lines that a remote peer can cause, limited per minute for each peer and in total."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_PERIOD = 60.0  # seconds
# Lines per period, for one peer and for all peers together.
MAX_LINES_PER_PEER = 5
MAX_LINES = 60


class RateLimitedLog:
    """Warnings by peer. Lines over the limit are counted; the count is logged in the next period."""

    def __init__(
        self,
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
        max_per_peer: int = MAX_LINES_PER_PEER,
        max_lines: int = MAX_LINES,
    ) -> None:
        self._log, self._clock = log, clock
        self._max_per_peer, self._max_lines = max_per_peer, max_lines
        self._period_start = float("-inf")
        self._lines_of: dict[str, int] = {}
        self._lines = 0
        self._suppressed = 0

    def warning(self, peer: str, text: str) -> None:
        """Log a line, or count it if the peer or all peers together are over the limit."""
        now = self._clock()
        if now - self._period_start >= _PERIOD:
            if self._suppressed:
                self._log.warning("%d more such lines were suppressed", self._suppressed)
            self._period_start, self._lines, self._suppressed = now, 0, 0
            self._lines_of.clear()
        lines = self._lines_of.get(peer, 0)
        if lines >= self._max_per_peer or self._lines >= self._max_lines:
            self._suppressed += 1
            return
        self._lines_of[peer] = lines + 1
        self._lines += 1
        last = lines + 1 == self._max_per_peer
        self._log.warning("%s%s", text, " (more lines about it are suppressed for a minute)" if last else "")

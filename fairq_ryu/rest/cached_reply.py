"""An answer that is made once for all who ask for it within a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fairq_ryu.ryu_compat.runtime import event

# An answer is shared by all who ask within so many seconds of its making.
KEEP = 0.05
# And for no more than so many after that, however long it takes to make.
MOST = 0.5


class CachedReply:
    """An answer that is made at most once in :data:`KEEP` seconds, however many ask for it.

    ``make`` may let other greenlets in; whoever asks meanwhile waits for the same answer.
    """

    def __init__(self, make: Callable[[], bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._body = b""
        self._until = float("-inf")
        self._making: Any = None

    def get(self) -> bytes:
        """The answer. Raises what ``make`` does."""
        if self._clock() < self._until:
            return self._body
        if self._making is not None:
            return bytes(self._making.wait())
        self._making = making = event.Event()
        started = self._clock()
        try:
            body = self._make()
        except BaseException as error:
            self._making = None
            making.send_exception(error)
            raise
        now = self._clock()
        # What takes long to make is made less often: no more than a tenth of the time goes into it, as long
        # as nobody gets what is too old for that.
        self._body, self._until = body, max(started + KEEP, now + min(10 * (now - started), MOST))
        self._making = None
        making.send(body)
        return body

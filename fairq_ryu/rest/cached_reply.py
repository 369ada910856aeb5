"""A reply that is made once for all clients that request it within a short time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fairq_ryu.ryu_compat.runtime import event

# Time for which a reply is shared, seconds.
KEEP = 0.05
# Maximum age of a reply that takes long to make, seconds.
MAX_AGE = 0.5


class CachedReply:
    """A reply that is made at most once in :data:`KEEP` seconds, however many clients request it.

    ``make`` may yield to other greenlets; requests meanwhile wait for the same reply.
    """

    def __init__(self, make: Callable[[], bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._body = b""
        self._until = float("-inf")
        self._making: Any = None

    def get(self) -> bytes:
        """The reply. Raises what ``make`` raises."""
        while self._clock() >= self._until and self._making is not None:
            body = self._making.wait()
            if body is not None:
                return bytes(body)
            # Who was making it has ended: one of those that wait makes it.
        if self._clock() < self._until:
            return self._body
        self._making = making = event.Event()
        started = self._clock()
        try:
            body = self._make()
        except Exception as error:
            self._making = None
            making.send_exception(error)
            raise
        except BaseException:  # its connection was closed, which concerns nobody else
            self._making = None
            making.send(None)
            raise
        now = self._clock()
        # A reply that takes long is made less often: at most a tenth of the time is spent on it, as
        # long as no reply gets older than MAX_AGE.
        self._body, self._until = body, max(started + KEEP, now + min(10 * (now - started), MAX_AGE))
        self._making = None
        making.send(body)
        return body

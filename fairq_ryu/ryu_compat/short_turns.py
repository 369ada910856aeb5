"""Turns of eventlet's loop that stay short: sockets get a part of each, and the rest of them the next.

In a turn the loop calls all timers that are due, and then serves all sockets that can be read. When a hundred
switches send at once, these are many milliseconds, in which no window is worked out and no lease renewed. So
sockets are served a few at a time, until they have had :data:`LEAST` seconds, or half of the time that the
timers have taken in this turn: neither keeps the other waiting for long. The kernel lists sockets that were
served behind the others, so each has its turn.
"""

from __future__ import annotations

import time
from typing import Any

from eventlet import hubs
from eventlet.hubs import epolls

SOCKETS = 8
"""Sockets that are served before the time is looked at."""
LEAST = 0.001
"""Seconds."""
_PART = 0.5


def limit(hub: Any) -> None:
    """Limit the turns of a loop. Only the loop with ``epoll``, eventlet's choice on Linux, can be limited."""
    if isinstance(hub, epolls.Hub):
        vars(hub).update(_Turns(hub).methods)


def register() -> None:
    """Limit the turns of the loop of this thread."""
    limit(hubs.get_hub())


class _Turns:
    """The methods of a loop that are replaced."""

    def __init__(self, hub: Any) -> None:
        self._hub, self._wait = hub, hub.wait
        self._ended = time.monotonic()
        self._listed = 0

    @property
    def methods(self) -> dict[str, Any]:
        return {"do_poll": self.do_poll, "wait": self.wait}

    def do_poll(self, seconds: float) -> Any:
        """The next few sockets that can be read or written."""
        found = self._hub.poll.poll(seconds, SOCKETS)
        self._listed = len(found)
        return found

    def wait(self, seconds: float | None = None) -> None:
        """Serve sockets; ``seconds``: how long to wait for one."""
        began = time.monotonic()
        until = began + max(LEAST, _PART * (began - self._ended))
        self._wait(seconds)
        while self._listed == SOCKETS and time.monotonic() < until:
            self._wait(0)
        self._ended = time.monotonic()

# mypy: allow-subclassing-any
"""The queue of an application's events, which lets other greenlets run between two of them.

Ryu handles all events that are queued, 128 at most, before any other greenlet runs. When a hundred agents
answer or send copies, these are several milliseconds, in which no window is worked out and no lease renewed.
"""

from __future__ import annotations

import time
from typing import Any

from ryu.lib import hub

_SLICE = 0.001


class SlicedQueue(hub.Queue):
    """Ryu's queue; others run after :data:`_SLICE` seconds of events. For one greenlet that takes them."""

    _until = 0.0

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """The next event; waits as Ryu's does."""
        if self.empty():
            found = super().get(*args, **kwargs)
            self._until = time.monotonic() + _SLICE
            return found
        if time.monotonic() >= self._until:
            hub.sleep(0)
            self._until = time.monotonic() + _SLICE
        return super().get(*args, **kwargs)

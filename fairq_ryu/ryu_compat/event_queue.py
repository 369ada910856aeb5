# mypy: allow-subclassing-any
"""The queue of an application's events, which lets other greenlets run between two of them.

Ryu handles all events that are queued, 128 at most, before any other greenlet runs. When a hundred agents
answer or send copies, these are several milliseconds, in which no window is worked out and no lease renewed.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from ryu.lib import hub

_SLICE = 0.0005


class SlicedQueue(hub.Queue):
    """Ryu's queue; others run after :data:`_SLICE` seconds of events. For one greenlet that takes them."""

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self._until = 0.0
        self._waiting: Counter[int] = Counter()  # events by the identity of their datapath

    def is_free(self, datapath: Any) -> bool:
        """Whether no event of a datapath waits."""
        return id(datapath) not in self._waiting

    def _put(self, item: Any) -> None:
        super()._put(item)
        self._waiting[_datapath_of(item)] += 1

    def _get(self) -> Any:
        item = super()._get()
        number = _datapath_of(item)
        self._waiting[number] -= 1
        if not self._waiting[number]:
            del self._waiting[number]
        return item

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


def _datapath_of(item: Any) -> int:
    """The identity of the datapath of an event in the queue, which keeps it alive."""
    event = item[0]
    message = getattr(event, "msg", event)
    return id(getattr(message, "datapath", None))

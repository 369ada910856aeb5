"""Python's garbage collector in a controller: it must not stop the event loop.

Memory is freed when the last reference goes; the collector only finds objects that refer to each other. A
full collection looks at every object of the process, and meanwhile no window is worked out and no lease
renewed. Python makes one whenever there are a quarter more objects, many times while agents report what they
know. Here young objects are collected as before, and everything only when the process has grown so much that
it may be garbage, or after a long time.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

# Objects more since the last collection of the youngest, and these collections before one of the next
# generation. The third number is for full collections.
_YOUNG, _MIDDLE, _NEVER = 2000, 10, 1_000_000_000
INTERVAL = 5.0
"""Seconds between two calls of :meth:`FullCollections.look`."""
LONGEST = 3600.0
"""Seconds between two full collections, at most."""
GROWTH, PART = 32 << 20, 0.25
"""Bytes that the process may grow before a full collection, or this part of its size if that is more."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")


def configure() -> None:
    """Leave full collections to :class:`FullCollections`. They leave out what there is now, most of it code:
    it stays as long as the process.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    gc.freeze()


def resident() -> int:
    """The memory of this process, bytes; 0: not known, because it may open no more files."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return 0


class FullCollections:
    """Makes them when they are due. The growth that causes one bounds garbage, whatever the load."""

    def __init__(
        self,
        memory: Callable[[], int] = resident,
        clock: Callable[[], float] = time.monotonic,
        collect: Callable[[], object] = gc.collect,
    ) -> None:
        """``memory`` in bytes, ``clock`` in seconds."""
        self._memory, self._clock, self._collect = memory, clock, collect
        self._at, self._size = clock(), memory()

    def look(self) -> None:
        """Make one if it is due."""
        now = self._clock()
        grown = self._memory() - self._size
        if grown >= max(GROWTH, PART * self._size) or now - self._at >= LONGEST:
            self._collect()
            # Memory that has become free may stay with the process, which uses it again.
            self._at, self._size = now, self._memory() or self._size

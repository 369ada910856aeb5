"""Python's garbage collector in a controller: it must not stop the event loop.

Memory is freed when the last reference goes; the collector only finds objects that refer to each other. A
full collection looks at every object of the process, and meanwhile no window is worked out and no lease
renewed. Python makes one whenever there are a quarter more objects, many times while agents report what they
know. Here young objects are collected as before, and everything only once in :data:`INTERVAL`.
"""

from __future__ import annotations

import gc

# Objects more since the last collection of the youngest, and these collections before one of the next
# generation. The third number is for full collections.
_YOUNG, _MIDDLE, _NEVER = 2000, 10, 1_000_000_000
INTERVAL = 3600.0
"""Seconds between two full collections."""


def configure() -> None:
    """Leave full collections to :func:`collect`."""
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)


def collect() -> None:
    """A full collection."""
    gc.collect()

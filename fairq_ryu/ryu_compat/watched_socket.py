"""Waiting for a socket again and again, while the event loop keeps watching it.

For each wait eventlet lets the loop watch the socket, and ends that afterwards: two calls of the kernel and
several objects, a third of what a short read costs in all.
"""

from __future__ import annotations

from typing import Any

from eventlet import hubs
from eventlet.support import greenlets


class WatchedSocket:
    """A socket that one greenlet reads. ``descriptor``: its file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._hub = hubs.get_hub()
        self._listener: Any = None
        self._waiter: Any = None
        self._error: BaseException | None = None

    @property
    def _is_watched(self) -> bool:
        """The loop may have given up the descriptor by itself."""
        known = self._hub.listeners[self._hub.READ].get(self._descriptor)
        return self._listener is not None and known is self._listener

    def wait(self) -> None:
        """Wait until there is something to read, or the peer has closed. Raises eventlet's ``IOClosed`` if
        the descriptor was given to another socket meanwhile.
        """
        if self._error is not None:
            raise self._error
        if not self._is_watched:
            add, kind = self._hub.add, self._hub.READ
            self._listener = add(kind, self._descriptor, self._readable, self._closed, None)
        self._waiter = greenlets.getcurrent()
        try:
            self._hub.switch()
        finally:
            self._waiter = None

    def end(self) -> None:
        """The loop does not watch the socket any more. To be called before it is closed."""
        if self._is_watched:
            self._hub.remove(self._listener)
        self._listener = None

    def _readable(self, _descriptor: int) -> None:
        if self._waiter is None:
            self.end()  # its greenlet is busy: the loop would be told in each turn
        else:
            self._waiter.switch()

    def _closed(self, error: BaseException) -> None:
        if self._waiter is None:
            self._error = error
        else:
            self._waiter.throw(error)

"""Accepting connections, also after a failure such as that there is no free file descriptor.

Ryu's own server, and eventlet's for the REST interface, end for good when ``accept`` fails once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from ryu.lib import hub

# Failures that are temporary.
_TEMPORARY = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ECONNABORTED,
    errno.EPROTO,
    errno.EINTR,
}
_RETRY = 0.1  # seconds


class Listening:
    """A socket that listens. ``accept`` tries again after a failure that is temporary; everything else is
    that of ``sock``. ``warn`` is called with the reason of each failure.
    """

    def __init__(self, sock: Any, warn: Callable[[str], None]) -> None:
        self._sock, self._warn = sock, warn

    def accept(self) -> Any:
        """The next connection, as ``socket.accept`` returns it. Raises OSError where trying again is no
        use.
        """
        while True:
            try:
                return self._sock.accept()
            except OSError as error:
                if error.errno not in _TEMPORARY:
                    raise
                self._warn(f"accept failed: {error.strerror}; will try again")
                hub.sleep(_RETRY)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

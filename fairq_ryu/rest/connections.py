"""The connections of the web server: so many, and so many bytes of replies that their clients have not read.

Beyond these bounds the connection is closed that has waited longest for its client, which asks for nothing
or does not read. A client that is well reads its reply within milliseconds, so it is never this one. Streams
stay: their number and their queues have bounds of their own (:mod:`~fairq_ryu.rest.streams`).
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any, NamedTuple

from fairq_ryu.ryu_compat.runtime import eventlet, hub

CONNECTIONS = 256
"""Maximum number of connections."""
UNREAD = 16 << 20
"""Maximum size of the replies that clients have not read yet, bytes, without the newest of them."""
SEND_BUFFER = 64 << 10
"""What the kernel may keep of a reply, bytes; it doubles the number for what it needs itself."""
_RESET = struct.pack("ii", 1, 0)  # struct linger: nothing of what is not sent yet is kept


class _Waiting(NamedTuple):
    sock: Any
    served: Any  # the greenlet
    size: int


class Connections(eventlet.GreenPool):
    """The greenlets of eventlet's server, one for each connection, by its socket."""

    def __init__(self, most: int = CONNECTIONS, most_unread: int = UNREAD) -> None:
        super().__init__(most)
        self._most_unread = most_unread
        self._open: dict[socket.socket, _Waiting] = {}  # without streams, the longest wait first
        self.unread = 0
        """Bytes of replies that clients have not read yet."""

    def spawn(self, function: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
        """Serve a new connection: its client's address, its socket, its state."""
        sock = connection[1]
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            # A reply of more than one write would wait for the client's delayed ACK, 40 ms.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.free() <= 0:
            self._close_oldest(sock)
        served = super().spawn(_serve, function, connection, *args, **kwargs)
        self._open[sock] = _Waiting(sock, served, 0)
        served.link(lambda _: self._forget(sock))
        return served

    def sends(self, sock: socket.socket, size: int | None) -> None:
        """A connection begins to wait for its client, until the next call about it: to read a reply of
        ``size`` bytes; 0: for a request; None: it is a stream.
        """
        found = self._forget(sock)
        if found is None or size is None:
            return
        self._open[sock] = found._replace(size=size)
        self.unread += size
        while self.unread > self._most_unread and self._close_oldest(sock, sending=True):
            pass

    def _forget(self, sock: socket.socket) -> _Waiting | None:
        found = self._open.pop(sock, None)
        if found is not None:
            self.unread -= found.size
        return found

    def _close_oldest(self, but: socket.socket, sending: bool = False) -> bool:
        """Close a connection; ``sending``: one whose client has not read a reply. False: there is none."""
        for sock, each in self._open.items():
            if sock is not but and (each.size or not sending):
                break
        else:
            return False
        self._forget(sock)
        with contextlib.suppress(OSError):
            if each.size:
                each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            each.sock.shutdown(socket.SHUT_RDWR)
        each.served.kill()  # it may wait for its turn, and holds a place until then
        return True


def _serve(function: Any, *args: Any, **kwargs: Any) -> None:
    """Serve a connection until it ends or is closed.

    A greenlet that an exception ends keeps its traceback, whose frames refer to the greenlet and to the
    reply: the reply would stay until a full garbage collection, and be counted by nobody.
    """
    with contextlib.suppress(hub.TaskExit):
        function(*args, **kwargs)

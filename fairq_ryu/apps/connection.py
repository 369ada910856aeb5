"""Connections to switches: what is to be sent goes out together, and what has come is taken together.

Ryu writes every message to the socket by itself, and reads each in two pieces, its header first. While many
flows begin there are dozens at a time, and a fifth of the controller's time goes into that. Here one write
takes all that waits, and one read all that has come.
"""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager as _first  # noqa: F401 (the controller module cannot be imported before it)
from ryu.controller import controller
from ryu.lib import hub

# With so many messages waiting, whoever has more to say must wait, too. With Ryu's 16 that happened in the
# midst of what belongs together, and another greenlet's newer rule could go out before an older one.
_MOST_WAITING = 4096
# Of what has come, so many bytes are read at once: Ryu copies the rest of them once for every message.
_READ_BYTES = 16384


class JoiningQueue(hub.Queue):
    """What Ryu keeps for a switch until it is sent, pairs of bytes and whether the connection ends with
    them: :meth:`get` takes all that is there, at least one, as one. ``room`` is released for each but the
    one that Ryu itself releases it for.
    """

    def __init__(self, maxsize: int, room: Any) -> None:
        super().__init__(maxsize)
        self._room = room

    def get(self, block: bool = True, timeout: float | None = None) -> tuple[bytes, bool]:
        """Raises ``hub.QueueEmpty`` if nothing is there and it shall not wait."""
        data, last = super().get(block, timeout)
        if last or self.empty():
            return data, last
        parts = [data]
        while not last and not self.empty():
            data, last = super().get(False)
            parts.append(data)
            self._room.release()
        return b"".join(parts), last


class ReadingAhead:
    """A socket that hands over more than it is asked for, if that is there: Ryu's loop takes any number."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def recv(self, _size: int) -> Any:
        """At least one byte, or none at the end."""
        return self._sock.recv(_READ_BYTES)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


_plain = controller.Datapath.__init__


def _together(self: Any, socket: Any, address: Any) -> None:
    _plain(self, ReadingAhead(socket), address)
    self._send_q_sem = hub.BoundedSemaphore(_MOST_WAITING)
    self.send_q = JoiningQueue(_MOST_WAITING, self._send_q_sem)


def register() -> None:
    """Have Ryu make such connections. Its class calls itself by its name, so another one cannot
    take its place.
    """
    controller.Datapath.__init__ = _together

"""Sends frames out of the interfaces of ports: the agent's own segments and those that it reinjects.

A frame passes tc egress and the queue of its port like those of the bridge. So the window program lowers the
window of an ACK that is sent here, too. Open vSwitch does not receive it: its sockets ignore outgoing frames.
"""

from __future__ import annotations

import contextlib
import socket
import struct

# Frames that wait in a queue count against the buffer of the socket; the default is about 90 of them.
_BUFFER = 4 << 20
_SO_SNDBUFFORCE = 32


class FrameSocket:
    """A packet socket. It receives nothing."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._mark = 0

    def open(self) -> None:
        """Open it now, because later there may be no file descriptor for it. Without one, :meth:`send` tries
        again.
        """
        with contextlib.suppress(OSError):
            self._socket = self._socket or _opened()

    def send(self, interface: str, frame: bytes, mark: int = 0) -> bool:
        """Send a frame, with a mark that eBPF programs can read. False: it was not sent, because the
        interface is gone or down, the frame is too long for it, or queue or socket are full.
        """
        try:
            if self._socket is None:
                self._socket = _opened()
            if mark != self._mark:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, struct.pack("=I", mark))
                self._mark = mark
            kind = int.from_bytes(frame[12:14], "big")
            self._socket.sendto(frame, (interface, kind))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the socket. A second call does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._mark = 0


def _opened() -> socket.socket:
    """Protocol 0: it gets no copy of any packet."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setblocking(False)
    with contextlib.suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
    return opened

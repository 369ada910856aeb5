"""What both ends of a connection between controller and agent or switch ask of TCP."""

from __future__ import annotations

import contextlib
import socket

_TCP_RTO_MAX_MS = 44  # linux/tcp.h, from 6.15 on; Python has no name for it
_MOST_MS = 1000  # the least that Linux accepts


def send_again_soon(sock: socket.socket) -> None:
    """Retransmission timeouts of this socket, and of those that it accepts, do not grow beyond a second. They
    double otherwise (RFC 6298, 5.5), and a link that was cut is found again only after as long again. Older
    kernels do not have it.
    """
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_RTO_MAX_MS, _MOST_MS)

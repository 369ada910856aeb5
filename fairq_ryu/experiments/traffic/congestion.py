"""The TCP congestion control of one socket."""

from __future__ import annotations

import socket

_NAME_BYTES = 16


def choose(sock: socket.socket, name: str) -> None:
    """Use the congestion control of this name in the kernel, also for connections that the socket accepts.
    ``RuntimeError`` when the kernel refuses it or uses another.
    """
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as error:
        raise RuntimeError(f"a socket cannot use the congestion control {name}: {error.strerror}") from None
    if (found := of(sock)) != name:
        raise RuntimeError(f"a socket uses the congestion control {found} and not {name}")


def of(sock: socket.socket) -> str:
    """The name of the congestion control that the socket uses now."""
    name: bytes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
    return name.split(b"\0")[0].decode()

"""The TCP sockets of a network namespace with what the kernel knows of each (TCP_INFO), over netlink
(sock_diag). Standard library only.

Not by pyroute2: for 85 sockets a question takes 0.5 ms here, and 3.5 ms there, without TCP_INFO.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from fairq_ryu.experiments.traffic.namespaces import entered

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, include/net/tcp_states.h
_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_INFO = 2
_HEAD = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_MESSAGE_BYTES = 72
_ID = struct.Struct("!HH")
"""Ports of a socket, behind the four bytes with which a message begins."""
_COOKIE_AT = 44
# SYN_SENT, ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING
_STATES = sum(1 << state for state in (2, 1, 4, 5, 8, 9, 11))
_QUESTION = _HEAD.pack(72, _BY_FAMILY, _REQUEST_DUMP, 1, 0) + struct.pack(
    "=BBBxI48x", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), _STATES
)
_BUFFER = 1 << 17


class Found(NamedTuple):
    """A socket."""

    cookie: bytes
    """no other socket of the kernel has it"""
    port: int
    peer_port: int
    info: bytes
    """TCP_INFO"""


class SocketList:
    """The IPv4 TCP sockets in the namespace of process ``where``, those that listen or wait excluded; None:
    the own one. To be closed; ``OSError`` when the kernel does not answer.
    """

    def __init__(self, where: int | Path | None) -> None:
        with entered(where):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.settimeout(2.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def read(self) -> Iterator[Found]:
        """All of them now."""
        self._socket.send(_QUESTION)
        while True:
            data = self._socket.recv(_BUFFER)
            at = 0
            while at < len(data):
                length, kind, _flags, _sequence, _port = _HEAD.unpack_from(data, at)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, at + _HEAD.size)[0], "sock_diag")
                body = at + _HEAD.size
                info = _info(data, body + _MESSAGE_BYTES, at + length)
                if info:
                    port, peer_port = _ID.unpack_from(data, body + 4)
                    yield Found(data[body + _COOKIE_AT : body + _COOKIE_AT + 8], port, peer_port, info)
                at += (length + 3) & ~3


def _info(data: bytes, at: int, end: int) -> bytes:
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if kind == _INFO:
            return data[at + _ATTRIBUTE.size : at + length]
        at += (max(length, _ATTRIBUTE.size) + 3) & ~3
    return b""

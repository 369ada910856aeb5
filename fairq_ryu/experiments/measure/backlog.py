"""The backlog of an interface's root qdisc, over netlink. Standard library only."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

# linux/rtnetlink.h, linux/netlink.h, linux/pkt_sched.h, linux/gen_stats.h
_GET_QDISC = 38
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_ROOT = 0xFFFFFFFF
_STATS2, _STATS_QUEUE = 7, 3
_HEAD = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=B3xiIII")
_ATTRIBUTE = struct.Struct("=HH")
# All qdiscs: a question for a single one would be told to the agent as if it had changed.
_QUESTION = _HEAD.pack(36, _GET_QDISC, _REQUEST_DUMP, 1, 0) + _TCMSG.pack(0, 0, 0, 0, 0)
_BUFFER = 1 << 17


class Backlog:
    """The queue of the interface ``name``. To be closed; ``OSError`` when there is no such interface."""

    def __init__(self, name: str) -> None:
        self._index = socket.if_nametoindex(name)
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
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

    def read(self) -> int:
        """Bytes that wait now; 0 without a root qdisc."""
        self._socket.send(_QUESTION)
        found = 0
        while True:
            data = self._socket.recv(_BUFFER)
            at = 0
            while at < len(data):
                length, kind, _flags, _sequence, _port = _HEAD.unpack_from(data, at)
                if kind == _DONE:
                    return found
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, at + _HEAD.size)[0], "RTM_GETQDISC")
                _family, index, _handle, parent, _info = _TCMSG.unpack_from(data, at + _HEAD.size)
                if index == self._index and parent == _ROOT:
                    found = _backlog(data, at + _HEAD.size + _TCMSG.size, at + length)
                at += (length + 3) & ~3


def _backlog(data: bytes, at: int, end: int) -> int:
    statistics = _attribute(data, at, end, _STATS2)
    queue = _attribute(statistics, 0, len(statistics), _STATS_QUEUE)
    if len(queue) < 8:
        return 0
    _packets, waiting = struct.unpack_from("=II", queue)
    return int(waiting)


def _attribute(data: bytes, at: int, end: int, wanted: int) -> bytes:
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if kind == wanted:
            return data[at + _ATTRIBUTE.size : at + length]
        at += (max(length, _ATTRIBUTE.size) + 3) & ~3
    return b""

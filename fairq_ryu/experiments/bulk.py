"""Elephants: long-lived bulk connections, and the sink that counts what arrives of each."""

from __future__ import annotations

import random
import selectors
import socket
import struct
import time

from fairq_ryu.experiments import tcpinfo
from fairq_ryu.experiments.control import Json, Loop, answer, listen

HEADER = struct.Struct("!I")  # an elephant says which one it is
CHUNK = 1 << 18  # bytes per read or write
# The sink wakes for this much, not for each segment: on a small machine the wake-ups would take the processor
# from the switch under test. A receive buffer always holds it.
READ_BYTES = 32768


class Sink:
    """Counts the bytes of every elephant. ``mark`` answers with the counts of this instant."""

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop = loop
        self._buffer = bytearray(CHUNK)
        self._bytes: dict[int, int] = {}
        self._socks: dict[int, socket.socket] = {}
        self._listener = listen(port)
        loop.add(self._listener, selectors.EVENT_READ, self._accept)
        answer("ready", port=self._listener.getsockname()[1])

    def command(self, order: Json) -> None:
        for index, sock in list(self._socks.items()):
            self._data(sock, index)  # what lies unread has arrived
        answer(order["cmd"], clock_ns=time.monotonic_ns(), bytes=self._bytes)

    def _accept(self, _events: int) -> None:
        sock, _peer = self._listener.accept()
        sock.setblocking(False)
        self._loop.add(sock, selectors.EVENT_READ, lambda _events: self._header(sock))

    def _header(self, sock: socket.socket) -> None:
        try:
            header = sock.recv(HEADER.size)
        except OSError:
            header = b""
        if len(header) < HEADER.size:  # four bytes never come in two segments: it ended before it began
            self._loop.drop(sock)
            return
        (index,) = HEADER.unpack(header)
        self._bytes[index] = 0
        self._socks[index] = sock
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)
        self._loop.change(sock, selectors.EVENT_READ, lambda _events: self._data(sock, index))

    def _data(self, sock: socket.socket, index: int) -> None:
        try:
            count = sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            del self._socks[index]
            self._loop.drop(sock)
            return
        self._bytes[index] += count


class Elephants:
    """Sends without end on the connections that ``start`` names. ``info`` answers with their counters."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._chunk = random.Random(0).randbytes(CHUNK)
        self._socks: dict[int, socket.socket] = {}
        answer("ready")

    def command(self, order: Json) -> None:
        if order["cmd"] == "start":
            for index in order["indices"]:
                self._start(index, order["address"], order["port"])
            answer("start")
        else:
            answer(order["cmd"], flows={i: tcpinfo.of(sock)._asdict() for i, sock in self._socks.items()})

    def _start(self, index: int, address: str, port: int) -> None:
        sock = socket.create_connection((address, port), timeout=20.0)
        sock.sendall(HEADER.pack(index))
        sock.setblocking(False)
        self._socks[index] = sock
        self._loop.add(sock, selectors.EVENT_WRITE, lambda _events: self._send(index, sock))

    def _send(self, index: int, sock: socket.socket) -> None:
        try:
            sock.send(self._chunk)
        except BlockingIOError:
            pass
        except OSError as error:
            raise RuntimeError(f"elephant {index}: {error.strerror}") from error

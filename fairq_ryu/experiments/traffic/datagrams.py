"""UDP flows at a constant rate: the end that sends them, whatever is lost, and the end that counts them."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from dataclasses import dataclass

from fairq_ryu.experiments.traffic import payload
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer

HEADER = struct.Struct("!IQ")
"""The number of the flow, and of the datagram in it."""
DATAGRAM_BYTES = 1472
"""Payload of a datagram: with its headers it is a frame of 1,514 bytes."""
_BODY = DATAGRAM_BYTES - HEADER.size
_TICK_S = 0.001
_MAX_BEHIND = 64  # datagrams; a sender that is later than this does not send the rest
_BUFFER_BYTES = 8 << 20
_REST_S = 0.005  # a wake-up for each datagram would take the processor from the switch under test
_SO_RCVBUFFORCE = 33
_CHUNK = 2048


def body(seed: int, number: int) -> bytes:
    """What the datagram of this number contains behind its header."""
    return bytes(payload.piece(seed, number * _BODY, _BODY))


@dataclass
class _Stream:
    """A flow at its source."""

    sock: socket.socket
    index: int
    seed: int
    per_s: float
    """datagrams each second"""
    began: float
    """when its time begins to count, monotonic clock, s; later by what was left out"""
    number: int = 0
    """of the next datagram, which is how many have been sent"""


class UdpSender:
    """Sends the flows that ``begin`` names, each at ``mbit`` Mbit/s of payload from ``at_ns`` of the
    monotonic clock. A datagram is due when the rate has reached its last byte, so a flow has never sent more
    than its rate times its time. Datagrams that are due in the same millisecond leave together. ``mark``
    answers with the bytes that each has sent; ``finish`` ends all and answers likewise.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._streams: dict[int, _Stream] = {}
        self._running = True
        answer("ready")

    def command(self, order: Json) -> None:
        match order["cmd"]:
            case "begin":
                for each in order["flows"]:
                    self._plan(each, order["seed"] + each["index"])
                answer("begin")
            case "finish":
                self._running = False
                self._answer("finish")
            case other:
                self._answer(other)

    def _answer(self, re: str) -> None:
        sent = {i: each.number * DATAGRAM_BYTES for i, each in self._streams.items()}
        answer(re, clock_ns=time.monotonic_ns(), bytes=sent)

    def _plan(self, order: Json, seed: int) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect((order["address"], order["port"]))
        per_s, began = order["mbit"] * 1e6 / 8 / DATAGRAM_BYTES, order["at_ns"] / 1e9
        stream = self._streams[order["index"]] = _Stream(sock, order["index"], seed, per_s, began)
        self._loop.call_at(began, lambda: self._send(stream))

    def _send(self, stream: _Stream) -> None:
        if not self._running:
            return
        now = time.monotonic()
        due = int((now - stream.began) * stream.per_s)
        late = due - stream.number - _MAX_BEHIND
        if late > 0:
            stream.began += late / stream.per_s
            due -= late
        try:
            while stream.number < due:
                head = HEADER.pack(stream.index, stream.number)
                stream.sock.send(head + body(stream.seed, stream.number))
                stream.number += 1
        except BlockingIOError:
            pass  # the rest is due in the next tick
        except OSError as error:
            raise RuntimeError(f"UDP flow {stream.index}: {error.strerror}") from error
        self._loop.call_at(now + _TICK_S, lambda: self._send(stream))


class DatagramSink:
    """Counts the datagrams of every flow, and compares their bytes with those that were sent. ``expect``
    names the ``seed``, ``mark`` answers with the bytes of each flow so far, and with the number of datagrams
    that differ from what was sent.
    """

    def __init__(self, loop: Loop, port: int) -> None:
        self._seed = 0
        self._bytes: dict[int, int] = {}
        self._altered = 0
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._sock.bind(("", port))
        self._sock.setblocking(False)
        loop.add(self._sock, selectors.EVENT_READ, self._readable)
        answer("ready", port=self._sock.getsockname()[1])

    def command(self, order: Json) -> None:
        if order["cmd"] == "expect":
            self._seed = order["seed"]
            answer("expect")
            return
        self._read()
        answer(order["cmd"], clock_ns=time.monotonic_ns(), bytes=self._bytes, altered=self._altered)

    def _readable(self, _events: int) -> None:
        self._read()
        time.sleep(_REST_S)

    def _read(self) -> None:
        """Take what has arrived: no more than the buffer holds, so that a fast sender cannot keep it here."""
        for _ in range(_BUFFER_BYTES // _CHUNK):
            try:
                data = self._sock.recv(_CHUNK)
            except BlockingIOError:
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        if len(data) != DATAGRAM_BYTES:
            self._altered += 1
            return
        index, number = HEADER.unpack_from(data)
        self._altered += data[HEADER.size :] != body(self._seed + index, number)
        self._bytes[index] = self._bytes.get(index, 0) + len(data)

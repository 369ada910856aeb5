"""Mice: a short request and response on a new connection each; the server, and the client that times them."""

from __future__ import annotations

import gc
import os
import selectors
import socket
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from fairq_ryu.experiments.measure import tcpinfo
from fairq_ryu.experiments.traffic.bulk import FIRST_READ_BYTES
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer, listen
from fairq_ryu.experiments.traffic.payload import pattern

REQUEST = struct.Struct("!III")  # id, bytes wanted, seed of the pattern
CHUNK = 1 << 18  # bytes per read
MAX_LOWAT_BYTES = 32768  # a receive buffer always holds this much
NOT_BEGUN = "not begun"


@dataclass
class _Serving:
    """One mouse, at the end that sends the data."""

    sock: socket.socket
    request: bytes = b""
    waits_for: int = selectors.EVENT_READ
    rest: memoryview = field(default_factory=lambda: memoryview(b""))


class Server:
    """Answers mice; ``report`` answers with the counters of those that ended since the last report."""

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop = loop
        self._ended: list[Json] = []
        self._open = 0
        self._listener = listen(port)
        # Wake for the request, not for the handshake before it, as web servers do.
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)
        loop.add(self._listener, selectors.EVENT_READ, self._accept)
        answer("ready", port=self._listener.getsockname()[1])

    def command(self, order: Json) -> None:
        ended, self._ended = self._ended, []
        answer(order["cmd"], mice=ended, open=self._open)

    def _accept(self, _events: int) -> None:
        while True:
            try:
                sock, _peer = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open += 1
            mouse = _Serving(sock)
            self._loop.add(sock, selectors.EVENT_READ, partial(self._serve, mouse))
            self._serve(mouse, selectors.EVENT_READ)  # often the request has arrived already

    def _serve(self, mouse: _Serving, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                data = mouse.sock.recv(4096)
                if not data:
                    self._end(mouse)
                    return
                mouse.request += data
                if len(mouse.request) == REQUEST.size:
                    _id, size, seed = REQUEST.unpack(mouse.request)
                    mouse.rest = pattern(seed, size)
            if mouse.rest:
                mouse.rest = mouse.rest[mouse.sock.send(mouse.rest) :]
        except BlockingIOError:
            pass
        except OSError:
            self._end(mouse)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if mouse.rest else 0)
        if wanted != mouse.waits_for:
            mouse.waits_for = wanted
            self._loop.change(mouse.sock, wanted, partial(self._serve, mouse))

    def _end(self, mouse: _Serving) -> None:
        """The client has closed, so every byte is acknowledged and the counters are final."""
        self._open -= 1
        if len(mouse.request) == REQUEST.size:
            info = tcpinfo.of(mouse.sock)._asdict()
            self._ended.append({"id": REQUEST.unpack(mouse.request)[0], **info})
        self._loop.drop(mouse.sock)


class _Mouse:
    """One mouse, at the end that requests; it measures its own completion time."""

    def __init__(self, loop: Loop, order: Json, done: Callable[[], None]) -> None:
        self._loop = loop
        self._done = done
        self.id: int = order["id"]
        self._size: int = order["size"]
        self._request = REQUEST.pack(self.id, self._size, order["seed"])
        self._seed: int = order["seed"]
        self._address: tuple[str, int] = (order["address"], order["port"])
        self._got = 0
        self._chunks: list[bytes] = []
        self._began = 0
        self._fct_ns: int | None = None
        self._error: str | None = None
        self._info: tcpinfo.TcpInfo | None = None
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sock.setblocking(False)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Wake for the last byte, not for every segment: the generator must not influence the measurement.
        self._await_rest()

    def _await_rest(self) -> None:
        """Wake when all missing bytes have arrived, or as many as every buffer holds. Of more than that, read
        small pieces: the receive buffer would not grow (bulk.py).
        """
        rest = self._size - self._got
        lowat = max(1, rest) if rest <= MAX_LOWAT_BYTES else FIRST_READ_BYTES
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, lowat)

    def begin(self) -> None:
        self._began = time.monotonic_ns()
        self._sock.connect_ex(self._address)
        self._loop.add(self._sock, selectors.EVENT_WRITE, self._connected)

    def _connected(self, _events: int) -> None:
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._close(os.strerror(code))
            return
        self._sock.send(self._request)
        self._loop.change(self._sock, selectors.EVENT_READ, self._data)

    def _data(self, _events: int) -> None:
        try:
            data = self._sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._close(error.strerror)
            return
        if not data:
            self._close(None if self._fct_ns is not None else f"closed after {self._got} bytes")
            return
        now = time.monotonic_ns()
        self._got += len(data)
        self._chunks.append(data)
        if self._got == self._size and self._fct_ns is None:
            self._fct_ns = now - self._began
            # The server closes in reply to this; then none of its segments is in flight, and the number of
            # received segments is final.
            self._sock.shutdown(socket.SHUT_WR)
        elif self._got > self._size:
            self._close("more data than asked for")
        else:
            self._await_rest()

    def give_up(self) -> None:
        """The time limit has passed: reset the connection. A mouse that only waited for the FIN counts."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._close(None if self._fct_ns is not None else "timeout")

    def _close(self, error: str | None) -> None:
        self._info = tcpinfo.of(self._sock)
        self._error = error
        if error is not None:
            self._fct_ns = None
        self._loop.drop(self._sock)
        self._done()

    def result(self, round_ns: int) -> Json:
        """``round_ns``: when its round began."""
        # Compared after the round, so that it does not influence the measurement. For an incomplete mouse,
        # the bytes that arrived are compared.
        expected = pattern(self._seed, self._size)[: self._got]
        intact = self._got <= self._size and zlib.crc32(b"".join(self._chunks)) == zlib.crc32(expected)
        if self._fct_ns is not None and not intact:
            self._fct_ns, self._error = None, "wrong data"
        info = self._info._asdict() if self._info else {}
        return {
            "id": self.id,
            "bytes": self._got,
            "fct_ns": self._fct_ns,
            "last_ns": None if self._fct_ns is None else self._began - round_ns + self._fct_ns,
            "error": self._error,
            "intact": intact,
            **info,
        }


class _Chain:
    """``requests`` mice one after the other, each on a new connection: the next one begins when the one
    before it has ended. Their ids and seeds count up from those of the order.
    """

    def __init__(self, loop: Loop, order: Json, done: Callable[[], None]) -> None:
        self._loop = loop
        self._order = order
        self._done = done
        self._begun: list[_Mouse] = []
        self._over = False

    def begin(self) -> None:
        """Begin the next request, if one is left."""
        number = len(self._begun)
        self._over = self._over or number == self._order["requests"]
        if self._over:
            self._done()
            return
        order = {
            **self._order,
            "id": self._order["id"] + number,
            "seed": (self._order["seed"] + number) % 2**32,
        }
        mouse = _Mouse(self._loop, order, self.begin)
        self._begun.append(mouse)
        mouse.begin()

    def give_up(self) -> None:
        """The time limit has passed: begin none any more."""
        if not self._over:
            self._over = True
            self._begun[-1].give_up()

    def results(self, round_ns: int) -> list[Json]:
        made = [mouse.result(round_ns) for mouse in self._begun]
        rest = range(self._order["id"] + len(made), self._order["id"] + self._order["requests"])
        nothing = {"bytes": 0, "fct_ns": None, "last_ns": None, "error": NOT_BEGUN, "intact": True}
        return made + [{"id": each, **nothing} for each in rest]


class Client:
    """``round`` opens all its mice at once and answers when all have ended, with all requests that follow
    them, or when ``timeout_s`` have passed.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._left = 0
        gc.disable()  # a collection during a volley would delay mice
        answer("ready")

    def command(self, order: Json) -> None:
        chains = [_Chain(self._loop, each, self._one_done) for each in order["mice"]]
        self._left = len(chains)
        began = time.monotonic_ns()
        deadline = time.monotonic() + order["timeout_s"]
        for chain in chains:
            chain.begin()
        while self._left and self._loop.running:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._loop.step(left)
        took = time.monotonic_ns() - began
        for chain in chains:
            chain.give_up()
        answer(
            order["cmd"],
            clock_ns=began,
            took_ns=took,
            mice=[result for chain in chains for result in chain.results(began)],
        )
        gc.collect()

    def _one_done(self) -> None:
        self._left -= 1

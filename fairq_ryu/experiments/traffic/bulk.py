"""Elephants: long-lived bulk connections, and the sink that counts their data and computes checksums."""

from __future__ import annotations

import selectors
import socket
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from fairq_ryu.experiments.measure import tcpinfo
from fairq_ryu.experiments.traffic import congestion, payload
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer, listen
from mininet_topos.patience import patient

HEADER = struct.Struct("!I")  # the number of the elephant
CHUNK = 1 << 18  # bytes per read
# The sink wakes for so many bytes, not for each segment: on a small machine the wake-ups would take the
# processor from the switch under test. While the receive buffer is small they are few: Linux lets it grow
# with what is read in a round trip, without what has arrived and is not yet read. With 32,768 bytes from the
# start, flows with a round trip of 120 ms stayed at that many in each, whatever the network could carry.
FIRST_READ_BYTES = 8192
READ_BYTES = 32768
LARGE_BUFFER = 16 * READ_BYTES


@dataclass
class _Arriving:
    """The data of one elephant that has arrived."""

    bytes: int = 0
    crc: int = 0
    sock: socket.socket | None = None
    """None once it has ended"""
    large: bool = False
    """the receive buffer has grown"""


class Sink:
    """Counts the bytes of every elephant. Command ``mark`` answers with the current counts, ``sums`` with the
    checksums too. ``listen`` opens another port, whose connections have the congestion control ``cc`` at this
    end, and ``controls`` answers with the congestion control of each connection that is open.
    """

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop = loop
        self._buffer = bytearray(CHUNK)
        self._view = memoryview(self._buffer)
        self._elephants: dict[int, _Arriving] = {}
        answer("ready", port=self._serve(listen(port)))

    def command(self, order: Json) -> None:
        if order["cmd"] == "listen":
            listener = listen(0)
            congestion.choose(listener, order["cc"])  # its connections inherit it
            answer("listen", port=self._serve(listener))
            return
        if order["cmd"] == "controls":
            there = {i: each.sock for i, each in self._elephants.items() if each.sock is not None}
            answer("controls", flows={i: congestion.of(sock) for i, sock in there.items()})
            return
        for each in self._elephants.values():
            if each.sock is not None:
                self._data(each.sock, each)  # unread data has arrived, too
        if order["cmd"] == "sums":
            answer("sums", flows={i: [each.bytes, each.crc] for i, each in self._elephants.items()})
            return
        counts = {i: each.bytes for i, each in self._elephants.items()}
        answer(order["cmd"], clock_ns=time.monotonic_ns(), bytes=counts)

    def _serve(self, listener: socket.socket) -> int:
        """Accept connections of this socket; returns its port."""
        self._loop.add(listener, selectors.EVENT_READ, lambda _events: self._accept(listener))
        port: int = listener.getsockname()[1]
        return port

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _peer = listener.accept()
        except OSError:  # it ended while it waited
            return
        sock.setblocking(False)
        self._loop.add(sock, selectors.EVENT_READ, lambda _events: self._header(sock))

    def _header(self, sock: socket.socket) -> None:
        try:
            header = sock.recv(HEADER.size)
        except OSError:
            header = b""
        if len(header) < HEADER.size:  # a header is always in one segment, so the flow ended before it
            self._loop.drop(sock)
            return
        (index,) = HEADER.unpack(header)
        elephant = self._elephants[index] = _Arriving(sock=sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, FIRST_READ_BYTES)
        self._loop.change(sock, selectors.EVENT_READ, lambda _events: self._data(sock, elephant))

    def _data(self, sock: socket.socket, elephant: _Arriving) -> None:
        try:
            count = sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            elephant.sock = None
            self._loop.drop(sock)
            return
        elephant.crc = zlib.crc32(self._view[:count], elephant.crc)
        elephant.bytes += count
        if not elephant.large and sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= LARGE_BUFFER:
            elephant.large = True
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)


@dataclass
class _Sending:
    """One elephant at its source. Its payload is that of ``seed``."""

    sock: socket.socket
    seed: int
    sent: int = 0
    open: bool = True


class Elephants:
    """Sends without end on the connections that ``start`` names. ``info`` answers with their counters,
    ``finish`` ends them and waits until everything has arrived, ``checksum`` answers with checksums of their
    first bytes.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._flows: dict[int, _Sending] = {}
        answer("ready")

    def command(self, order: Json) -> None:
        match order["cmd"]:
            case "start":
                for flow in order["flows"]:
                    self._start(flow["index"], flow["address"], flow["port"], order["seed"] + flow["index"])
                answer("start")
            case "finish":
                self._finish(order["timeout_s"])
                answer("finish", sent={i: each.sent for i, each in self._flows.items()})
            case "checksum":
                sums = {i: payload.checksum(self._flows[int(i)].seed, n) for i, n in order["bytes"].items()}
                answer("checksum", crc=sums)
            case _:
                flows = {i: tcpinfo.of(each.sock)._asdict() for i, each in self._flows.items()}
                answer(order["cmd"], flows=flows)

    def _start(self, index: int, address: str, port: int, seed: int) -> None:
        sock = socket.create_connection((address, port), timeout=patient(20.0))
        sock.sendall(HEADER.pack(index))
        sock.setblocking(False)
        flow = self._flows[index] = _Sending(sock, seed)
        self._loop.add(sock, selectors.EVENT_WRITE, self._sender(index, flow))

    def _sender(self, index: int, flow: _Sending) -> Callable[[int], None]:
        def send(_events: int) -> None:
            try:
                flow.sent += flow.sock.send(payload.piece(flow.seed, flow.sent))
            except BlockingIOError:
                pass
            except OSError as error:
                raise RuntimeError(f"elephant {index}: {error.strerror}") from error

        return send

    def _finish(self, timeout: float) -> None:
        """Send no more data; the sink closes the connection when it has received everything."""
        deadline = time.monotonic() + timeout
        for flow in self._flows.values():
            flow.sock.shutdown(socket.SHUT_WR)
            self._loop.change(flow.sock, selectors.EVENT_READ, self._ender(flow))
        while any(flow.open for flow in self._flows.values()) and self._loop.running:
            if (left := deadline - time.monotonic()) <= 0:
                break
            self._loop.step(left)

    def _ender(self, flow: _Sending) -> Callable[[int], None]:
        def ended(_events: int) -> None:
            flow.open = False
            self._loop.drop(flow.sock)

        return ended

"""The receiver of flows that start together: records the data of each flow and the time of its arrival."""

from __future__ import annotations

import gc
import selectors
import socket
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from fairq_ryu.experiments.traffic.bulk import FIRST_READ_BYTES, LARGE_BUFFER
from fairq_ryu.experiments.traffic.flow_sender import HEADER, MAX_LOWAT_BYTES, RESET, await_all
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer, listen

CHUNK = 1 << 18  # bytes per read
SERIES_NS = 1_000_000
"""Resolution with which the arrivals of an endless flow are recorded."""


@dataclass
class _Arriving:
    """One flow at its receiver."""

    sock: socket.socket
    id: int | None = None
    size: int = 0
    bytes: int = 0
    """of the payload"""
    crc: int = 0
    done_ns: int | None = None
    """when the last byte arrived; of an endless flow, when it ended"""
    series: list[tuple[int, int]] = field(default_factory=list)
    """of an endless flow: (time in ns, payload so far)"""
    open: bool = True


class Collector:
    """Receives flows. Command ``await`` answers when all its flows have arrived, or at ``until_ns``; then it
    removes them, and resets those that are not complete.
    """

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop = loop
        self._buffer = bytearray(CHUNK)
        self._view = memoryview(self._buffer)
        self._flows: dict[int, _Arriving] = {}
        self._listener = listen(port)
        gc.disable()
        loop.add(self._listener, selectors.EVENT_READ, self._accept)
        answer("ready", port=self._listener.getsockname()[1])

    def command(self, order: Json) -> None:
        ids: list[int] = order["ids"]
        await_all(self._loop, lambda: not all(self._complete(i) for i in ids), order["until_ns"] / 1e9)
        answer(order["cmd"], clock_ns=time.monotonic_ns(), flows=[self._take(i) for i in ids])
        gc.collect()

    def _complete(self, number: int) -> bool:
        flow = self._flows.get(number)
        return flow is not None and flow.done_ns is not None

    def _take(self, number: int) -> Json:
        flow = self._flows.pop(number, None)
        if flow is None:
            return {"id": number, "bytes": 0, "crc": 0, "done_ns": None, "series": []}
        if flow.open and flow.done_ns is None:
            flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._close(flow)
        return {
            "id": number, "bytes": flow.bytes, "crc": flow.crc, "done_ns": flow.done_ns,
            "series": flow.series,
        }  # fmt: skip

    def _accept(self, _events: int) -> None:
        while True:
            try:
                sock, _peer = self._listener.accept()
            except OSError:
                return
            sock.setblocking(False)
            flow = _Arriving(sock)
            self._loop.add(sock, selectors.EVENT_READ, self._reader(flow))
            self._data(flow)  # often data has arrived already

    def _reader(self, flow: _Arriving) -> Callable[[int], None]:
        return lambda _events: self._data(flow)

    def _data(self, flow: _Arriving) -> None:
        try:
            count = flow.sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            self._close(flow)
            return
        now = time.monotonic_ns()
        if count == 0:
            if flow.id is not None and not flow.size:
                flow.done_ns = now
            self._close(flow)
            return
        start = 0
        if flow.id is None:
            if count < HEADER.size:  # a header is always in one segment, so the flow ended before it
                self._close(flow)
                return
            flow.id, flow.size = HEADER.unpack_from(self._buffer)
            self._flows[flow.id] = flow
            start = HEADER.size
        flow.crc = zlib.crc32(self._view[start:count], flow.crc)
        flow.bytes += count - start
        if not flow.size:
            if not flow.series or now - flow.series[-1][0] >= SERIES_NS:
                flow.series.append((now, flow.bytes))
            else:
                flow.series[-1] = (flow.series[-1][0], flow.bytes)
        elif (left := flow.size - HEADER.size - flow.bytes) <= 0:
            flow.done_ns = flow.done_ns or now
            self._await(flow, 1)  # wait for the end of the connection
        else:
            self._await(flow, left)

    def _await(self, flow: _Arriving, left: int) -> None:
        """Wake when all missing bytes have arrived, or as many as every buffer holds, because wake-ups of the
        generator would influence the measurement. A flow of more than that is read in small pieces as long as
        its receive buffer is small: it would not grow (traffic/bulk.py).
        """
        most = MAX_LOWAT_BYTES
        if left > most and flow.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) < LARGE_BUFFER:
            most = FIRST_READ_BYTES
        flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, max(1, min(left, most)))

    def _close(self, flow: _Arriving) -> None:
        if flow.open:
            flow.open = False
            self._loop.drop(flow.sock)

"""Flows that start at one moment: their sources, and the collector that notes when each has arrived.

All processes of a run share the machine's monotonic clock, so a moment named by one is the same for all, and
the time from the common start to the last byte at the receiver is measured without any message.
"""

from __future__ import annotations

import gc
import os
import selectors
import socket
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairq_ryu.experiments import payload, tcpinfo
from fairq_ryu.experiments.control import Json, Loop, answer, listen
from fairq_ryu.experiments.namespaces import entered

HEADER = struct.Struct("!IQ")  # a flow's number and size (0: without end); these bytes are part of the size
CHUNK = 1 << 18  # bytes per read
MOST_BYTES_AWAITED = 32768  # a receive buffer always holds this much
SERIES_NS = 1_000_000
"""How finely the arrivals of an endless flow are noted."""
AWAKE_S = 0.002
"""Before the common start nothing else is served for so long: a wait in the selector ends a little late."""
_RESET = struct.pack("ii", 1, 0)


def await_all(loop: Loop, waiting: Callable[[], bool], until: float) -> None:
    """Serve sockets as long as something is ``waiting``, until a moment of the monotonic clock, s."""
    while waiting() and loop.running and (left := until - time.monotonic()) > 0:
        loop.step(left)


@dataclass
class _Flow:
    """One flow at its source."""

    id: int
    sock: socket.socket
    address: tuple[str, int]
    size: int
    seed: int
    first: bytes = b""
    """header and beginning of the payload, until they are sent"""
    sent: int = 0
    """of the payload, which the header is none of"""
    begun: bool = False
    """its SYN is out, and the loop knows it"""
    connected: bool = False
    may_send: bool = False
    ended: bool = False
    error: str | None = None
    info: tcpinfo.TcpInfo | None = None


class Source:
    """Sends flows for many hosts: one process for all, since so many that wake up at one moment would spread
    out what is to be sent at once. ``open`` names flows, each with the process whose network namespace it is
    opened in, and answers with their ports; ``connect`` opens their connections ahead of time, ``go`` has
    them start at ``at_ns``, ``end`` ends those without end, ``report`` hands over what came of them,
    ``checksum`` says what so many bytes of a payload sum up to.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._flows: dict[int, _Flow] = {}
        gc.disable()  # a collection at the common start would show
        answer("ready")

    def command(self, order: Json) -> None:
        flows = [self._flows[number] for number in order.get("ids", [])]
        match order["cmd"]:
            case "open":
                answer("open", ports={each["id"]: self._open(each) for each in order["flows"]})
            case "connect":
                for flow in flows:
                    self._connect(flow)
                until = time.monotonic() + order["timeout_s"]
                await_all(self._loop, lambda: not all(each.connected or each.ended for each in flows), until)
                answer("connect", missing=[each.id for each in flows if not each.connected])
            case "go":
                self._go(flows, order["at_ns"])
            case "end":
                self._end_endless(flows)
                answer("end")
            case "report":
                until = time.monotonic() + order["timeout_s"]
                await_all(self._loop, lambda: not all(each.ended for each in flows), until)
                answer("report", flows=[self._report(each) for each in flows])
                for flow in flows:
                    del self._flows[flow.id]
                gc.collect()
            case "checksum":
                answer("checksum", crc=[payload.checksum(seed, size) for seed, size in order["wanted"]])
            case other:
                raise ValueError(f"a source has no command {other}")

    def _end_endless(self, flows: Sequence[_Flow]) -> None:
        for flow in flows:
            if flow.ended:
                continue
            if flow.connected:
                flow.sock.shutdown(socket.SHUT_WR)
                self._listen(flow)
            elif flow.begun:
                self._end(flow, "not connected")

    def _open(self, order: Json) -> int:
        """A socket with its port chosen already, so that the flow can be announced before its SYN."""
        with entered(order["pid"]):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind(("", 0))
        flow = _Flow(order["id"], sock, (order["address"], order["port"]), order["size"], order["seed"])
        beginning = min(flow.size - HEADER.size if flow.size else payload.PIECE, MOST_BYTES_AWAITED)
        # In one piece with the data: a segment of its own would be one more in the queue.
        flow.first = HEADER.pack(flow.id, flow.size) + bytes(payload.piece(flow.seed, 0, beginning))
        self._flows[flow.id] = flow
        port: int = sock.getsockname()[1]
        return port

    def _connect(self, flow: _Flow) -> None:
        flow.begun = True
        flow.sock.connect_ex(flow.address)
        self._loop.add(flow.sock, selectors.EVENT_WRITE, lambda _events: self._connected(flow))

    def _go(self, flows: Sequence[_Flow], at_ns: int) -> None:
        await_all(self._loop, lambda: True, at_ns / 1e9 - AWAKE_S)
        time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))
        ready = [flow for flow in flows if flow.connected and not flow.ended]
        for flow in flows:
            flow.may_send = True
        for flow in ready:
            self._begin(flow)
        took_ns = time.monotonic_ns() - at_ns
        for flow in ready:
            if not flow.ended:
                self._loop.change(flow.sock, selectors.EVENT_WRITE, self._sender(flow))
                self._after(flow)
        for flow in flows:
            if not flow.begun:
                self._connect(flow)
        answer("go", took_ns=took_ns if ready else time.monotonic_ns() - at_ns)

    def _connected(self, flow: _Flow) -> None:
        code = flow.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._end(flow, os.strerror(code))
            return
        flow.connected = True
        if flow.may_send:
            self._loop.change(flow.sock, selectors.EVENT_WRITE, lambda _events: self._send(flow))
            self._send(flow)
        else:
            self._listen(flow)

    def _sender(self, flow: _Flow) -> Callable[[int], None]:
        return lambda _events: self._send(flow)

    def _begin(self, flow: _Flow) -> None:
        """The first bytes; nothing else, for all flows have theirs to send at this moment."""
        try:
            count = flow.sock.send(flow.first) - HEADER.size
        except BlockingIOError:
            return
        except OSError as error:
            self._end(flow, error.strerror)
            return
        if count < 0:
            raise RuntimeError("a send buffer without room for a flow's header")
        flow.first = b""
        flow.sent = count

    def _send(self, flow: _Flow) -> None:
        if flow.first:
            self._begin(flow)
        else:
            left = flow.size - HEADER.size - flow.sent if flow.size else payload.PIECE
            try:
                flow.sent += flow.sock.send(payload.piece(flow.seed, flow.sent, left))
            except BlockingIOError:
                return
            except OSError as error:
                self._end(flow, error.strerror)
        if not flow.ended:
            self._after(flow)

    def _after(self, flow: _Flow) -> None:
        """When all is sent, say so."""
        if flow.size and not flow.first and flow.sent == flow.size - HEADER.size:
            flow.sock.shutdown(socket.SHUT_WR)
            self._listen(flow)

    def _listen(self, flow: _Flow) -> None:
        self._loop.change(flow.sock, selectors.EVENT_READ, lambda _events: self._answered(flow))

    def _answered(self, flow: _Flow) -> None:
        """The collector says nothing; it ends once it has all, so every byte is acknowledged."""
        try:
            flow.sock.recv(1)
        except OSError as error:
            self._end(flow, error.strerror)
            return
        self._end(flow, None)

    def _end(self, flow: _Flow, error: str | None) -> None:
        flow.ended, flow.error = True, error
        flow.info = tcpinfo.of(flow.sock)
        self._loop.drop(flow.sock)

    def _report(self, flow: _Flow) -> Json:
        if not flow.ended:
            flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            if flow.begun:
                self._end(flow, "timeout")
            else:
                flow.sock.close()
        info = flow.info._asdict() if flow.info else {}
        return {"id": flow.id, "sent": flow.sent, "error": flow.error, **info}


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
    """when the last byte came; of an endless flow, when it ended"""
    series: list[tuple[int, int]] = field(default_factory=list)
    """of an endless flow: (moment in ns, payload so far)"""
    open: bool = True


class Collector:
    """Takes flows. ``await`` answers when all of the flows named have arrived, or at ``until_ns``; it forgets
    them then, and resets those that are not complete.
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
            flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
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
            self._data(flow)  # often there is something already

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
            if count < HEADER.size:  # so few never come in two segments: it ended before it began
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
            self._await(flow, 1)  # the end
        else:
            self._await(flow, left)

    def _await(self, flow: _Arriving, left: int) -> None:
        """Be woken when all that is missing is there, or as much of it as a buffer surely holds: the
        generator must not be what is measured.
        """
        flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, max(1, min(left, MOST_BYTES_AWAITED)))

    def _close(self, flow: _Arriving) -> None:
        if flow.open:
            flow.open = False
            self._loop.drop(flow.sock)

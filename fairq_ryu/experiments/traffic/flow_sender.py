"""The sender of flows that start together; `collector` has the other end.

All processes of a run share the machine's monotonic clock, so a time named by one is the same for all, and
the time from the common start to the last byte at the receiver is measured without any message.
"""

from __future__ import annotations

import gc
import os
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairq_ryu.experiments.measure import tcpinfo
from fairq_ryu.experiments.traffic import payload
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer
from fairq_ryu.experiments.traffic.namespaces import entered

HEADER = struct.Struct("!IQ")  # a flow's number and size (0: without end); these bytes are part of the size
MAX_LOWAT_BYTES = 32768  # a receive buffer always holds this much
AWAKE_S = 0.002
"""Nothing else is served for this time before the common start, because waits in the selector end late."""
RESET = struct.pack("ii", 1, 0)


def await_all(loop: Loop, waiting: Callable[[], bool], until: float) -> None:
    """Serve sockets while ``waiting`` returns true, until this time of the monotonic clock, s."""
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
    """bytes of the payload, without the header"""
    begun: bool = False
    """its SYN is sent, and the loop serves it"""
    connected: bool = False
    may_send: bool = False
    ended: bool = False
    error: str | None = None
    info: tcpinfo.TcpInfo | None = None


class Source:
    """Sends flows for many hosts from one process, because many processes that wake at the same time would
    not send at the same time. Commands: ``open`` names flows, each with the process in whose
    network namespace it is opened, and answers with their ports; ``connect`` opens their connections ahead of
    time, ``go`` starts them at ``at_ns``, ``end`` ends those without end, ``report`` answers with their
    counters, ``checksum`` with checksums of payloads.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._flows: dict[int, _Flow] = {}
        gc.disable()  # a collection at the common start would delay flows
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
        """Open a socket that has its port already, so that the flow can be announced before its SYN."""
        with entered(order["pid"]):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, order.get("dscp", 0) << 2)
        sock.bind(("", 0))
        flow = _Flow(order["id"], sock, (order["address"], order["port"]), order["size"], order["seed"])
        beginning = min(flow.size - HEADER.size if flow.size else payload.PIECE, MAX_LOWAT_BYTES)
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
        """Send the first bytes only, because all flows must send theirs at this time."""
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
        """End the connection when everything is sent."""
        if flow.size and not flow.first and flow.sent == flow.size - HEADER.size:
            flow.sock.shutdown(socket.SHUT_WR)
            self._listen(flow)

    def _listen(self, flow: _Flow) -> None:
        self._loop.change(flow.sock, selectors.EVENT_READ, lambda _events: self._answered(flow))

    def _answered(self, flow: _Flow) -> None:
        """The collector has closed the connection: it has received everything, so every byte is
        acknowledged.
        """
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
            flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            if flow.begun:
                self._end(flow, "timeout")
            else:
                flow.sock.close()
        info = flow.info._asdict() if flow.info else {}
        return {"id": flow.id, "sent": flow.sent, "error": flow.error, **info}

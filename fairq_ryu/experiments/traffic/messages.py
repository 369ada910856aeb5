"""Short messages on open connections: the end that sends and times them, and the end that answers."""

from __future__ import annotations

import contextlib
import heapq
import random
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fairq_ryu.experiments.measure import tcpinfo
from fairq_ryu.experiments.traffic.generator_control import Json, Loop, answer, listen
from mininet_topos.patience import patient

ANSWER = b"."
CHUNK = 1 << 16  # bytes per read
CONNECT_S = 20.0
"""Time limit for a connection."""


class Echo:
    """Answers each message of ``size`` bytes (command ``expect``) with one byte."""

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop = loop
        self._size = 0
        self._listener = listen(port)
        loop.add(self._listener, selectors.EVENT_READ, self._accept)
        answer("ready", port=self._listener.getsockname()[1])

    def command(self, order: Json) -> None:
        self._size = order["size"]
        answer(order["cmd"])

    def _accept(self, _events: int) -> None:
        while True:
            try:
                sock, _peer = self._listener.accept()
            except OSError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._loop.add(sock, selectors.EVENT_READ, self._reader(sock))

    def _reader(self, sock: socket.socket) -> Callable[[int], None]:
        rest = 0

        def read(_events: int) -> None:
            nonlocal rest
            try:
                count = len(sock.recv(CHUNK))
                whole, rest = divmod(rest + count, self._size)
                if whole:
                    sock.send(ANSWER * whole)
            except BlockingIOError:
                return
            except OSError:
                count = 0
            if not count:
                self._loop.drop(sock)

        return read


@dataclass
class _Talk:
    """A connection, and the times at which its unanswered messages were due, ns."""

    sock: socket.socket
    due: deque[int] = field(default_factory=deque)
    unsent: int = 0
    """bytes that the socket has not taken"""


class Talkers:
    """``open`` opens connections; ``talk`` sends a message on each in every interval, and answers with the
    latencies of the messages, ns, and the retransmission timeouts of each connection meanwhile.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._talks: list[_Talk] = []
        self._times: list[int] = []
        self._errors = 0
        answer("ready")

    def command(self, order: Json) -> None:
        if order["cmd"] == "open":
            for _ in range(order["connections"]):
                self._open(order["address"], order["port"])
            answer("open")
        else:
            del order["cmd"]
            self._talk(**order)

    def _open(self, address: str, port: int) -> None:
        sock = socket.create_connection((address, port), timeout=patient(CONNECT_S))
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        talk = _Talk(sock)
        self._talks.append(talk)
        self._loop.add(sock, selectors.EVENT_READ, lambda _events: self._read(talk))

    def _read(self, talk: _Talk) -> None:
        now = time.monotonic_ns()
        try:
            count = len(talk.sock.recv(CHUNK))
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self._errors += 1
            self._loop.drop(talk.sock)
            self._talks.remove(talk)
            return
        for _ in range(min(count, len(talk.due))):
            self._times.append(now - talk.due.popleft())

    def _send(self, talk: _Talk, size: int) -> None:
        """Send a message. What a full socket does not take is sent with the next message."""
        talk.unsent += size
        with contextlib.suppress(OSError):  # a full socket; a closed one is found when it is read
            talk.unsent -= talk.sock.send(b"m" * talk.unsent)

    def _talk(self, size: int, interval_s: float, seconds: float, timeout_s: float, seed: int) -> None:
        """The first message of each connection is due at a random time of the first interval. ``errors``: the
        connections that have ended since they were opened.
        """
        phase, interval, start = random.Random(seed), int(interval_s * 1e9), time.monotonic_ns()
        end = start + int(seconds * 1e9)
        self._times, sent = [], 0
        before = [(talk, tcpinfo.of(talk.sock).total_rto) for talk in self._talks]
        queue = [
            (start + int(phase.random() * interval), number, talk) for number, talk in enumerate(self._talks)
        ]
        heapq.heapify(queue)
        while queue and self._loop.running:
            due, number, talk = queue[0]
            now = time.monotonic_ns()
            if due >= end:
                break
            if due > now:
                self._loop.step((due - now) / 1e9)
                continue
            heapq.heapreplace(queue, (due + interval, number, talk))
            if talk in self._talks:
                talk.due.append(due)
                self._send(talk, size)
                sent += 1
        deadline = time.monotonic() + timeout_s
        while self._loop.running and any(talk.due for talk in self._talks):
            if (left := deadline - time.monotonic()) <= 0:
                break
            self._loop.step(left)
        timeouts = [
            _more(tcpinfo.of(talk.sock).total_rto, first) for talk, first in before if talk in self._talks
        ]
        answer("talk", sent=sent, times_ns=self._times, errors=self._errors, timeouts=timeouts)


def _more(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before

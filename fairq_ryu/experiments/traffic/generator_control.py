"""The control of a generator process: commands as lines of JSON, sockets, and one event loop for both."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

Json = dict[str, Any]


def answer(re: str, **values: Any) -> None:
    """Write one answer."""
    sys.stdout.write(json.dumps({"re": re, **values}) + "\n")
    sys.stdout.flush()


class Role(Protocol):
    """A role of the generator: handles commands, and events of its sockets."""

    def command(self, order: Json) -> None: ...


class Loop:
    """One selector for the sockets and for the commands on ``control`` (a file descriptor)."""

    def __init__(self, control: int) -> None:
        self.selector = selectors.DefaultSelector()
        self.control = control
        self._pending = b""
        self._steps = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.running = True

    def add(self, sock: socket.socket, events: int, callback: Callable[[int], None]) -> None:
        self.selector.register(sock, events, callback)

    def change(self, sock: socket.socket, events: int, callback: Callable[[int], None]) -> None:
        self.selector.modify(sock, events, callback)

    def drop(self, sock: socket.socket) -> None:
        self.selector.unregister(sock)
        sock.close()

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        """Call ``callback`` once, at this time of the monotonic clock, s, or some milliseconds later."""
        heapq.heappush(self._timers, (when, next(self._numbers), callback))

    def step(self, timeout: float | None) -> None:
        """Handle the events that occur within ``timeout`` seconds (None: wait for one), and the timers that
        are due. It returns earlier when a timer was due.
        """
        self._steps += 1
        this = self._steps
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()
            timeout = 0.0
        if self._steps != this:
            return
        if self._timers:
            left = max(0.0, self._timers[0][0] - time.monotonic())
            timeout = left if timeout is None else min(timeout, left)
        for key, events in self.selector.select(timeout):
            key.data(events)
            if self._steps != this:
                # A command has served sockets itself meanwhile: the remaining events may be of closed
                # sockets. Events that are still valid will be reported again.
                return

    def run(self, role: Role) -> None:
        """Serve until stdin ends or a ``stop`` command comes."""
        self.selector.register(self.control, selectors.EVENT_READ, lambda _events: self._read(role))
        while self.running:
            self.step(None)

    def _read(self, role: Role) -> None:
        data = os.read(self.control, 1 << 16)
        if not data:
            self.running = False
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["cmd"] == "stop":
                self.running = False
            else:
                role.command(order)


def listen(port: int) -> socket.socket:
    """A listening socket on every address, with a backlog for any volley."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", port))
    sock.listen(4096)
    sock.setblocking(False)
    return sock

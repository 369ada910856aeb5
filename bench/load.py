"""The load of the benchmark of new connections: a server and a client, each a process of its own.

``python -m bench.load server`` or ``client``, inside a host. Both use the standard library only and do as
little work as possible, so that the figures measure the switch and its controller and not the load. A client
keeps a fixed number of connections in flight: each connects, sends a request, receives the answer and closes;
the server closes as soon as it has answered, as in HTTP/1.0.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from pathlib import Path

# Several server ports, so that a client does not reuse a port too soon: a reused one would match rules of the
# previous connection.
PORTS = range(801, 817)
REQUEST, ANSWER = b"?" * 64, b"!" * 256
_DRAIN_SECONDS = 5.0
_TRY_SECONDS = 0.2


def main() -> None:
    """Run as the server or the client that the command line names."""
    if sys.argv[1] == "server":
        _serve()
    else:
        _Client(sys.argv[2], int(sys.argv[3])).run()


def _serve() -> None:
    epoll, listeners = select.epoll(), {}
    for port in PORTS:
        listener = socket.create_server(("", port), backlog=1024)
        listener.setblocking(False)
        # Wake up for the request, not for the handshake before it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)
        epoll.register(listener.fileno(), select.EPOLLIN)
        listeners[listener.fileno()] = listener
    print("ready", flush=True)
    while True:
        for descriptor, _ in epoll.poll():
            try:
                peer, _ = listeners[descriptor].accept()
            except BlockingIOError:
                continue
            with peer:
                try:
                    # The request has arrived, unless the client repeated its handshake for too long.
                    peer.setblocking(False)
                    if peer.recv(1024):
                        peer.send(ANSWER)
                except OSError:
                    pass


class _Client:
    """Opens connections. Reads commands from stdin and writes results to stdout, as lines of JSON."""

    def __init__(self, server: str, flight: int) -> None:
        self.server = server
        self.flight = flight
        self.epoll = select.epoll()
        self.live: dict[int, socket.socket] = {}
        self.opened = 0

    def run(self) -> None:
        print("ready", flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            if "until" in order:
                answer: object = self.reach(order["until"])
            else:
                answer = self.measure(order["begin"], order["end"])
            print(json.dumps(answer), flush=True)

    def reach(self, until: float) -> bool:
        """Whether the server can be reached before the time ``until`` of the monotonic clock."""
        while time.monotonic() < until:
            try:
                # TCP would repeat a lost SYN only after a second.
                with socket.create_connection((self.server, PORTS[0]), _TRY_SECONDS) as sock:
                    sock.sendall(REQUEST)
                    if sock.recv(1024):
                        return True
            except OSError:
                time.sleep(0.01)
        return False

    def measure(self, begin: float, end: float) -> dict[str, int]:
        """Open connections until ``end`` and wait until all of them have ended. ``done`` counts those that
        complete between ``begin`` and ``end``. Times of the monotonic clock.
        """
        done = ended = failed = 0
        for _ in range(self.flight):
            self._open()
        repeated = _repeated_segments()
        while self.live:
            events = self.epoll.poll(1.0)
            now = time.monotonic()
            counted, more = begin <= now < end, now < end
            if now > end + _DRAIN_SECONDS:
                failed += len(self.live)
                for sock in self.live.values():
                    sock.close()
                self.live.clear()
            for descriptor, mask in events:
                sock = self.live[descriptor]
                try:
                    if mask & ~select.EPOLLOUT:
                        complete = len(sock.recv(1024)) == len(ANSWER)
                    else:
                        sock.send(REQUEST)
                        continue
                except OSError:
                    complete = False
                del self.live[descriptor]
                sock.close()
                ended += complete
                done += counted and complete
                failed += not complete
                if more:
                    self._open()
        return {"done": done, "ended": ended, "failed": failed, "repeated": _repeated_segments() - repeated}

    def _open(self) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.opened += 1
        sock.connect_ex((self.server, PORTS[self.opened % len(PORTS)]))
        descriptor = sock.fileno()
        # Edge-triggered: one event when it is connected, one when the answer has arrived.
        self.epoll.register(descriptor, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        self.live[descriptor] = sock


def _repeated_segments() -> int:
    """The number of TCP segments that this host has retransmitted."""
    names, values = (
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line[:4] == "Tcp:"
    )
    return int(values[names.index("RetransSegs")])


if __name__ == "__main__":
    main()

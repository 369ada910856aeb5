"""Traffic between the hosts of a fabric, all driven by the test itself: sockets stay in their network
namespaces.
"""

import collections
import contextlib
import re
import selectors
import socket
import struct
import time

from tests.support.lab import until

PORT = 5001
_CHUNK = bytes(1 << 16)


class Conversations:
    """Simultaneous TCP connections, each with data in both directions."""

    def __init__(self, fabric, pairs, ports):
        """One connection for each pair, from the client port at the same index of ``ports``."""
        self.fabric = fabric
        self.clients, self.servers = [], []
        self.flows = []  # (source, source port, target, target port), as the clients see it
        with contextlib.ExitStack() as stack:
            listening = {}
            for target in {target for _, target in pairs}:
                server = listening[target] = stack.enter_context(fabric.socket(target))
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("0.0.0.0", PORT))
                server.listen(1024)
                server.setblocking(False)
            try:
                self._open(pairs, ports, listening)
            except BaseException:
                self.abort()
                raise

    def _open(self, pairs, ports, listening):
        for (source, target), port in zip(pairs, ports, strict=True):
            client = self.fabric.socket(source)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            client.bind(("0.0.0.0", port))
            client.setblocking(False)
            client.connect_ex((self.fabric.address(target), PORT))
            self.clients.append(client)
        accepted = {}
        with self._selector() as selector:
            for server in listening.values():
                selector.register(server, selectors.EVENT_READ)
            for each in self._ready(selector, lambda: len(accepted) < len(pairs), "are not accepted"):
                with contextlib.suppress(BlockingIOError):
                    while True:
                        found, peer = each.accept()
                        found.setblocking(False)
                        accepted[peer, found.getsockname()] = found
        for client in self.clients:
            self.flows.append(client.getsockname() + client.getpeername())
            self.servers.append(accepted[client.getsockname(), client.getpeername()])

    def exchange(self, there, back):
        """``there`` bytes from each client, and ``back`` bytes from each server."""
        left = dict.fromkeys(self.clients, there) | dict.fromkeys(self.servers, back)
        wanted = dict.fromkeys(self.clients, back) | dict.fromkeys(self.servers, there)
        with self._selector() as selector:
            for each in left:
                selector.register(each, selectors.EVENT_READ | selectors.EVENT_WRITE)
            unfinished = set(left)
            for each in self._ready(selector, lambda: unfinished, "have not had their data"):
                with contextlib.suppress(BlockingIOError):
                    if left[each]:
                        left[each] -= each.send(_CHUNK[: min(left[each], len(_CHUNK))])
                with contextlib.suppress(BlockingIOError):
                    while data := each.recv(len(_CHUNK)):
                        wanted[each] -= len(data)
                assert wanted[each] >= 0
                if not left[each]:
                    selector.modify(each, selectors.EVENT_READ)
                if not left[each] and not wanted[each]:
                    selector.unregister(each)
                    unfinished.discard(each)

    def close(self):
        """Close all connections in order, the clients first."""
        open_ends = set(self.clients + self.servers)
        with self._selector() as selector:
            for each in open_ends:
                selector.register(each, selectors.EVENT_READ)
            for client in self.clients:
                client.shutdown(socket.SHUT_WR)
            for each in self._ready(selector, lambda: open_ends, "have not ended"):
                assert each.recv(1) == b""
                selector.unregister(each)
                each.close()
                open_ends.discard(each)

    def abort(self):
        for each in self.clients + self.servers:
            each.close()

    @staticmethod
    @contextlib.contextmanager
    def _selector():
        with selectors.DefaultSelector() as selector:
            yield selector

    def _ready(self, selector, unfinished, complaint):
        deadline = time.monotonic() + 30
        while left := unfinished():
            assert time.monotonic() < deadline, f"{left} of {len(self.clients)} {complaint}"
            for key, _ in selector.select(0.2):
                yield key.fileobj


def datagrams(fabric, pairs, rounds=5, pause=0.05, linger=1.0, port=5002):
    """Numbered UDP datagrams for all pairs, round by round. Returns how often each (source, target, number)
    has arrived.
    """
    names = {fabric.address(host): host for host in fabric.hosts}
    arrived = collections.Counter()
    with contextlib.ExitStack() as stack:
        sockets = {}
        for host in fabric.hosts:
            made = sockets[host] = stack.enter_context(fabric.socket(host, socket.SOCK_DGRAM))
            made.bind(("0.0.0.0", port))
            made.setblocking(False)

        def collect():
            for host, each in sockets.items():
                with contextlib.suppress(BlockingIOError):
                    while True:
                        data, (address, _) = each.recvfrom(64)
                        arrived[names[address], host, int(data)] += 1

        for number in range(rounds):
            for place, (source, target) in enumerate(pairs):
                sockets[source].sendto(str(number).encode(), (fabric.address(target), port))
                if place % 32 == 31:
                    collect()
            _for(pause, collect)
        _for(linger, collect)
    return arrived


class Echoes:
    """ICMP echo between hosts: the requests sent, the requests received and the replies, each with
    its count.
    """

    _HEAD, _IDENT = struct.Struct("!BBHHH"), 0x4651

    def __init__(self, fabric):
        self.fabric = fabric
        self._names = {fabric.address(host): host for host in fabric.hosts}
        self._stack = contextlib.ExitStack()
        self._sockets = {}
        for host in fabric.hosts:
            made = fabric.socket(host, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            self._sockets[host] = self._stack.enter_context(made)
            made.setblocking(False)
        self.questions, self.answers = collections.Counter(), collections.Counter()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def ask(self, pairs, number):
        """The first host of every pair sends a request to the second one."""
        head = self._HEAD.pack(8, 0, 0, self._IDENT, number)
        total = sum(struct.unpack("!4H", head))
        total = (total & 0xFFFF) + (total >> 16)
        head = self._HEAD.pack(8, 0, 0xFFFF - total, self._IDENT, number)
        for place, (source, target) in enumerate(pairs):
            self._sockets[source].sendto(head, (self.fabric.address(target), 0))
            if place % 32 == 31:
                self.collect()

    def collect(self, seconds=0.0):
        _for(seconds, self._collect)

    def _collect(self):
        for host, each in self._sockets.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    data, (address, _) = each.recvfrom(256)
                    kind, _, _, ident, number = self._HEAD.unpack_from(data, (data[0] & 15) * 4)
                    if ident == self._IDENT and kind in (0, 8):
                        found = self.answers if kind == 0 else self.questions
                        pair = (host, self._names[address])
                        found[(*(pair if kind == 0 else pair[::-1]), number)] += 1


def answers(printed):
    """The numbers of the packets that were answered, from what ping has printed. Its own count is not used:
    it calls a packet lost whose answer is under way when ping ends, two round trips after the last packet.
    """
    return sorted(map(int, re.findall(r"icmp_seq=(\d+) ttl", printed)))


def wait_until_reachable(fabric, pairs=None, seconds=60):
    """Wait until every pair has exchanged an echo, so that all hosts know each other."""
    left = set(pairs or fabric.pairs())
    deadline = time.monotonic() + seconds
    number = 0
    with Echoes(fabric) as echoes:
        while left:
            assert time.monotonic() < deadline, f"not reachable: {left}"
            echoes.ask(sorted(left), number)
            echoes.collect(0.2)
            number += 1
            left -= {key[:2] for key in echoes.answers}
    if pairs is not None:
        return  # there may be no controller that could be asked
    # An echo can arrive by flooding, before the controller knows its host.
    macs = {fabric[host].MAC() for host in fabric.hosts}

    def unknown():
        known = fabric.rest("hosts")
        return macs - {each["mac"] for each in known if any("." in ip for ip in each["addresses"])}

    assert until(lambda: not unknown()), unknown()


class Bulk:
    """One TCP connection that sends at a constant rate, and the arrival times of its bytes."""

    def __init__(self, fabric, source, target, rate_mbit=40, sport=0, port=None):
        self.samples = []  # (seconds, bytes received so far)
        self.total = 0
        self._stack = contextlib.ExitStack()
        port = port or PORT + 1000
        with fabric.socket(target) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("0.0.0.0", port))
            server.listen(1)
            self.sender = self._stack.enter_context(fabric.socket(source))
            self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sender.setsockopt(socket.SOL_SOCKET, 47, int(rate_mbit * 125_000))  # SO_MAX_PACING_RATE
            self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
            self.sender.bind(("0.0.0.0", sport))
            self.sender.settimeout(30)
            self.sender.connect((fabric.address(target), port))
            server.settimeout(30)
            self.receiver = self._stack.enter_context(server.accept()[0])
        self.flow = self.sender.getsockname() + self.sender.getpeername()
        self.sender.setblocking(False)
        self.receiver.setblocking(False)

    def step(self):
        """Send and receive without blocking; an error fails the test."""
        with contextlib.suppress(BlockingIOError):
            while self.sender.send(_CHUNK):
                pass
        with contextlib.suppress(BlockingIOError):
            while data := self.receiver.recv(1 << 20):
                self.total += len(data)
        self.samples.append((time.monotonic(), self.total))

    def close(self):
        self._stack.close()

    def stall(self, since):
        """The longest time without a received byte from ``since`` on, seconds."""
        last, longest, before = since, 0.0, None
        for at, total in self.samples:
            if since <= at:
                if before is None or total > before:
                    longest, last = max(longest, at - last), at
                before = total
        return max(longest, self.samples[-1][0] - last)

    def retransmitted(self):
        """Retransmitted segments (``tcpi_total_retrans``)."""
        info = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return struct.unpack_from("I", info, 100)[0]


def drive_until(bulks, condition, seconds):
    """Drive these until the condition is true or the time is over. Returns whether it is true."""
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        drive(bulks, 0.05)
    return holds


def drive(bulks, seconds, step=0.01):
    """Drive these for a while."""

    def all_of_them():
        for each in bulks:
            each.step()

    _for(seconds, all_of_them, step)


def _for(seconds, action, step=0.005):
    deadline = time.monotonic() + seconds
    while True:
        action()
        if time.monotonic() >= deadline:
            return
        time.sleep(step)

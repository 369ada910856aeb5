"""The traffic under a fault: an incast with elephants and deadline flows, each byte accounted for.

Every connection sends to the receiver, which answers its end with the number and the checksum of the bytes
that came. The sender compares both with what it sent. All sockets are of one thread of this process; each is
made in the network of its host, and stays there.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import queue
import random
import selectors
import socket
import struct
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping

from mininet_topos.patience import patient

PORT = 5001
MICE_PORT, DEADLINES_PORT = PORT + 1, PORT + 2
MOUSE, DEADLINE_FLOW, WORD = 11_500, 50_000, 100
_MICE_A_SENDER = 4
_VOLLEY_EVERY, _DEADLINE_EVERY, _WORD_EVERY = 0.3, 0.5, 4.0
# While the network passes nothing, connections would pile up.
_MOST_OPEN = 48
_DEADLINE = 1.0
_FINISH = 60.0
_DATA = random.Random(36).randbytes(1 << 20)
_RECEIPT = struct.Struct("!QI")
_CHUNK = 1 << 15
_SEND_BUFFER = 1 << 17
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_LIBC = ctypes.CDLL(None, use_errno=True)
# struct tcp_info of linux/tcp.h.
_TCP_INFO = 232
_RTO_AT, _ACKED_AT, _WINDOW_AT = 8, 120, 228

Announce = Callable[[str, int, int, float], None]
"""Announce a flow: source address and port, size in bytes, deadline in seconds."""


class _Sender:
    """The end of a connection that sends ``size`` bytes; None: until it is ended."""

    def __init__(self, kind: str, sock: socket.socket, size: int | None) -> None:
        self.kind, self.sock, self.size = kind, sock, size
        self.sent = self.checksum = 0
        self.held = False
        """It sends no more for now, and does not end."""
        self._receipt = b""

    @property
    def has_all_sent(self) -> bool:
        return self.size is not None and self.sent >= self.size

    def write(self) -> None:
        """Send what the socket takes. Raises OSError."""
        left = _CHUNK if self.size is None else min(_CHUNK, self.size - self.sent)
        at = self.sent % (len(_DATA) - _CHUNK)
        part = _DATA[at : at + left]
        taken = self.sock.send(part)
        self.checksum = zlib.crc32(part[:taken], self.checksum)
        self.sent += taken
        if self.has_all_sent and not self.held:
            self.sock.shutdown(socket.SHUT_WR)

    def read(self) -> str | None:
        """Read the receipt. None: it is not complete; or what is wrong with it, "" for nothing."""
        data = self.sock.recv(64)
        self._receipt += data
        if data:
            return None
        if len(self._receipt) != _RECEIPT.size:
            return f"{len(self._receipt)} bytes of a receipt"
        arrived = _RECEIPT.unpack(self._receipt)
        if arrived != (self.sent, self.checksum):
            return f"sent {self.sent} bytes of checksum {self.checksum}, arrived: {arrived}"
        return ""

    def info(self) -> bytes:
        return self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO)


class _Receiver:
    """The end that receives, and answers with a receipt."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.count, self.checksum = sock, 0, 0

    def read(self) -> bool:
        """Whether the connection has come to its end. Raises OSError."""
        data = self.sock.recv(1 << 18)
        self.count += len(data)
        self.checksum = zlib.crc32(data, self.checksum)
        if data:
            return False
        self.sock.send(_RECEIPT.pack(self.count, self.checksum))
        return True


class Load:
    """Runs from :meth:`start` to :meth:`finish`. One elephant for each sender."""

    def __init__(self, senders: Mapping[str, int], receiver: str, receiver_pid: int, announce: Announce):
        """``senders``: addresses, with a process in the network of each."""
        self._address, self._announce = receiver, announce
        self._networks = {
            address: os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            for address, pid in {**senders, receiver: receiver_pid}.items()
        }
        self._senders = list(senders)
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._selector = selectors.DefaultSelector()
        self._open: set[_Sender] = set()
        self._elephants: list[_Sender] = []
        self.done: Counter[str] = Counter()
        self.arrived = 0
        """Bytes that have come to the receiver, of all connections."""
        self.faults: list[str] = []
        """What went wrong with connections: none may."""
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._announced: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        self._ending = False
        self._to_park, self._talked_at = 0, 0.0
        self._parked: deque[_Sender] = deque()
        self._most_silent, self._silent = 0, list[_Sender]()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._announcer = threading.Thread(target=self._announce_all, name="announcer", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._announcer.start()

    # What other threads ask

    def windows(self) -> list[int]:
        """The windows that the senders of the elephants were told last, bytes."""
        return [int.from_bytes(info[_WINDOW_AT : _WINDOW_AT + 4], "little") for info in self._infos()]

    def acknowledged(self) -> list[int]:
        """The bytes of each elephant that have been acknowledged."""
        return [int.from_bytes(info[_ACKED_AT : _ACKED_AT + 8], "little") for info in self._infos()]

    def timeout(self) -> float:
        """The longest retransmission timeout of an elephant, seconds."""
        return max(int.from_bytes(info[_RTO_AT : _RTO_AT + 4], "little") for info in self._infos()) / 1e6

    def _infos(self) -> list[bytes]:
        found = [each.info() for each in list(self._elephants)]
        assert self._ending or len(found) in (0, len(self._senders)), self.faults
        return found

    def elephants(self) -> list[tuple[str, int]]:
        """Address and port of each, where it sends."""
        return [each.sock.getsockname() for each in list(self._elephants)]

    def park(self, number: int, silent: int = 0) -> None:
        """Open so many connections more, which stay and send a word every few seconds; ``silent``: so many of
        them, the first ones, send one word only.
        """
        self._to_park, self._most_silent = number, silent

    @property
    def parked(self) -> int:
        """Those that have sent."""
        return len(self._parked) + len(self._silent)

    @property
    def talking(self) -> int:
        """Of these, those that send again and again."""
        return len(self._parked)

    def finish(self) -> list[str]:
        """End all connections in order. Returns what went wrong; nothing may."""
        self._ending = True
        self._thread.join(patient(_FINISH))
        if self._thread.is_alive():
            left = Counter(each.kind for each in list(self._open))
            self.faults.append(f"connections have not ended: {dict(left)}")
        self._announced.put(None)
        return self.faults

    def close(self) -> None:
        """Close what is open, at once."""
        self._ending = True
        self._asked.put(self._abort)
        self._thread.join()
        self._announced.put(None)
        self._announcer.join()
        for each in (*self._networks.values(), self._home):
            os.close(each)

    # The thread

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.faults.append(f"the load has failed: {error!r}")
        finally:
            for key in list(self._selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
            self._selector.close()

    def _work(self) -> None:
        for port in (PORT, MICE_PORT, DEADLINES_PORT):
            with self._inside(self._address):
                server = socket.create_server((self._address, port), backlog=4096)
            server.setblocking(False)
            self._selector.register(server, selectors.EVENT_READ, self._accept)
        self._elephants = [self._connect("elephant", each, PORT, None) for each in self._senders]
        volley = deadline = time.monotonic()
        while not self._ending or self._open:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._asked.get_nowait()()
            now = time.monotonic()
            waiting = len(self._open) - len(self._elephants) - self.parked
            if self._ending:
                self._end()
            elif waiting < _MOST_OPEN:
                for _ in range(min(self._to_park, _MOST_OPEN)):
                    sender = self._senders[self._to_park % len(self._senders)]
                    self._connect("parked", sender, PORT, WORD).held = True
                    self._to_park -= 1
                if now >= volley:
                    volley = now + _VOLLEY_EVERY
                    for sender in self._senders * _MICE_A_SENDER:
                        self._connect("mouse", sender, MICE_PORT, MOUSE)
                if now >= deadline:
                    deadline = now + _DEADLINE_EVERY
                    for sender in self._senders:
                        made = self._connect("deadline flow", sender, DEADLINES_PORT, DEADLINE_FLOW)
                        self._announced.put((sender, made.sock.getsockname()[1]))
                self._talk(now)
            for key, _ in self._selector.select(0.02):
                key.data(key.fileobj)

    def _end(self) -> None:
        for each in list(self._open):
            ends = each.held or each.size is None
            each.held = False
            if each.size is None:
                each.size = each.sent
            if ends and each.has_all_sent:
                with contextlib.suppress(OSError):  # what it reads says why
                    each.sock.shutdown(socket.SHUT_WR)
                self._selector.modify(each.sock, selectors.EVENT_READ, self._receipt_of(each))

    def _talk(self, now: float) -> None:
        """The next parked connections send a word, so that each does every few seconds."""
        due = int(len(self._parked) * (now - self._talked_at) / _WORD_EVERY)
        if due == 0 and self._parked:
            return
        self._talked_at = now
        for each in list(itertools.islice(self._parked, min(due, len(self._parked)))):
            self._parked.rotate(-1)
            try:
                each.size = each.sent + WORD
                with contextlib.suppress(BlockingIOError):
                    each.write()
                each.size = each.sent
            except OSError as error:
                self._parked.remove(each)
                self._failed(each, error)

    def _abort(self) -> None:
        for each in list(self._open):
            self._close(each)

    @contextlib.contextmanager
    def _inside(self, address: str) -> Iterator[None]:
        _enter(self._networks[address])
        try:
            yield
        finally:
            _enter(self._home)

    def _connect(self, kind: str, source: str, port: int, size: int | None) -> _Sender:
        with self._inside(source):
            sock = socket.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        sock.bind((source, 0))
        sock.connect_ex((self._address, port))
        made = _Sender(kind, sock, size)
        self._open.add(made)
        self._selector.register(sock, selectors.EVENT_WRITE, lambda _: self._write(made))
        return made

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = server.accept()
                sock.setblocking(False)
                receiver = _Receiver(sock)
                self._selector.register(
                    sock, selectors.EVENT_READ, lambda _, receiver=receiver: self._receive(receiver)
                )

    def _write(self, sender: _Sender) -> None:
        try:
            sender.write()
        except BlockingIOError:
            return
        except OSError as error:
            self._failed(sender, error)
            return
        if sender.has_all_sent:
            if sender.held:
                silent = len(self._silent) < self._most_silent
                (self._silent if silent else self._parked).append(sender)
            self._selector.modify(sender.sock, selectors.EVENT_READ, self._receipt_of(sender))

    def _receipt_of(self, sender: _Sender) -> Callable[[object], None]:
        return lambda _: self._read_receipt(sender)

    def _read_receipt(self, sender: _Sender) -> None:
        try:
            fault = sender.read()
        except BlockingIOError:
            return
        except OSError as error:
            self._failed(sender, error)
            return
        if fault is None:
            return
        if fault:
            self.faults.append(f"{sender.kind}: {fault}")
        self.done[sender.kind] += 1
        self._close(sender)

    def _receive(self, receiver: _Receiver) -> None:
        before = receiver.count
        try:
            ended = receiver.read()
        except BlockingIOError:
            return
        except OSError as error:
            self.faults.append(f"receiver: {error}")
            ended = True
        self.arrived += receiver.count - before
        if ended:
            self._selector.unregister(receiver.sock)
            receiver.sock.close()

    def _failed(self, sender: _Sender, error: OSError) -> None:
        self.faults.append(f"{sender.kind}, {sender.sent} bytes sent: {error}")
        self._close(sender)

    def _close(self, sender: _Sender) -> None:
        self._selector.unregister(sender.sock)
        sender.sock.close()
        self._open.discard(sender)
        if sender in self._elephants:
            self._elephants.remove(sender)

    def _announce_all(self) -> None:
        while (flow := self._announced.get()) is not None:
            self._announce(*flow, DEADLINE_FLOW, _DEADLINE)


def _enter(network: int) -> None:
    if _LIBC.setns(network, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")

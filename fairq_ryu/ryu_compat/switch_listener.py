"""The port where switches connect: how many may, for how long without a handshake, and who is who.

Anybody who reaches the port can open connections. What is not past its handshake is bounded in number, all
together and by address, and the oldest makes room; an id that a connected switch has is not taken from it
while it answers.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ryu.lib import hub

from fairq_ryu.ryu_compat.limited_log import SparingLog

LOG = logging.getLogger(__name__)
SAID = SparingLog(LOG)
# HELLO, features and ports take a switch a few round trips; Open vSwitch itself gives up sooner. A controller
# that starts anew meets hundreds of switches at once.
HANDSHAKE_TIME = 10.0
# Connections before the end of their handshake. In a network of Mininet all switches have one address.
MOST_WAITING = 512
MOST_WAITING_OF_ONE = 256
# Connections altogether, if there are file descriptors for so many and some for the rest of the controller.
MOST = 4096
_SPARE_DESCRIPTORS = 512
# Another connection says it is a switch that is connected: the present one has so many seconds to say a word.
ANSWER_TIME = 2.0
# Failures of accept that pass.
_PASSING = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ECONNABORTED,
    errno.EPROTO,
    errno.EINTR,
}
_ACCEPT_AGAIN = 0.1


class Refused(Exception):
    """A connection that is to end; says why."""


def host_of(address: Any) -> str:
    """The host of a socket's address."""
    return str(address[0]) if isinstance(address, tuple) and address else str(address or "local")


def peer_of(address: Any) -> str:
    """A socket's address as people write it."""
    if not isinstance(address, tuple) or len(address) < 2:
        return host_of(address)
    host = host_of(address)
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def hang_up(sock: Any) -> None:
    """End a connection both ways; whoever waits for it is woken."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        sock.shutdown(socket.SHUT_RDWR)


class Guest:
    """A connection from the moment when it is accepted, with the greenlet that looks after it."""

    def __init__(self, address: Any, greenlet: Any) -> None:
        self.host, self._peer, self._greenlet = host_of(address), peer_of(address), greenlet
        self.connection: Connection | None = None  # once there is no TLS to wait for

    def turn_out(self, why: str) -> None:
        """End it."""
        if self.connection is not None:
            self.connection.end(why)
        else:
            SAID.say(self.host, f"{self._peer}: {why}; connection closed")
            hub.kill(self._greenlet)


class Connection(Protocol):
    """A connection whose bytes are read (:class:`fairq_ryu.ryu_compat.batched_io.SwitchConnection`)."""

    address: Any
    ended: bool

    def end(self, reason: str) -> None:
        """Close it; ``reason`` goes into the log."""

    def answers(self, seconds: float) -> bool:
        """Whether the peer answers an echo request within ``seconds``."""
        ...


class Doorway:
    """The connections there are, by the greenlets that look after them."""

    def __init__(self) -> None:
        self.most = MOST
        self.guests: dict[Any, Guest] = {}
        self.waiting: dict[Any, Guest] = {}  # those before the end of their handshake, the oldest first
        self.by_dpid: dict[int, Connection] = {}

    def admit(self, address: Any) -> bool:
        """Is there room for one more? The oldest of those that wait for their handshake makes it."""
        host = host_of(address)
        if len(self.guests) >= self.most:
            SAID.say(host, f"{peer_of(address)}: {len(self.guests)} connections are the limit; refused")
            return False
        of_one = [guest for guest in self.waiting.values() if guest.host == host]
        if len(of_one) >= MOST_WAITING_OF_ONE:
            self._turn_out(
                of_one[0], f"{len(of_one)} connections from its address have not completed the handshake"
            )
        elif len(self.waiting) >= MOST_WAITING:
            oldest = next(iter(self.waiting.values()))
            self._turn_out(oldest, f"{len(self.waiting)} connections have not completed the handshake")
        return True

    def _turn_out(self, guest: Guest, why: str) -> None:
        for greenlet in [each for each, its in self.waiting.items() if its is guest]:
            del self.waiting[greenlet]
        guest.turn_out(f"{why}, and this is the oldest")

    def enter(self, address: Any, greenlet: Any) -> None:
        """A connection has been accepted."""
        self.guests[greenlet] = self.waiting[greenlet] = Guest(address, greenlet)

    def leave(self) -> None:
        """The connection of this greenlet is over."""
        self.guests.pop(hub.getcurrent(), None)
        self.waiting.pop(hub.getcurrent(), None)

    @contextlib.contextmanager
    def served(self, connection: Connection) -> Iterator[None]:
        """For as long as OpenFlow is spoken with this greenlet's peer."""
        guest = self.guests.get(hub.getcurrent())
        if guest is not None:
            guest.connection = connection
        try:
            yield
        finally:
            for dpid in [dpid for dpid, each in self.by_dpid.items() if each is connection]:
                del self.by_dpid[dpid]

    def joined(self) -> None:
        """The handshake of this greenlet's connection is over."""
        self.waiting.pop(hub.getcurrent(), None)

    def claim(self, connection: Connection, dpid: int) -> None:
        """A connection says which switch it is. Raises :class:`Refused` if that switch is connected, and
        answers; otherwise the former connection is over when this returns.
        """
        while (present := self.by_dpid.get(dpid)) not in (None, connection):
            assert present is not None
            if present.answers(ANSWER_TIME):
                peer = peer_of(present.address)
                raise Refused(
                    f"it claims datapath id {dpid:016x}, but that switch is connected from {peer} and answers"
                )
            present.end("no answer to an echo request, and the switch has connected again")
            until = time.monotonic() + ANSWER_TIME
            while self.by_dpid.get(dpid) is present and time.monotonic() < until:
                hub.sleep(0.01)
            if self.by_dpid.get(dpid) is present:
                raise Refused(f"the earlier connection of switch {dpid:016x} is not closed yet")
        if connection.ended:
            raise Refused("it has gone")
        self.by_dpid[dpid] = connection


DOORWAY = Doorway()


def _fit_descriptors() -> int:
    """Let the process have as many file descriptors as it may need. Returns how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + _SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST if soft == resource.RLIM_INFINITY else max(16, min(MOST, soft - _SPARE_DESCRIPTORS))


def make_server(serve: Callable[[Any, Any], None]) -> type:
    """A class of servers that hand connections to ``serve``, after the TLS handshake if there is one."""

    class Server(hub.StreamServer):
        """Accepts connections whatever happens to the last one."""

        def __init__(self, listen_info: Any, handle: Any = None, **tls: Any) -> None:
            super().__init__(listen_info, self._greeted, **tls)
            self._tls = bool(tls)
            self._timers: dict[Any, Any] = {}

        def serve_forever(self) -> None:
            DOORWAY.most = _fit_descriptors()
            while True:
                try:
                    sock, address = self.server.accept()
                except OSError as error:
                    if error.errno not in _PASSING:
                        raise
                    SAID.say("accept", f"accept failed: {error.strerror}; will try again")
                    hub.sleep(_ACCEPT_AGAIN)
                    continue
                if DOORWAY.admit(address):
                    DOORWAY.enter(address, hub.spawn(self._look_after, sock, address))
                else:
                    sock.close()
                # Whoever connects again and again must not have the controller for itself.
                sock = None
                hub.sleep(0)

        def _look_after(self, sock: Any, address: Any) -> None:
            timer = self._timers[address] = hub.Timeout(HANDSHAKE_TIME) if self._tls else None
            try:
                self.handle(sock, address)
            except hub.Timeout as timeout:
                if timeout is not timer:
                    raise
                fault = f"no complete TLS handshake after {HANDSHAKE_TIME:g} s"
                SAID.say(host_of(address), f"{peer_of(address)}: {fault}; connection closed")
            except OSError as error:
                SAID.say(
                    host_of(address), f"{peer_of(address)}: TLS handshake failed: {error}; connection closed"
                )
            finally:
                self._has_tls(address)
                DOORWAY.leave()
                sock.close()

        def _has_tls(self, address: Any) -> None:
            timer = self._timers.pop(address, None)
            if timer is not None:
                timer.cancel()

        def _greeted(self, sock: Any, address: Any) -> None:
            self._has_tls(address)
            serve(sock, address)

    return Server

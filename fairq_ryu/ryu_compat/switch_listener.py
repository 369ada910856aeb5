"""The port where switches connect: limits on connections and handshakes, and one connection per datapath id.

Anybody who reaches the port can open connections. Connections whose handshake is not complete are limited in
number, in total and by address; the oldest is closed to make room. A new connection does not take the
datapath id of a connected switch that still answers.
"""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ryu.lib import hub

from fairq_ryu.channel.control_socket import send_again_soon
from fairq_ryu.model import dpid_text
from fairq_ryu.ryu_compat.accepting import Listening
from fairq_ryu.ryu_compat.limited_log import RateLimitedLog

LOG = logging.getLogger(__name__)
PEER_LOG = RateLimitedLog(LOG)
# HELLO, features and ports take a switch a few round trips; Open vSwitch itself gives up sooner. A controller
# that starts anew meets hundreds of switches at once.
HANDSHAKE_TIME = 10.0
# Connections whose handshake is not complete. In a Mininet network all switches have one address.
MAX_PENDING = 512
MAX_PENDING_PER_HOST = 256
# Connections in total, if the process has enough file descriptors for them and some to spare.
MAX_CONNECTIONS = 4096
_SPARE_DESCRIPTORS = 512
# When a connection claims the id of a connected switch, the present one must answer within these seconds.
ANSWER_TIME = 2.0


class Refused(Exception):
    """A connection must be closed; the text says why."""


def host_of(address: Any) -> str:
    """The host of a socket's address."""
    return str(address[0]) if isinstance(address, tuple) and address else str(address or "local")


def peer_of(address: Any) -> str:
    """A socket's address as text: ``host:port``."""
    if not isinstance(address, tuple) or len(address) < 2:
        return host_of(address)
    host = host_of(address)
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def shut_down(sock: Any) -> None:
    """Shut a socket down in both directions; greenlets that wait for it wake up."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        sock.shutdown(socket.SHUT_RDWR)


class AcceptedConnection:
    """A connection from the moment when it is accepted, with the greenlet that serves it."""

    def __init__(self, address: Any, greenlet: Any) -> None:
        self.host, self._peer, self._greenlet = host_of(address), peer_of(address), greenlet
        self.connection: Connection | None = None  # None during the TLS handshake

    def close(self, why: str) -> None:
        """Close it; ``why`` goes into the log."""
        if self.connection is not None:
            self.connection.end(why)
        else:
            PEER_LOG.warning(self.host, f"{self._peer}: {why}; connection closed")
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


class ConnectionRegistry:
    """All connections, by the greenlets that serve them."""

    def __init__(self) -> None:
        self.max_connections = MAX_CONNECTIONS
        self.accepted: dict[Any, AcceptedConnection] = {}
        self.pending: dict[Any, AcceptedConnection] = {}  # handshake not complete, oldest first
        self.by_dpid: dict[int, Connection] = {}

    def admit(self, address: Any) -> bool:
        """Whether one more connection may be accepted. May close the oldest pending one to make room."""
        host = host_of(address)
        if len(self.accepted) >= self.max_connections:
            PEER_LOG.warning(
                host, f"{peer_of(address)}: {len(self.accepted)} connections are the limit; refused"
            )
            return False
        from_host = [each for each in self.pending.values() if each.host == host]
        if len(from_host) >= MAX_PENDING_PER_HOST:
            self._close_oldest(
                from_host[0],
                f"{len(from_host)} connections from its address have not completed the handshake",
            )
        elif len(self.pending) >= MAX_PENDING:
            oldest = next(iter(self.pending.values()))
            self._close_oldest(oldest, f"{len(self.pending)} connections have not completed the handshake")
        return True

    def _close_oldest(self, oldest: AcceptedConnection, why: str) -> None:
        for greenlet in [each for each, its in self.pending.items() if its is oldest]:
            del self.pending[greenlet]
        oldest.close(f"{why}, and this is the oldest")

    def add(self, address: Any, greenlet: Any) -> None:
        """A connection has been accepted."""
        self.accepted[greenlet] = self.pending[greenlet] = AcceptedConnection(address, greenlet)

    def remove(self) -> None:
        """The connection of the current greenlet has ended."""
        self.accepted.pop(hub.getcurrent(), None)
        self.pending.pop(hub.getcurrent(), None)

    @contextlib.contextmanager
    def served(self, connection: Connection) -> Iterator[None]:
        """The context in which the current greenlet serves a connection, after TLS."""
        accepted = self.accepted.get(hub.getcurrent())
        if accepted is not None:
            accepted.connection = connection
        try:
            yield
        finally:
            for dpid in [dpid for dpid, each in self.by_dpid.items() if each is connection]:
                del self.by_dpid[dpid]

    def handshake_complete(self) -> None:
        """The handshake of the current greenlet's connection is complete."""
        self.pending.pop(hub.getcurrent(), None)

    def claim(self, connection: Connection, dpid: int) -> None:
        """A connection reports its datapath id. Raises :class:`Refused` if a switch with this id is connected
        and answers; otherwise the earlier connection is closed when this returns.
        """
        while (present := self.by_dpid.get(dpid)) not in (None, connection):
            assert present is not None
            if present.answers(ANSWER_TIME):
                peer = peer_of(present.address)
                raise Refused(
                    f"it claims datapath id {dpid_text(dpid)}, but that switch is connected from {peer}"
                    " and answers"
                )
            present.end("no answer to an echo request, and the switch has connected again")
            until = time.monotonic() + ANSWER_TIME
            while self.by_dpid.get(dpid) is present and time.monotonic() < until:
                hub.sleep(0.01)
            if self.by_dpid.get(dpid) is present:
                raise Refused(f"the earlier connection of switch {dpid_text(dpid)} is not closed yet")
        if connection.ended:
            raise Refused("it has closed")
        self.by_dpid[dpid] = connection


CONNECTIONS = ConnectionRegistry()


def _fit_descriptors() -> int:
    """Raise the limit of file descriptors as far as needed. Returns how many connections fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + _SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(16, min(MAX_CONNECTIONS, soft - _SPARE_DESCRIPTORS))


def make_server(serve: Callable[[Any, Any], None]) -> type:
    """A server class that calls ``serve`` for each connection, after the TLS handshake if there is one."""

    class Server(hub.StreamServer):
        """Accepts connections, also after a failure of ``accept``."""

        def __init__(self, listen_info: Any, handle: Any = None, **tls: Any) -> None:
            super().__init__(listen_info, self._tls_complete, **tls)
            send_again_soon(self.server)
            self._tls = bool(tls)
            self._timers: dict[Any, Any] = {}

        def serve_forever(self) -> None:
            CONNECTIONS.max_connections = _fit_descriptors()
            listening = Listening(self.server, lambda text: PEER_LOG.warning("accept", text))
            while True:
                sock, address = listening.accept()
                if CONNECTIONS.admit(address):
                    CONNECTIONS.add(address, hub.spawn(self._serve, sock, address))
                else:
                    sock.close()
                # A peer that connects again and again must not keep other greenlets from running.
                sock = None
                hub.sleep(0)

        def _serve(self, sock: Any, address: Any) -> None:
            timer = self._timers[address] = hub.Timeout(HANDSHAKE_TIME) if self._tls else None
            try:
                self.handle(sock, address)
            except hub.Timeout as timeout:
                if timeout is not timer:
                    raise
                fault = f"no complete TLS handshake after {HANDSHAKE_TIME:g} s"
                PEER_LOG.warning(host_of(address), f"{peer_of(address)}: {fault}; connection closed")
            except OSError as error:
                PEER_LOG.warning(
                    host_of(address), f"{peer_of(address)}: TLS handshake failed: {error}; connection closed"
                )
            finally:
                self._cancel_timer(address)
                CONNECTIONS.remove()
                sock.close()

        def _cancel_timer(self, address: Any) -> None:
            timer = self._timers.pop(address, None)
            if timer is not None:
                timer.cancel()

        def _tls_complete(self, sock: Any, address: Any) -> None:
            self._cancel_timer(address)
            serve(sock, address)

    return Server

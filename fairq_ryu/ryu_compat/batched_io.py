"""Connections to switches: a peer that sends bad messages or does not read ends its own connection only.

Received bytes are read in batches and checked before Ryu decodes them. Queued messages are sent in batches,
and no greenlet waits for a peer that does not read. All that a connection keeps is limited.
"""

from __future__ import annotations

import logging
import ssl
import struct
import time
from collections import deque
from typing import Any

from ryu.base import app_manager as _first  # noqa: F401 (the controller module cannot be imported before it)
from ryu.controller import controller, ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import wellformed
from fairq_ryu.channel.framing import HEADER
from fairq_ryu.channel.layouts import Malformed
from fairq_ryu.channel.wellformed import Phase
from fairq_ryu.model import dpid_text
from fairq_ryu.ryu_compat import (
    connection_class,
    direct_replies,
    segment_packet_ins,
    switch_listener,
)
from fairq_ryu.ryu_compat.switch_listener import Refused

LOG = logging.getLogger(__name__)
# Limits of the send queue of one switch. When links fail, all its rules may be sent at once: 100,000 pinned
# flows are 200,000 messages of 120 bytes. A peer that reads nothing for Ryu's socket_timeout (5 s) ends
# sooner.
MAX_UNSENT_BYTES = 64 << 20
MAX_UNSENT = 1 << 18
# With more than this queued, no echo reply is added: a peer could make the controller store its bytes.
_MAX_UNSENT_ECHO_BYTES = 1 << 20
_MAX_UNSENT_ECHOES = 4096
_READ_BYTES = 1 << 16
# A message must be complete this many seconds after its first byte; the longest has 65,535 bytes.
MESSAGE_TIME = 10.0
# Other greenlets run after this many seconds of receiving. When 50 peers flood, each waits for 49 of these.
_SLICE = 0.0005
# A call that has taken longer, seconds, has waited, and other greenlets have run.
_WAITED = 0.0002
# What is not handled of a switch that is another controller's.
_OF_OWNERS = {
    wellformed.EXPERIMENTER,
    wellformed.FLOW_REMOVED,
    wellformed.MULTIPART_REPLY,
    wellformed.PACKET_IN,
}
# The largest number of ports of a bridge (OFPP_MAX of OpenFlow 1.0 and Open vSwitch).
_MAX_PORTS = 0xFF00
# Port descriptions before the handshake is complete, in messages of 1,023 ports each.
_MAX_PORT_MESSAGES = 64
_DPID = struct.Struct("!Q")


class SendQueue:
    """Messages to be sent: pairs of their bytes and whether the connection is closed after them."""

    def __init__(self) -> None:
        self._parts: deque[tuple[bytes, bool]] = deque()
        self._queued = hub.Event()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._parts)

    def __bool__(self) -> bool:
        return True

    @property
    def full(self) -> bool:
        """Whether more is queued than the limits allow."""
        return self.bytes > MAX_UNSENT_BYTES or len(self._parts) > MAX_UNSENT

    def put(self, data: bytes, last: bool) -> None:
        """Add a message. Never waits."""
        self._parts.append((data, last))
        self.bytes += len(data)
        if not self._queued.is_set():
            self._queued.set()

    def take(self) -> tuple[bytes, bool]:
        """All queued bytes, up to a message that closes the connection. Waits until there are any."""
        while not self._parts:
            self._queued.clear()
            self._queued.wait()
        found, last = [], False
        while self._parts and not last:
            data, last = self._parts.popleft()
            found.append(data)
        return b"".join(found), last

    def sent(self, size: int) -> None:
        """``size`` bytes were sent."""
        self.bytes -= size


class SwitchConnection(controller.Datapath):
    """Ryu's class for a connection, with limits. ``owned``: the switch is this controller's; of one that is
    not, only its role and its ports are of interest.
    """

    owned = True

    def __init__(self, sock: Any, address: Any) -> None:
        super().__init__(sock, address)
        self.send_q: SendQueue | None = SendQueue()
        self.heard = time.monotonic()
        self.joined = False  # the handshake is complete
        self.ended = False
        self._began = self._part_began = self.heard
        self._turn_ends = self.heard + _SLICE
        self._port_messages = 0

    @property
    def host(self) -> str:
        """The peer's address without its port."""
        return switch_listener.host_of(self.address)

    def __str__(self) -> str:
        peer = switch_listener.peer_of(self.address)
        return peer if self.id is None else f"{peer} (switch {dpid_text(self.id)})"

    def end(self, reason: str) -> None:
        """End this connection, with one line in the log. Never waits."""
        if self.ended:
            return
        self.ended = True
        switch_listener.PEER_LOG.warning(self.host, f"{self}: {reason}; connection closed")
        self.send_q = None
        switch_listener.shut_down(self.socket)

    def close(self) -> None:
        """End this connection, as Ryu does when its peer leaves echo requests unanswered. Ryu shuts down one
        direction only, which a greenlet that waits for the other does not notice.
        """
        super().close()
        switch_listener.shut_down(self.socket)

    # Sending

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Queue bytes. Never waits. Returns False if the connection has ended."""
        queue = self.send_q
        if queue is None:
            return False
        queue.put(buf, close_socket)
        if queue.full:
            self.end(f"it does not read: {queue.bytes} bytes in {len(queue)} messages are queued")
            return False
        return True

    def _send_loop(self) -> None:
        queue = self.send_q
        try:
            last = False
            while queue is not None and not last and not self.ended:
                data, last = queue.take()
                self.socket.sendall(data)
                queue.sent(len(data))
        except TimeoutError:
            self.end(f"it has read nothing for {self.socket.gettimeout():g} s")
        except OSError as error:
            LOG.debug("%s: %s", self, error)
        finally:
            self.send_q = None
            self._close_write()

    # Receiving

    def _recv_loop(self) -> None:
        rest = b""
        try:
            # The greenlets that Ryu has just spawned begin. One that is killed before is kept, with this
            # connection, by the traceback in its own result until a full collection of garbage.
            hub.sleep(0)
            while not self.ended and self.state != DEAD_DISPATCHER:
                asked = time.monotonic()
                data = self._receive()
                if data == b"":
                    break
                now = time.monotonic()
                if now - asked > _WAITED:  # other greenlets have run
                    self._turn_ends = now + _SLICE
                if data:
                    self.heard = now
                    if not rest:
                        self._part_began = now
                    whole = rest + data if rest else data
                    rest = self._take(whole)
                    if len(rest) < len(whole):
                        self._part_began = now
                self._check_time(now, bool(rest))
                self._yield()  # a message may come in many pieces
        except Refused as refused:
            self.end(str(refused))
        finally:
            self.ended = True
            try:
                self.socket.close()
            except OSError as error:
                LOG.debug("%s: %s", self, error)

    def _receive(self) -> bytes | None:
        """Received bytes; empty at the end; None if nothing came within the socket's timeout."""
        try:
            found: bytes = self.socket.recv(_READ_BYTES)
        except TimeoutError:
            return None
        except ssl.SSLError as error:
            return None if "timed out" in str(error) else b""
        except (EOFError, OSError):
            return b""
        return found

    def _check_time(self, now: float, part: bool) -> None:
        waits = not self.joined and self._phase() != Phase.JOINED
        if waits and now - self._began > switch_listener.HANDSHAKE_TIME:
            raise Refused(f"no complete handshake after {switch_listener.HANDSHAKE_TIME:g} s")
        if part and now - self._part_began > MESSAGE_TIME:
            raise Refused(f"incomplete message after {MESSAGE_TIME:g} s")

    def _take(self, data: bytes) -> bytes:
        """Handle the complete messages in received bytes; the rest."""
        start = 0
        while len(data) - start >= HEADER.size and not self.ended:
            version, kind, length, xid = HEADER.unpack_from(data, start)
            try:
                phase = self._phase()
                wellformed.check_header(version, kind, length, phase)
                if len(data) - start < length:
                    break
                message = data[start : start + length]
                start += length
                wellformed.check(message, phase)
            except Malformed as error:
                raise Refused(f"malformed {wellformed.name(kind)}: {error}") from None
            self._handle(version, kind, xid, message)
            self._yield()
        return data[start:]

    def _yield(self) -> None:
        """Let other greenlets run from time to time: a socket with data never does."""
        if time.monotonic() > self._turn_ends:
            hub.sleep(0)
            self._turn_ends = time.monotonic() + _SLICE

    def _phase(self) -> Phase:
        if self.joined:
            return Phase.JOINED
        if self.state == MAIN_DISPATCHER:
            self.joined = True
            switch_listener.CONNECTIONS.handshake_complete()
            return Phase.JOINED
        return Phase.GREETING if self.state == HANDSHAKE_DISPATCHER else Phase.JOINING

    def _handle(self, version: int, kind: int, xid: int, message: bytes) -> None:
        if kind == wellformed.HELLO:
            if self.state != HANDSHAKE_DISPATCHER:
                return  # repeated
            self._check_version(message)
            # Versions are checked here, without Ryu, which does not know how the elements are padded.
            version, message = ofp.OFP_VERSION, message[: HEADER.size]
        elif not self.joined and kind in wellformed.ASYNCHRONOUS:
            return  # no handler is active yet
        elif self.joined and (self._is_of_another(kind) or self._taken(kind, message)):
            return
        elif not self.joined and kind == wellformed.ERROR:
            raise Refused("it sent error type {} code {}".format(*struct.unpack_from("!HH", message, 8)))
        elif kind == wellformed.ECHO_REQUEST and self._unread():
            return  # it requests faster than it reads the replies
        elif kind == wellformed.FEATURES_REPLY:
            self._check_dpid(_DPID.unpack_from(message, 8)[0])
        elif kind == wellformed.MULTIPART_REPLY and not self.joined:
            self._port_messages += 1
            if self.id is None:
                raise Refused("port description before FEATURES_REPLY")
            if self._port_messages > _MAX_PORT_MESSAGES:
                raise Refused("it has more ports than a bridge can have")
        elif kind == wellformed.PORT_STATUS and len(getattr(self, "ports", ())) > _MAX_PORTS:
            raise Refused("it has more ports than a bridge can have")
        self._dispatch(version, kind, xid, message)

    def _is_of_another(self, kind: int) -> bool:
        """Whether a message concerns the owner of the switch only, which is another controller."""
        return not self.owned and kind in _OF_OWNERS

    def _taken(self, kind: int, message: bytes) -> bool:
        """Whether a message was handled without Ryu's events."""
        if kind == wellformed.PACKET_IN:
            return segment_packet_ins.take(self, message)
        return kind == wellformed.MULTIPART_REPLY and direct_replies.take(self, message)

    def _unread(self) -> bool:
        queue = self.send_q
        return queue is None or queue.bytes > _MAX_UNSENT_ECHO_BYTES or len(queue) > _MAX_UNSENT_ECHOES

    def _check_version(self, hello: bytes) -> None:
        if wellformed.offers_1_3(hello):
            return
        refusal = parser.OFPErrorMsg(
            self, ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE, b"OpenFlow 1.3 is what is spoken here"
        )
        self.send_msg(refusal, close_socket=True)
        hub.sleep(0)
        raise Refused("it does not offer OpenFlow 1.3 (ovs-vsctl set bridge BRIDGE protocols=OpenFlow13)")

    def _check_dpid(self, dpid: int) -> None:
        if self.id is not None and self.id != dpid:
            raise Refused(f"it changes its datapath id to {dpid_text(dpid)}")
        switch_listener.CONNECTIONS.claim(self, dpid)

    def _dispatch(self, version: int, kind: int, xid: int, message: bytes) -> None:
        """Do what Ryu's own loop does with a message."""
        try:
            decoded = parser.msg_parser(self, version, kind, len(message), xid, message)
            event = ofp_event.ofp_msg_to_ev(decoded)
            brick = self.ofp_brick
            if brick is None:
                return
            brick.send_event_to_observers(event, self.state)
            for handler in brick.get_handlers(event):
                if self.state in handler.callers[event.__class__].dispatchers:
                    handler(event)
        except Refused:
            raise
        except Exception as error:
            LOG.debug("%s: %s", self, wellformed.name(kind), exc_info=True)
            what = f"{type(error).__name__}: {error}"[:200]
            raise Refused(f"{wellformed.name(kind)} cannot be decoded: {what}") from None

    # Others with the same datapath id

    def answers(self, seconds: float) -> bool:
        """Whether the peer sends anything within ``seconds`` of an echo request."""
        asked = time.monotonic()
        self.send_msg(parser.OFPEchoRequest(self))
        while not self.ended and time.monotonic() < asked + seconds:
            hub.sleep(0.02)
            if self.heard > asked:
                return not self.ended
        return False


def serve(sock: Any, address: Any) -> None:
    """Serve one connection, from its first byte to its last."""
    try:
        connection = SwitchConnection(sock, address)
    except OSError as error:  # the peer has closed already
        LOG.debug("%s: %s", switch_listener.peer_of(address), error)
        sock.close()
        return
    with switch_listener.CONNECTIONS.served(connection):
        try:
            connection.serve()
        except Exception as error:  # a fault of ours ends this connection, and no other
            LOG.exception("%s: %s", connection, error)
        finally:
            connection.close()


def register() -> None:
    """Make Ryu use these connections."""
    connection_class.serve_switches(switch_listener.make_server(serve), serve)

"""One controller's connection to the agent, without a socket: framing, handshake, state.

    bytes -> whole messages -> HELLO exchange, once -> handlers of requests -> replies

Requests are answered in :mod:`fairq_ryu.agent.requests`. Bounded: the buffer holds one incomplete message (64
KiB; 1 KiB before the HELLO), and no requests are processed while the controller leaves replies unread. A
reply in many messages is sent as the controller reads them: it is a slow reader's own time, and no reason to
end its connection.
"""

from __future__ import annotations

import logging
import math
import struct
import time
from collections.abc import Callable, Iterator

from fairq_ryu.agent import messages
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.agent.requests import HANDLERS
from fairq_ryu.channel import far_queues, framing, port_mode, recovery, tenants, wellformed, window_law
from fairq_ryu.channel.framing import HEADER
from fairq_ryu.channel.layouts import Malformed
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.wellformed import Phase
from fairq_ryu.errors import plain

log = logging.getLogger(__name__)
# Requests that consist of the header alone.
_EMPTY = (ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_GET_CONFIG_REQUEST, ofp.OFPT_BARRIER_REQUEST)
# While a controller has left more bytes unread, it gets no dropped packets and no replies.
_MAX_UNREAD = 1 << 20
# The next message of a long reply is sent when fewer bytes are unread.
_NEXT_BELOW = 256 << 10
# Messages allowed before the controller's HELLO, and their length in bytes.
_BEFORE_HELLO = (ofp.OFPT_HELLO, ofp.OFPT_ERROR, ofp.OFPT_ECHO_REQUEST, ofp.OFPT_ECHO_REPLY)
_MAX_BEFORE_HELLO = 1024
# Header, type and code of an error.
_ERROR = ofp.OFP_ERROR_MSG_SIZE


class ControllerSession:
    """One controller's connection. ``send`` takes bytes to it; :meth:`receive` takes bytes from it.

    Implements :class:`fairq_ryu.agent.openflow_server.Session`.
    """

    def __init__(
        self, server: OpenFlowServer, send: Callable[[bytes], None], unread: Callable[[], int] = lambda: 0
    ) -> None:
        """``unread`` returns the number of bytes that wait to be sent."""
        self.server, self._send, self._unread = server, send, unread
        self._buffer = bytearray()
        self._answer: Iterator[bytes] | None = None  # the rest of a long reply
        self._part_began: float | None = None
        self.greeted = False
        self.fault = ""  # why the session was closed: the peer sent what is not OpenFlow, or refuses us
        self.refused = False  # by the controller
        self._peaks: dict[int, int] = {}
        self.role = ofp.OFPCR_ROLE_EQUAL
        self.closed = False
        server.sessions.append(self)
        send(messages.hello(1))

    def close(self) -> None:
        """The connection has ended."""
        self.closed = True
        if self in self.server.sessions:
            self.server.sessions.remove(self)
        if self.server.master is self:
            self.server.master = None
        self.server.forget_session(self, time.monotonic_ns())

    @property
    def ready(self) -> bool:
        return (
            self.greeted
            and not self.closed
            and self.role != ofp.OFPCR_ROLE_SLAVE
            and self._unread() < _MAX_UNREAD
        )

    def send(self, data: bytes) -> None:
        self._send(data)

    def send_all(self, answer: Iterator[bytes]) -> None:
        """Send the messages of a reply, as many as the peer has room for. The next calls of :meth:`receive`
        send the others, and process no request before.
        """
        self._answer = answer
        self._send_more()

    def _send_more(self) -> bool:
        """Send more of a reply, if the peer has read. Returns whether some of it is left."""
        while self._answer is not None and self._unread() < _NEXT_BELOW:
            data = next(self._answer, None)
            if data is None:
                self._answer = None
            else:
                self._send(data)
        return self._answer is not None

    def push(self, data: bytes) -> None:
        if self.greeted and not self.closed:
            self._send(data)

    def ping(self) -> None:
        """Send an echo request."""
        self.push(framing.message(ofp.OFPT_ECHO_REQUEST, 2))

    def keep_peaks(self, states: dict[int, QueueState]) -> None:
        for port, state in states.items():
            self._peaks[port] = max(self._peaks.get(port, 0), state.peak)

    def take_peak(self, port: int, backlog: int) -> int:
        return max(self._peaks.pop(port, 0), backlog)

    def receive(self, data: bytes, seconds: float = math.inf) -> bool:
        """Process bytes from the controller, in any pieces. Sets :attr:`closed` if they are not OpenFlow.

        Returns True if complete messages are left for the next call: after ``seconds``, or while the peer
        leaves too many bytes or a part of a long reply unread.
        """
        if self.closed:
            return False
        until = time.monotonic() + seconds
        self._buffer += data
        if self._send_more():
            return True
        while not self.closed and len(self._buffer) >= HEADER.size:
            version, kind, length, _xid = HEADER.unpack_from(self._buffer)
            if length < HEADER.size:
                self._refuse(bytes(self._buffer[: HEADER.size]), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN)
                self._fail(f"length {length} in a header, less than the header's own {HEADER.size} bytes")
                return False
            if not self.greeted and (kind not in _BEFORE_HELLO or length > _MAX_BEFORE_HELLO):
                self._fail(f"a message of type {kind} and {length} bytes before its HELLO")
                return False
            if len(self._buffer) < length:
                break
            request = bytes(self._buffer[:length])
            del self._buffer[:length]
            self._part_began = None
            self._handle(version, kind, request)
            if time.monotonic() > until or self._unread() > _MAX_UNREAD or self._answer is not None:
                return not self.closed
        if not self._buffer:
            self._part_began = None
        elif self._part_began is None:
            self._part_began = time.monotonic()
        return False

    def incomplete_since(self, now: float) -> float:
        """The time since the first byte of an incomplete message, seconds; 0 if there is none."""
        return 0.0 if self._part_began is None else now - self._part_began

    def _fail(self, fault: str) -> None:
        self.fault, self.closed = fault, True
        self._buffer.clear()

    def _refuse(self, request: bytes, kind: int, code: int, reason: str = "") -> None:
        self._send(messages.error(kind, code, request, reason))

    def _handle(self, version: int, kind: int, request: bytes) -> None:
        if kind == ofp.OFPT_HELLO:
            self._hello(version, request)
            return
        if version != ofp.OFP_VERSION:
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_VERSION)
            return
        if kind == ofp.OFPT_ERROR:
            self._error(request)
            return
        if kind == ofp.OFPT_ECHO_REPLY:
            return
        handler = HANDLERS.get(kind)
        if handler is None:
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_TYPE)
            return
        if kind in _EMPTY and len(request) != HEADER.size:
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN)
            return
        try:
            handler(self, request, HEADER.unpack_from(request)[3])
        except OpenFlowError as refusal:
            log.debug("refused: %s", refusal)
            ours = refusal.type == ofp.OFPET_EXPERIMENTER
            explained = (
                window_law.ERRORS | recovery.ERRORS | port_mode.ERRORS | far_queues.ERRORS | tenants.ERRORS
            )
            reason = str(refusal) if ours and refusal.code in explained else ""
            self._refuse(request, refusal.type, refusal.code, reason)
        except BpfError as error:
            log.error("%s", error)
            if kind == ofp.OFPT_FLOW_MOD:
                self._refuse(request, ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
            else:
                self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)
        except Exception:
            # A fault of the agent must not end the sessions of other controllers.
            log.exception("a message of type %d could not be answered", kind)
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)

    def _error(self, error: bytes) -> None:
        """A controller that cannot use an agent says why, and closes the connection."""
        kind, code = struct.unpack_from("!HH", error, HEADER.size) if len(error) >= _ERROR else (None, None)
        if (kind, code) == (ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE):
            self.refused = True
            self._fail(f"it refuses this agent: {plain(error[_ERROR:].decode('utf-8', 'replace'))}")

    def _hello(self, version: int, request: bytes) -> None:
        try:
            wellformed.check(request, Phase.GREETING)
        except Malformed as error:
            self._refuse(request, ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
            self._fail(f"malformed HELLO: {error}")
            return
        if wellformed.offers_1_3(request):
            self.greeted = True
            return
        self._refuse(request, ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
        self._fail(f"its HELLO of version {version:#04x} does not offer OpenFlow 1.3")

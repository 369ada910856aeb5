"""Bytes from a socket, through all code that reads them, in this process: that of the controller and of the
agent.

A target takes the bytes of a peer and returns the outcome as a text. It raises :class:`Fault` if the
connection does not end in an orderly way.
"""

import logging
import re
import sys
import time
from unittest import mock

from ryu.base import app_manager
from ryu.controller import ofp_event, ofp_handler
from ryu.controller.handler import MAIN_DISPATCHER
from ryu.lib import hub

from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.apps import settings
from fairq_ryu.channel.segment_copies import COOKIE_COPY
from fairq_ryu.control.arrivals.packet_ins import COPIES
from fairq_ryu.rest import handler as rest
from fairq_ryu.rest import setup
from fairq_ryu.ryu_compat import batched_io, direct_replies, segment_packet_ins, switch_listener
from tests.support.fakes import FakeDatapath

# Limit of CPU time for an input, seconds: a lease is two.
MAX_SECONDS = 1.0


class Fault(BaseException):
    """An outcome that no peer may cause. Not an Exception, so that no handler on the way catches it."""


class Script:
    """A socket whose peer sends these pieces and does not read."""

    def __init__(self, pieces):
        self.pieces = list(pieces)
        self.sent = 0

    def recv(self, _size):
        return self.pieces.pop(0) if self.pieces else b""

    def sendall(self, data):
        self.sent += len(data)

    def gettimeout(self):
        return 5.0

    def setsockopt(self, *_about):
        pass

    settimeout = shutdown = close = setsockopt


class Brick:
    """Ryu's handler of the handshake, and the application; events are delivered at once."""

    def __init__(self, handshake, apps):
        self.handshake, self.apps = handshake, apps
        self.events = {}
        observed = ofp_event.EventOFPPacketIn, ofp_event.EventOFPExperimenterStatsReply
        self.observers = {each: dict.fromkeys(["the application"]) for each in observed}

    def get_handlers(self, event, state=None):
        return self.handshake.get_handlers(event, state)

    def send_event_to_observers(self, event, state=None):
        self.events[type(event).__name__] = self.events.get(type(event).__name__, 0) + 1
        for app in self.apps:
            for handler in app.get_handlers(event, state):
                try:
                    handler(event)
                except Exception as error:
                    raise Fault(f"{handler.__qualname__}: {type(error).__name__}: {error}") from error


def fault(text):
    """A frame has failed, and that was logged."""
    raise Fault(text) from sys.exception()


def plain(text):
    """A log line without its numbers: lines of the same kind are equal."""
    return re.sub(r"0x[0-9a-f]+|[0-9a-f]{16}|[0-9]+", "#", text)


class ControllerTarget:
    """The receiving side of a controller, from the socket to the handlers of an application of ours."""

    def __init__(self, way, app):
        config = settings.loader.Config({("fairq_ryu", "way"): way})
        nothing = mock.patch.multiple(settings, check_port=lambda: None, load=lambda: config)
        with (
            nothing,
            mock.patch.object(rest, "check_port", lambda: None),
            mock.patch.object(setup, "register", lambda *_: None),
            mock.patch.object(hub, "spawn"),
        ):
            self.app = app(wsgi=None)
        self.handshake = ofp_handler.OFPHandler()
        for app in (self.app, self.handshake):
            app_manager.register_instance(app)
        self.brick = Brick(self.handshake, [self.app])
        self.app.logger.setLevel(logging.ERROR)
        self.handshake.logger.setLevel(logging.CRITICAL)

    def run(self, data, pieces=1):
        """The outcome of a connection on which a peer sends ``data``."""
        size = max(1, -(-len(data) // pieces))
        sock = Script(data[at : at + size] for at in range(0, len(data), size))
        warnings = []
        began = time.process_time()
        agents = self.app.agent_messages
        copies = {COPIES: (self.app.packet_ins.segment_copy, None), COOKIE_COPY: (agents.segment_copy, None)}
        replies = [(agents.direct_reply, lambda _: True)]
        with (
            mock.patch.object(segment_packet_ins, "_takers", copies),
            mock.patch.object(segment_packet_ins.LOG, "exception", fault),
            mock.patch.object(direct_replies, "_takers", replies),
            mock.patch.object(direct_replies.LOG, "exception", fault),
            mock.patch.object(switch_listener.PEER_LOG, "warning", lambda _peer, text: warnings.append(text)),
            mock.patch.object(batched_io.SwitchConnection, "answers", lambda *_: False),
            mock.patch.object(hub, "spawn"),
            mock.patch.object(hub, "sleep"),
        ):
            switch = batched_io.SwitchConnection(sock, ("test", 1))
            switch.ofp_brick = self.brick
            with switch_listener.CONNECTIONS.served(switch):
                switch._recv_loop()
                joined = switch.state == MAIN_DISPATCHER
                switch.close()
            self._work()
        took = time.process_time() - began
        if took > MAX_SECONDS:
            raise Fault(f"{took:.1f} s for {len(data)} bytes")
        if len(warnings) > 1:
            raise Fault(f"more than one line: {warnings}")
        bridges = self.app.bridges.joining or self.app.fabric.bridges or self.app.windows.inventory.connected
        if switch_listener.CONNECTIONS.by_dpid or bridges:
            raise Fault("a connection that is over is still known")
        return plain(warnings[0].partition(": ")[2]) if warnings else f"end {joined}"

    def _work(self):
        """The work that the application does in its greenlets."""
        app = self.app
        now = time.monotonic()
        app.tracker.drain()
        app.records.drain()
        app.admission.drain()
        if app.fabric.stale:
            app.fabric.refresh()
        app.fabric.tick(now)
        app.fabric.decide_claims(now)
        app.gone.forget()
        idle = {dpid for dpid in app.gone.kept() if not app.flows.has_flows(dpid)}
        if any(not app.windows.busy(dpid) for dpid in idle):
            raise Fault(f"something is kept of switches that are not known: {idle}")


class AgentTarget:
    """The receiving side of an agent, on a datapath without eBPF."""

    def __init__(self):
        self.errors = []
        handler = logging.Handler(logging.ERROR)
        handler.emit = lambda record: self.errors.append(record.getMessage())
        logging.getLogger("fairq_ryu.agent.controller_session").addHandler(handler)

    def run(self, data, pieces=1):
        """The outcome of a connection on which a controller sends ``data``."""
        switch = OpenFlowServer("s1", 1, FakeDatapath(1, 2), 8)
        sent = bytearray()
        self.errors.clear()
        session = ControllerSession(switch, sent.extend, lambda: len(sent))
        size = max(1, -(-len(data) // pieces))
        began = time.process_time()
        for at in range(0, len(data), size):
            more = session.receive(data[at : at + size])
            while more:
                sent.clear()
                more = session.receive(b"")
        took = time.process_time() - began
        session.close()
        if took > MAX_SECONDS:
            raise Fault(f"{took:.1f} s for {len(data)} bytes")
        if self.errors:
            raise Fault(f"it is taken for a fault of ours: {self.errors}")
        if len(session._buffer) > (1 << 16):
            raise Fault(f"{len(session._buffer)} bytes are kept")
        answers = {bytes(sent[1:2])} if sent else set()
        return plain(session.fault) or f"end {session.greeted} {sorted(answers)}"

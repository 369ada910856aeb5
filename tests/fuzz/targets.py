"""Bytes from a socket, through all code that reads them, in this process: that of the controller and of the
agent.

A target takes the bytes of a peer and returns the outcome as a text. It raises :class:`Fault` if the
connection does not end in an orderly way.
"""

import logging
import random
import re
import sys
import time
import zlib
from unittest import mock

from ryu.base import app_manager
from ryu.controller import ofp_event, ofp_handler
from ryu.controller.handler import MAIN_DISPATCHER
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.apps import cluster, settings
from fairq_ryu.channel import oxm
from fairq_ryu.channel.segment_copies import COOKIE_COPY
from fairq_ryu.control.arrivals.packet_ins import COPIES
from fairq_ryu.rest import handler as rest
from fairq_ryu.rest import setup
from fairq_ryu.ryu_compat import batched_io, direct_replies, segment_packet_ins, switch_listener
from tests.fuzz import messages
from tests.support.fakes import FakeDatapath
from tests.support.stub_database import StubDatabase

# Limit of CPU time for an input, seconds: a lease is two.
MAX_SECONDS = 1.0
_U64 = (1 << 64) - 1


class Fault(BaseException):
    """An outcome that no peer may cause. Not an Exception, so that no handler on the way catches it."""


class Script:
    """A socket whose peer sends these pieces and does not read; ``meanwhile`` is called before each."""

    def __init__(self, pieces, meanwhile=lambda _: None):
        self.pieces, self.meanwhile = list(pieces), meanwhile
        self.sent = 0

    def recv(self, _size):
        self.meanwhile(self)
        return self.pieces.pop(0) if self.pieces else b""

    def sendall(self, data):
        self.sent += len(data)

    def gettimeout(self):
        return 5.0

    def setsockopt(self, *_about):
        pass

    settimeout = shutdown = close = setsockopt


def by_message(data):
    """A stream, cut where messages end as their headers say."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        yield data[at : at + max(8, length)]
        at += max(8, length)


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

    owned = True  # a connection from its first message on

    def __init__(self, way, app, **among):
        values = {("fairq_ryu", "way"): way} | {("cluster", name): value for name, value in among.items()}
        config = settings.loader.Config(values)
        nothing = mock.patch.multiple(settings, check_port=lambda: None, load=lambda: config)
        with (
            nothing,
            mock.patch.object(rest, "check_port", lambda: None),
            mock.patch.object(setup, "register", lambda *_: None),
            mock.patch.object(hub, "spawn"),
            mock.patch.object(cluster, "Database", StubDatabase),
            mock.patch.object(batched_io.SwitchConnection, "owned", True),
        ):
            self.app = app(wsgi=None)
        self.handshake = ofp_handler.OFPHandler()
        for app in (self.app, self.handshake):
            app_manager.register_instance(app)
        self.brick = Brick(self.handshake, [self.app])
        self.app.logger.setLevel(logging.ERROR)
        self.handshake.logger.setLevel(logging.CRITICAL)

    def opening(self, dpid):
        """What a switch sends first."""
        return messages.handshake(dpid)

    def meanwhile(self, sock):
        """What happens before the peer sends more."""

    def pieces(self, data, count):
        """The stream as it comes."""
        size = max(1, -(-len(data) // count))
        return (data[at : at + size] for at in range(0, len(data), size))

    def run(self, data, pieces=1):
        """The outcome of a connection on which a peer sends ``data``."""
        sock = Script(self.pieces(data, pieces), self.meanwhile)
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
            mock.patch.object(batched_io.SwitchConnection, "owned", self.owned),
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


class ClusterTarget(ControllerTarget):
    """A controller among others that owns the bridge :data:`messages.DPID`. What happens between two pieces
    of a stream depends on the stream alone: there is time for a beat, and for a claim; another controller
    takes the bridge and is never heard of again; and a switch that sends message by message also answers and
    refuses roles.
    """

    owned = False
    _OTHER = "b/1"
    _MOST_ANSWERS = 12

    def __init__(self, way, app):
        among = {"database": "unix:/nowhere", "name": "a", "rest": "http://192.0.2.1:8080"}
        super().__init__(way, app, **among)
        self.owners, self.database = self.app.owners, self.app.owners.database
        self.me, self.now = self.owners.member.id, 0.0
        self.changes, self.rng, self.answers = [], random.Random(), 0
        roles = self.owners.roles
        roles.gained, roles.lost = self._noted("+", roles.gained), self._noted("-", roles.lost)
        roles.replied = self._checked(roles.replied)

    def opening(self, dpid):
        return messages.handshake(dpid, messages.GENERATION)

    def pieces(self, data, count):
        return by_message(data) if count == 1 else super().pieces(data, count)

    def run(self, data, pieces=1):
        self.changes, self.rng = [], random.Random(zlib.crc32(data))
        self.answers = self._MOST_ANSWERS if pieces == 1 else 0
        rows = self.database.tables
        rows["Controller"][:] = [row for row in rows["Controller"] if row.id == self.me]
        rows["Bridge"].clear()
        self.database.own(messages.DPID, self.me, messages.GENERATION)
        self._beat()
        outcome = super().run(data, pieces)
        self._beat()
        if self.owners.roles.reach() or self.owners.ownership._ahead:
            raise Fault("a connection that is over still has a role")
        # How often the switch was gained, where the stream was heard to its end.
        return f"{outcome} {min(3, self.changes.count('+'))}" if outcome.startswith("end") else outcome

    def meanwhile(self, sock):
        if self.rng.random() < 0.1:
            generation = self.owners.view.bridges[messages.DPID].generation
            self.database.beat(self._OTHER)
            self.database.own(messages.DPID, self._OTHER, generation + 1)
        if self.rng.random() < 0.7:
            self._beat()
        connection = next(iter(self.owners.roles._connections.values()), None)
        if connection is not None and sock.pieces and self.answers and self.rng.random() < 0.7:
            self.answers -= 1
            sock.pieces.insert(0, self._answer(connection))

    def _answer(self, connection):
        """What the switch says of roles: usually it confirms what it was asked for."""
        role, generation = connection.asked or (ofp.OFPCR_ROLE_EQUAL, 0)
        kind = self.rng.random()
        if kind < 0.5:
            return messages.role(role, generation)
        if kind < 0.7:
            return messages.role(
                self.rng.randrange(4), generation + self.rng.choice((-1, 0, 1, 1 << 61)) & _U64
            )
        if kind < 0.8:
            return messages.role(role, self.rng.getrandbits(64))
        return self.rng.choice((messages.ROLE_REFUSED, messages.IS_SLAVE))

    def _beat(self):
        self.now += 1.001 * self.owners.beat
        try:
            self.owners._step(self.now)
        except Exception as error:
            raise Fault(f"ownership: {type(error).__name__}: {error}") from error
        if self.database.refusals:
            raise Fault("the database refuses a claim")
        connections = self.owners.roles._connections
        held = {number for number, each in connections.items() if each.held}
        if held != {number for number, each in connections.items() if each.datapath.owned}:
            raise Fault("a switch is used that is another controller's, or one of its own is not")
        app = self.app
        if any(oxm.bridge_dpid(number) not in self.owners.view.owned(self.me) for number in held):
            raise Fault("a switch is held that the database has given to another controller")
        if (set(app.fabric.bridges) | app.windows.inventory.connected) - held:
            raise Fault("a bridge is used without the role of the master")
        if any(oxm.agent_dpid(dpid) not in held for dpid in app.windows.links):
            raise Fault("an agent is used without the role of the master")

    def _checked(self, replied):
        def reply(message):
            before = len(self.changes)
            answer = replied(message)
            owned = self.owners.view.owned(self.me).get(oxm.bridge_dpid(message.datapath.id))
            confirms = (message.role, message.generation_id) == (ofp.OFPCR_ROLE_MASTER, owned)
            if "+" in self.changes[before:] and not confirms:
                raise Fault("a switch is used that has not confirmed the role of the master")
            return answer

        return reply

    def _noted(self, sign, done):
        def change(*about):
            self.changes.append(sign)
            done(*about)

        return change


class AgentTarget:
    """The receiving side of an agent, on a datapath without eBPF."""

    def opening(self, _dpid):
        """What a controller sends first."""
        return messages.HELLO

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

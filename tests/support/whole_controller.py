"""A whole controller without root and without a network: an application with all its jobs and workers.

A bridge and an agent are made up: what they send comes as bytes. What the controller shows is asked for by
REST.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import webob
from ryu.app import wsgi as ryu_wsgi
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, register_instance
from ryu.lib import hub
from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.apps import controller, settings
from fairq_ryu.channel import oxm, queue_depth, segment_copies
from fairq_ryu.config import loader
from fairq_ryu.rest import handler, setup
from fairq_ryu.ryu_compat import direct_replies, segment_packet_ins
from tests.fuzz import messages
from tests.support.fakes import FakeSwitch
from tests.switch.packets import Segment, padded
from tests.switch.packets import mss as mss_option

TOKEN = "0123456789abcdef-of-tests"
DPID, CLIENT, SERVER = 1, 1, 2
BUFFER, BACKLOG, RATE = 125_000, 30_466, 25_000_000
_CONNECTED = ofp_event.EventOFPPacketIn, ofp_event.EventOFPExperimenterStatsReply


class Connection(FakeSwitch):
    """A connection of a switch to one application."""

    def __init__(self, dpid: int) -> None:
        super().__init__(dpid)
        self.ofp_brick = SimpleNamespace(
            observers={each: {"the application": {"main"}} for each in _CONNECTED}
        )
        names = {CLIENT: b"s1-eth1", SERVER: b"s1-eth2"}
        self.ports = {
            number: SimpleNamespace(port_no=number, config=0, state=0, name=name)
            for number, name in names.items()
        }


class WholeController:
    """The application of a module of :mod:`fairq_ryu.apps`, with a configuration file. Greenlets run while
    :meth:`until` waits; :meth:`end` ends them.
    """

    def __init__(self, module: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FAIRQ_TOKEN", TOKEN)
        monkeypatch.setattr(settings, "load", lambda: loader.load([file]))
        for each in (settings, handler):
            monkeypatch.setattr(each, "check_port", lambda: None)  # nothing listens
        # What the controller registers for the whole process ends with the test.
        monkeypatch.setattr(segment_packet_ins, "_takers", {})
        monkeypatch.setattr(direct_replies, "_takers", [])
        monkeypatch.setattr(ryu_wsgi, "WSGIServer", ryu_wsgi.WSGIServer)
        self._greenlets: list[Any] = []
        served: list[Any] = []
        monkeypatch.setattr(hub, "spawn", kept(hub.spawn, self._greenlets))
        monkeypatch.setattr(setup, "register", kept(setup.register, served))
        self.app = application(module)(wsgi=ryu_wsgi.WSGIApplication())
        (self.rest,) = served
        register_instance(self.app)
        self._answered = 0  # of the messages to the bridge
        self.bridge, self.agent = Connection(DPID), Connection(oxm.agent_dpid(DPID))

    def end(self) -> None:
        """End all that the controller has started."""
        for each in self._greenlets:
            hub.kill(each)

    def until(self, condition: Callable[[], Any], seconds: float = 20.0) -> None:
        """Let the controller work until a condition holds. Meanwhile the bridge answers barriers."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it does not happen"
            hub.sleep(0.005)
            sent, self._answered = self.bridge.sent[self._answered :], len(self.bridge.sent)
            for each in sent:
                if each.msg_type == ofp.OFPT_BARRIER_REQUEST:
                    self.receive(self.bridge, messages.message(ofp.OFPT_BARRIER_REPLY, xid=each.xid))

    # Switches

    def connect(self, datapath: Connection, state: str = MAIN_DISPATCHER) -> None:
        """The handshake of a switch is complete, or (``DEAD_DISPATCHER``) its connection has ended."""
        event = ofp_event.EventOFPStateChange(datapath)
        event.state = state
        self._deliver(event, state)

    def disconnect(self, datapath: Connection) -> None:
        """The connection of a switch has ended."""
        self.connect(datapath, DEAD_DISPATCHER)

    def receive(self, datapath: Connection, data: bytes) -> bool:
        """A message from a switch. Whether a function took it at once; otherwise it went Ryu's way."""
        version, kind, length, xid = ofproto_parser.header(data)
        takers = {ofp.OFPT_PACKET_IN: segment_packet_ins.take, ofp.OFPT_MULTIPART_REPLY: direct_replies.take}
        if kind in takers and takers[kind](datapath, data):
            return True
        message = ofproto_parser.msg(datapath, version, kind, length, xid, data)
        self._deliver(ofp_event.ofp_msg_to_ev(message), MAIN_DISPATCHER)
        return False

    def _deliver(self, event: Any, state: str) -> None:
        handlers = list(self.app.get_handlers(event, state))
        assert handlers, f"nobody handles {type(event).__name__}"
        for each in handlers:
            each(event)

    def join(self) -> None:
        """The bridge connects and has no rules; its agent connects and reports the queue of the server's
        port.
        """
        self.connect(self.bridge)
        self.receive(self.bridge, messages.reply(ofp.OFPMP_DESC, messages.agent.description("s1", DPID)))
        for request in [
            each for each in self.bridge.sent if type(each).__name__ == "OFPAggregateStatsRequest"
        ]:
            self.receive(self.bridge, messages.reply(ofp.OFPMP_AGGREGATE, bytes(24), xid=request.xid))
        self.join_agent()
        self.until(lambda: self.agent.packets)  # the request for queues
        self.report_queue()

    def join_agent(self) -> None:
        """The agent connects, and describes itself."""
        self.connect(self.agent)
        self.receive(self.agent, messages.reply(ofp.OFPMP_DESC, messages.agent.description("s1", DPID)))

    def report_queue(self) -> None:
        """The agent answers the request for queues: a function takes it at once."""
        clock = time.monotonic_ns()
        depth = queue_depth.QueueDepth(SERVER, 1, BACKLOG, BACKLOG, BUFFER, RATE // 8, 0, 0, clock)
        head = oxm.EXPERIMENTER_ID.to_bytes(4, "big") + queue_depth.EXP_TYPE_QUEUE_DEPTH.to_bytes(4, "big")
        body = head + queue_depth.encode_reply([depth])
        assert self.receive(self.agent, messages.reply(ofp.OFPMP_EXPERIMENTER, body, xid=0xFA17))

    def open_flow(self) -> None:
        """A connection is opened: the agent sends copies of its SYN and SYN-ACK, which a function takes at
        once.
        """
        ends = {"src": "10.0.0.1", "dst": "10.0.0.2", "sport": 40000, "dport": 80}
        back = {"src": "10.0.0.2", "dst": "10.0.0.1", "sport": 80, "dport": 40000}
        options = padded(mss_option(1460))
        for port, segment in (
            (SERVER, Segment(**ends, flags="S", seq=1, options=options)),
            (CLIENT, Segment(**back, flags="SA", seq=9, ack=2, options=options)),
        ):
            frame = segment.frame()
            copy = segment_copies.SegmentCopy(port, frame, len(frame))
            assert self.receive(self.agent, segment_copies.encode(copy))

    # REST

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> Any:
        """A request to the REST interface, with the token."""
        asked = webob.Request.blank(path, method=method, base_url="http://127.0.0.1:8080")
        asked.headers["Authorization"] = f"Bearer {TOKEN}"
        if body is not None:
            asked.body, asked.content_type = body, "application/json"
        return asked.get_response(self.rest)


def kept(function: Callable[..., Any], results: list[Any]) -> Callable[..., Any]:
    """A function whose results are kept."""

    def call(*args: Any) -> Any:
        results.append(function(*args))
        return results[-1]

    return call


def application(module: str) -> type[controller.Controller]:
    """The application of a module of :mod:`fairq_ryu.apps`."""
    found = vars(importlib.import_module(f"fairq_ryu.apps.{module}")).values()
    (made,) = (
        each
        for each in found
        if isinstance(each, type)
        and issubclass(each, controller.Controller)
        and each is not controller.Controller
    )
    return made


class Errors(logging.Handler):
    """What is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

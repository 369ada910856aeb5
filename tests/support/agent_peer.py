"""A controller's end of the agent's OpenFlow connection, without a socket; Ryu encodes and decodes."""

from __future__ import annotations

import struct
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.channel import flowmod, oxm
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, ryu_decode, split, wire

HELLO = struct.pack("!BBHI", 4, ofp.OFPT_HELLO, 8, 1)


class Peer:
    """A controller's end of a channel."""

    def __init__(self, switch: OpenFlowServer, greet: bool = True) -> None:
        self.sent = bytearray()
        self.session = ControllerSession(switch, self.sent.extend)
        self.greeting = self.taken()
        if greet:
            self.session.receive(HELLO)

    def taken(self) -> list[Any]:
        """The messages that were received since the last call, decoded by Ryu."""
        found = [ryu_decode(data) for data in split(bytes(self.sent))]
        self.sent.clear()
        return found

    def ask(self, message: Any, xid: int = 77) -> list[Any]:
        """Send a Ryu message or bytes; the answers."""
        self.session.receive(message if isinstance(message, bytes) else wire(message, xid))
        return self.taken()

    def one(self, message: Any, xid: int = 77) -> Any:
        (answer,) = self.ask(message, xid)
        assert answer.xid == xid
        return answer

    def refusal(self, message: Any, xid: int = 77) -> tuple[int, int]:
        """The error in the only answer, which must quote the request: type and code."""
        data = message if isinstance(message, bytes) else wire(message, xid)
        (answer,) = self.ask(data)
        assert answer.msg_type == ofp.OFPT_ERROR
        assert answer.data == data[:64]
        assert answer.xid == struct.unpack_from("!I", data, 4)[0]
        return answer.type, answer.code

    def own_refusal(self, message: Any) -> int:
        """The code of the experimenter error in the only answer."""
        (answer,) = self.ask(message)
        assert (answer.msg_type, answer.type) == (ofp.OFPT_ERROR, ofp.OFPET_EXPERIMENTER)
        assert answer.experimenter == oxm.EXPERIMENTER_ID
        return int(answer.exp_type)

    def set_window(self, size: int, port: int = 1, flow: FlowKey | None = None, **more: Any) -> None:
        kind = WindowKind.POOL if more.pop("pool", False) else WindowKind.WINDOW
        change = RuleChange(RuleTarget(PortKey(1, port), flow), WindowRule(kind, size))
        message = flowmod.window_rule(DATAPATH, change, more.pop("lease", 2))
        for name, value in more.items():
            setattr(message, name, value)
        assert self.ask(message) == []


def bad_request(code: str) -> tuple[int, int]:
    return ofp.OFPET_BAD_REQUEST, getattr(ofp, f"OFPBRC_{code}")


def role(peer: Peer, wanted: int, generation: int = 0) -> Any:
    return peer.one(parser.OFPRoleRequest(DATAPATH, wanted, generation))


def queue_state(backlog: int = 0, peak: int = 0, **more: int) -> QueueState:
    values = {"drops": 0, "byte_ns": 0, "packets": 0, "bytes": 0, "clock_ns": 1}
    return QueueState(backlog=backlog, peak=peak, **(values | more))

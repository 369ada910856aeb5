"""A minimal controller: it speaks OpenFlow 1.3 to one switch, with Ryu's codec."""

import socket
import struct

from ryu.ofproto import ofproto_parser, ofproto_protocol
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import flow_records, oxm, queue_depth
from fairq_ryu.ryu_compat import cached_matches, controller_actions, experimenter_multipart

# As the controller does.
cached_matches.register()
controller_actions.register()
experimenter_multipart.register()

HEADER = struct.Struct("!BBHI")


class StubController:
    """Listens on a free port of 127.0.0.1; :meth:`accept` waits for the switch and greets it."""

    def __init__(self, port=0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.listener.settimeout(30)
        self.port = self.listener.getsockname()[1]
        self.datapath = ofproto_protocol.ProtocolDesc(ofp.OFP_VERSION)
        self.sock = None
        self.buffer = b""
        self.xid = 100

    @property
    def target(self):
        return f"tcp:127.0.0.1:{self.port}"

    def accept(self):
        self.sock, _ = self.listener.accept()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(20)
        self.buffer = b""
        self.send_raw(HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_HELLO, 8, 1))
        assert self.receive().msg_type == ofp.OFPT_HELLO
        return self.ask(parser.OFPFeaturesRequest(self.datapath))

    def close(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def shut(self):
        self.close()
        self.listener.close()

    def send_raw(self, data):
        self.sock.sendall(data)

    def send(self, message):
        self.xid += 1
        message.set_xid(self.xid)
        message.serialize()
        self.send_raw(bytes(message.buf))
        return self.xid

    def receive(self):
        """The next message, echo requests answered on the way."""
        while True:
            while len(self.buffer) < 8 or len(self.buffer) < HEADER.unpack_from(self.buffer)[2]:
                data = self.sock.recv(65536)
                if not data:
                    raise EOFError("the switch has closed the connection")
                self.buffer += data
            version, kind, length, xid = HEADER.unpack_from(self.buffer)
            raw, self.buffer = self.buffer[:length], self.buffer[length:]
            if kind == ofp.OFPT_ECHO_REQUEST:
                self.send_raw(HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_ECHO_REPLY, length, xid) + raw[8:])
                continue
            return ofproto_parser.msg(self.datapath, version, kind, length, xid, raw)

    def ask(self, message):
        """Send, and wait for the answer with the same xid; other messages are dropped."""
        xid = self.send(message)
        while True:
            answer = self.receive()
            if answer.xid == xid:
                return answer

    def wait_for(self, cls):
        while True:
            message = self.receive()
            if isinstance(message, cls):
                return message

    def add(self, match, value, pool=False, hard_timeout=5, **fields):
        """Add a window rule; returns the error that answers it, or None."""
        name = "tcp_window_pool" if pool else "tcp_window"
        actions = [parser.OFPActionSetField(**{name: value})]
        return self.mod(
            match=parser.OFPMatch(**match),
            hard_timeout=hard_timeout,
            instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)],
            **fields,
        )

    def delete(self, match):
        return self.mod(
            match=parser.OFPMatch(**match),
            command=ofp.OFPFC_DELETE,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
        )

    def mod(self, **fields):
        """A FlowMod and a barrier; returns the error received before the barrier's reply, or None."""
        self.send(parser.OFPFlowMod(self.datapath, **fields))
        barrier = self.send(parser.OFPBarrierRequest(self.datapath))
        error = None
        while True:
            message = self.receive()
            if isinstance(message, parser.OFPErrorMsg):
                error = (message.type, message.code)
            if message.xid == barrier:
                return error

    def rules(self):
        request = parser.OFPFlowStatsRequest(self.datapath, 0, 0, ofp.OFPP_ANY, ofp.OFPG_ANY)
        return self.ask(request).body

    def queues(self):
        body = self.ask(
            parser.OFPExperimenterStatsRequest(
                self.datapath,
                0,
                oxm.EXPERIMENTER_ID,
                queue_depth.EXP_TYPE_QUEUE_DEPTH,
                queue_depth.encode_request(ofp.OFPP_ANY),
            )
        ).body
        return {record.port: record for record in queue_depth.decode_reply(bytes(body.data))}

    def flows(self):
        body = self.ask(
            parser.OFPExperimenterStatsRequest(
                self.datapath,
                0,
                oxm.EXPERIMENTER_ID,
                flow_records.EXP_TYPE_FLOW_RECORDS,
                flow_records.encode_request(0),
            )
        ).body
        return flow_records.decode_reply(bytes(body.data))

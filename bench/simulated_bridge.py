"""A simulated bridge: the OpenFlow 1.3 switch that a controller sees beside an agent, without a datapath.

It answers every request that this controller sends to Open vSwitch, learns from the controller's rules which
hosts are known, and sends copies of segments. Rules are counted and not stored.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator

from bench.simulated_flows import Copy, Flows
from fairq_ryu.agent import messages
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.channel import framing
from fairq_ryu.channel.framing import HEADER
from fairq_ryu.channel.protocol import ofp, parser
from fairq_ryu.openflow import pipeline

_METER_STATS = struct.Struct("!IH6xIQQII")
_METER_BAND = struct.Struct("!QQ")
# Cookie, table and command of a FlowMod; its match begins with the port here.
_FLOW_MOD = struct.Struct("!Q8xBB")
# Hosts that the controller does not know send something this often, seconds.
_ANNOUNCE = 0.5
_IN_PORT_AT = ofp.OFP_HEADER_SIZE + 40 + 8


def bridge_port(bridge: int, number: int) -> BridgePort:
    """A port that is up, of 1 Gbit/s."""
    return BridgePort(
        ofport=number,
        name=f"b{bridge}-eth{number}",
        ifindex=number,
        mac=f"06:00:00:{bridge:02x}:{number >> 8:02x}:{number & 255:02x}",
        link_up=True,
        admin_up=True,
        speed=1_000_000_000,
    )


def packet_in(copy: Copy, cookie: int) -> bytes:
    """The PACKET_IN with a copy that a rule with this cookie has made."""
    size = len(copy.frame)
    head = struct.pack(ofp.OFP_PACKET_IN_PACK_STR, ofp.OFP_NO_BUFFER, size, ofp.OFPR_ACTION, 0, cookie)
    in_port = framing.serialized(parser.OFPMatch(in_port=copy.port))
    return framing.message(ofp.OFPT_PACKET_IN, 0, head + in_port + bytes(2) + copy.frame)


class BridgeSession:
    """The connection to the controller, without a socket. ``send`` takes bytes to it."""

    def __init__(self, flows: Flows, dpid: int, send: Callable[[bytes], None]) -> None:
        self.flows, self.dpid, self._send = flows, dpid, send
        self.ports = [bridge_port(flows.bridge, number) for number in range(1, flows.ports + 1)]
        self._buffer = bytearray()
        self._born = time.monotonic()
        self.received = 0
        """messages"""
        self.joined = False
        """The controller has installed its rules."""
        self._unknown = set(range(1, flows.ports + 1))  # ports whose hosts have no rule yet
        self._announced = 0.0
        send(messages.hello(1))

    @property
    def known(self) -> int:
        """The number of ports whose hosts the controller knows."""
        return self.flows.ports - len(self._unknown)

    def receive(self, data: bytes) -> None:
        """Process bytes from the controller, in any pieces."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            _version, kind, length, xid = HEADER.unpack_from(self._buffer)
            if len(self._buffer) < length:
                return
            request = bytes(self._buffer[:length])
            del self._buffer[:length]
            self.received += 1
            self._answer(kind, request, xid)

    def _answer(self, kind: int, request: bytes, xid: int) -> None:
        if kind == ofp.OFPT_FEATURES_REQUEST:
            self._send(messages.features(xid, self.dpid))
        elif kind == ofp.OFPT_ECHO_REQUEST:
            self._send(framing.message(ofp.OFPT_ECHO_REPLY, xid, request[HEADER.size :]))
        elif kind == ofp.OFPT_BARRIER_REQUEST:
            self._send(framing.message(ofp.OFPT_BARRIER_REPLY, xid))
        elif kind == ofp.OFPT_FLOW_MOD:
            self._rule(request)
        elif kind == ofp.OFPT_MULTIPART_REQUEST:
            (number,) = struct.unpack_from("!H", request, HEADER.size)
            for data in messages.multipart(xid, number, self._parts(number)):
                self._send(data)

    def _rule(self, request: bytes) -> None:
        self.joined = True
        cookie, table, command = _FLOW_MOD.unpack_from(request, HEADER.size)
        if (cookie, table, command) == (pipeline.COOKIE_SOURCE, pipeline.SOURCE, ofp.OFPFC_ADD):
            self._unknown.discard(int.from_bytes(request[_IN_PORT_AT : _IN_PORT_AT + 4], "big"))

    def _parts(self, kind: int) -> Iterator[bytes]:
        age = time.monotonic() - self._born
        if kind == ofp.OFPMP_PORT_DESC:
            for port in self.ports:
                yield messages.port(port)
        elif kind == ofp.OFPMP_DESC:
            yield struct.pack(ofp.OFP_DESC_PACK_STR, b"", b"", b"", b"", b"fairq_ryu: paths")
        elif kind == ofp.OFPMP_PORT_STATS:
            sent = int(age * 2e7)
            for port in self.ports:
                yield messages.port_stats(port.ofport, sent // 1500, sent, 0, int(age * 1e9))
        elif kind == ofp.OFPMP_METER:
            size = _METER_STATS.size + _METER_BAND.size
            yield _METER_STATS.pack(ofp.OFPM_CONTROLLER, size, 0, 0, 0, int(age), 0) + _METER_BAND.pack(0, 0)

    def advance(self, now: float) -> int:
        """Send the copies that are due; returns their number. ``now`` in seconds."""
        if not self.joined:
            return 0
        found: list[bytes] = []
        if self._unknown and now - self._announced >= _ANNOUNCE:
            self._announced = now
            hosts = self.flows.announcements(self._unknown)
            found += [packet_in(copy, pipeline.COOKIE_SOURCE) for copy in hosts]
        found += [packet_in(copy, pipeline.COOKIE_TCP) for copy in self.flows.advance(now)]
        if found:
            self._send(b"".join(found))
        return len(found)

"""The agent as an OpenFlow 1.3 switch, without sockets: requests in, answers out, times as arguments.

A :class:`Switch` is one bridge; a :class:`Channel` is one controller's connection to it.
"""

from __future__ import annotations

import logging
import math
import struct
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from fairq_ryu.agent import messages
from fairq_ryu.agent.congestion_monitor import Queues, QueueWatch
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.programs import QueueState
from fairq_ryu.agent.qdisc import Shape
from fairq_ryu.agent.rule_table import Rule, RuleSink, RuleTable
from fairq_ryu.channel import congestion, oxm, queue_depth, wellformed
from fairq_ryu.channel import flow_records as records
from fairq_ryu.channel import segment_state as segments
from fairq_ryu.channel.flowmod import OpenFlowError, decode_flow_mod, decode_match
from fairq_ryu.channel.layouts import Malformed
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.segment_state import SegmentState
from fairq_ryu.channel.wellformed import Phase
from fairq_ryu.model import FlowKey

log = logging.getLogger(__name__)
_HEADER = struct.Struct(ofp.OFP_HEADER_PACK_STR)
# A barrier, an echo and the like carry nothing but the header.
_EMPTY = (ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_GET_CONFIG_REQUEST, ofp.OFPT_BARRIER_REQUEST)


# A controller that has not read so much gets no dropped packets on top, and no answers, bytes.
_MAX_UNREAD = 1 << 20
# Before both have said HELLO.
_BEFORE_HELLO = (ofp.OFPT_HELLO, ofp.OFPT_ERROR, ofp.OFPT_ECHO_REQUEST, ofp.OFPT_ECHO_REPLY)
_MAX_BEFORE_HELLO = 1024


class BridgeData(RuleSink, Queues, Protocol):
    """What a switch asks of its datapath (:class:`fairq_ryu.agent.programs.programs.Datapath`, or a fake)."""

    @property
    def ports(self) -> dict[int, BridgePort]:
        """The watched ports by number."""

    def queue(self, port: BridgePort) -> QueueState:
        """The queue of a port now."""

    def shape(self, port: BridgePort) -> Shape:
        """Its buffer and rate."""

    def active_flows(self, port: BridgePort) -> int:
        """Its active flows."""

    def restart_peaks(self) -> None:
        """Let the peaks start again."""

    def flow_records(self, idle_ms: int, ports: list[BridgePort]) -> list[bytes]:
        """What is known of the flows that leave by some ports: encoded records, in parts that fit in a
        message.
        """

    def segment_state(self, key: FlowKey) -> SegmentState:
        """The last segment of one direction of a flow."""


class Switch:
    """One bridge's window table and its controllers' channels."""

    def __init__(
        self,
        bridge: str,
        dpid: int,
        data: BridgeData,
        rule_capacity: int,
        congestion_gap: float = 0.002,
        drop_rate: float = 20000,
    ) -> None:
        """``dpid`` is the bridge's own; see :class:`QueueWatch` for the last two. Raises ValueError if the
        marker does not fit in ``dpid``.
        """
        self.bridge, self.data = bridge, data
        self.dpid = oxm.agent_dpid(dpid)
        self.table = RuleTable(data, rule_capacity)
        self.channels: list[Channel] = []
        self.master: Channel | None = None
        self.generation: int | None = None
        self.watch = QueueWatch(data, self, congestion_gap, drop_rate)
        self._born_ns = time.monotonic_ns()

    def age_ns(self, now_ns: int) -> int:
        """Time since the switch came up."""
        return now_ns - self._born_ns

    def tell_all(self, data: bytes) -> None:
        """Send a message to every controller."""
        for channel in self.channels:
            channel.push(data)

    def tell_ready(self, data: bytes) -> bool:
        """Send a message to the controllers that are no slaves and read what they are sent. False if there
        is none.
        """
        ready = [channel for channel in self.channels if channel.ready]
        for channel in ready:
            channel.push(data)
        return bool(ready)

    def port_changed(self, reason: int, port: BridgePort) -> None:
        """Tell every controller that a port came, went or changed."""
        self.tell_all(messages.port_status(reason, port))

    def rules_removed(self, rules: list[Rule], reason: int, now_ns: int) -> None:
        """Tell every controller of the removed rules that asked for it."""
        for rule in rules:
            if rule.flags & ofp.OFPFF_SEND_FLOW_REM:
                counts = self.data.counters(rule.slot)
                for channel in self.channels:
                    if channel.role != ofp.OFPCR_ROLE_SLAVE:
                        channel.push(messages.flow_removed(rule, reason, *counts, now_ns))

    def queue_depths(self, asker: Channel, ports: list[BridgePort]) -> list[queue_depth.QueueDepth]:
        """Queue records, with peaks since ``asker`` asked last."""
        found = {port.ofport: self.data.queue(port) for port in self.data.ports.values()}
        self.data.restart_peaks()
        for channel in self.channels:
            channel.note_peaks(found)
        answer = []
        for port in ports:
            state, shape = found[port.ofport], self.data.shape(port)
            answer.append(
                queue_depth.QueueDepth(
                    port=port.ofport,
                    active=min(self.data.active_flows(port), 0xFFFFFFFF),
                    backlog=state.backlog,
                    peak=asker.take_peak(port.ofport, state.backlog),
                    limit=shape.limit,
                    rate=shape.rate,
                    drops=state.drops,
                    byte_ns=state.byte_ns,
                    clock_ns=state.clock_ns,
                )
            )
        return answer


class Channel:
    """One controller's connection. ``send`` takes bytes to it; :meth:`receive` takes bytes from it."""

    def __init__(
        self, switch: Switch, send: Callable[[bytes], None], unread: Callable[[], int] = lambda: 0
    ) -> None:
        """``unread`` tells how many bytes wait to be sent."""
        self._switch, self._send, self._unread = switch, send, unread
        self._buffer = bytearray()
        self._part_began: float | None = None
        self.greeted = False
        self.fault = ""  # what was wrong with the peer's bytes, once it is closed for that
        self._peaks: dict[int, int] = {}
        self.role = ofp.OFPCR_ROLE_EQUAL
        self.closed = False
        switch.channels.append(self)
        send(messages.hello(1))

    def close(self) -> None:
        """The connection has ended."""
        self.closed = True
        if self in self._switch.channels:
            self._switch.channels.remove(self)
        if self._switch.master is self:
            self._switch.master = None
        if not any(channel.greeted for channel in self._switch.channels):
            self._switch.watch.clear()

    @property
    def ready(self) -> bool:
        """May it be sent packets?"""
        return (
            self.greeted
            and not self.closed
            and self.role != ofp.OFPCR_ROLE_SLAVE
            and self._unread() < _MAX_UNREAD
        )

    def push(self, data: bytes) -> None:
        """Send a message that nobody asked for, once the greeting is done."""
        if self.greeted and not self.closed:
            self._send(data)

    def ping(self) -> None:
        """Ask the controller whether it is still there."""
        self.push(messages.message(ofp.OFPT_ECHO_REQUEST, 2))

    def note_peaks(self, states: dict[int, QueueState]) -> None:
        """Remember peaks that another asker's question makes the datapath forget."""
        for port, state in states.items():
            self._peaks[port] = max(self._peaks.get(port, 0), state.peak)

    def take_peak(self, port: int, backlog: int) -> int:
        """The peak since this was last called, bytes."""
        return max(self._peaks.pop(port, 0), backlog)

    def receive(self, data: bytes, seconds: float = math.inf) -> bool:
        """Bytes from the controller, in any pieces. Sets :attr:`closed` when the peer talks nonsense.

        After ``seconds``, and when the peer leaves too much unread, it returns True: there is more to do with
        the next call.
        """
        if self.closed:
            return False
        until = time.monotonic() + seconds
        self._buffer += data
        while not self.closed and len(self._buffer) >= _HEADER.size:
            version, kind, length, _xid = _HEADER.unpack_from(self._buffer)
            if length < _HEADER.size:
                self._refuse(bytes(self._buffer[: _HEADER.size]), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN)
                self._fail(f"length {length} in a header, less than the header's own {_HEADER.size} bytes")
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
            if time.monotonic() > until or self._unread() > _MAX_UNREAD:
                return not self.closed
        if not self._buffer:
            self._part_began = None
        elif self._part_began is None:
            self._part_began = time.monotonic()
        return False

    def half_since(self, now: float) -> float:
        """How long a message has been waiting for the rest of it, seconds."""
        return 0.0 if self._part_began is None else now - self._part_began

    def _fail(self, fault: str) -> None:
        self.fault, self.closed = fault, True
        self._buffer.clear()

    def _refuse(self, request: bytes, kind: int, code: int) -> None:
        self._send(messages.error(kind, code, request))

    def _handle(self, version: int, kind: int, request: bytes) -> None:
        if kind == ofp.OFPT_HELLO:
            self._hello(version, request)
            return
        if version != ofp.OFP_VERSION:
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_VERSION)
            return
        if kind in (ofp.OFPT_ERROR, ofp.OFPT_ECHO_REPLY):
            return
        handler = _HANDLERS.get(kind)
        if handler is None:
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_TYPE)
            return
        if kind in _EMPTY and len(request) != _HEADER.size:
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN)
            return
        try:
            handler(self, request, _HEADER.unpack_from(request)[3])
        except OpenFlowError as refusal:
            log.debug("refused: %s", refusal)
            self._refuse(request, refusal.type, refusal.code)
        except BpfError as error:
            log.error("%s", error)
            if kind == ofp.OFPT_FLOW_MOD:
                self._refuse(request, ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
            else:
                self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)
        except Exception:
            # A fault of ours must not take the other controllers' windows along.
            log.exception("a message of type %d could not be answered", kind)
            self._refuse(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)

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

    def _echo(self, request: bytes, xid: int) -> None:
        self._send(messages.message(ofp.OFPT_ECHO_REPLY, xid, request[_HEADER.size :]))

    def _experimenter(self, request: bytes, _xid: int) -> None:
        if len(request) < 16:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "experimenter message too short")
        experimenter, exp_type = struct.unpack_from("!II", request, _HEADER.size)
        if experimenter != oxm.EXPERIMENTER_ID:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXPERIMENTER, f"{experimenter:#x}")
        if exp_type != congestion.EXP_TYPE_SET_THRESHOLDS:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXP_TYPE, f"type {exp_type}")
        if self.role == ofp.OFPCR_ROLE_SLAVE:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE, "a slave may not set thresholds")
        try:
            wanted = congestion.decode_set(request[16:])
        except ValueError as error:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, str(error)) from None
        self._switch.watch.set(wanted, time.monotonic_ns())

    def _features(self, _request: bytes, xid: int) -> None:
        self._send(messages.features(xid, self._switch.dpid))

    def _get_config(self, _request: bytes, xid: int) -> None:
        self._send(messages.message(ofp.OFPT_GET_CONFIG_REPLY, xid, struct.pack("!HH", 0, 0)))

    def _set_config(self, request: bytes, _xid: int) -> None:
        # There are no packets to fragment or to send up, so any setting is as good.
        if len(request) != ofp.OFP_SWITCH_CONFIG_SIZE:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "SET_CONFIG")

    def _barrier(self, _request: bytes, xid: int) -> None:
        # Every request is done before the next is read.
        self._send(messages.message(ofp.OFPT_BARRIER_REPLY, xid))

    def _role(self, request: bytes, xid: int) -> None:
        switch = self._switch
        if len(request) != _HEADER.size + 16:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "ROLE_REQUEST")
        role, generation = struct.unpack_from("!I4xQ", request, _HEADER.size)
        if role not in range(4):
            raise OpenFlowError(ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_BAD_ROLE, f"role {role}")
        if role in (ofp.OFPCR_ROLE_MASTER, ofp.OFPCR_ROLE_SLAVE):
            # Signed distance: the numbers may wrap (section 6.3.6).
            if switch.generation is not None and (generation - switch.generation) & (1 << 63):
                raise OpenFlowError(ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE, "old generation")
            switch.generation = generation
        if role != ofp.OFPCR_ROLE_NOCHANGE:
            if switch.master is self:
                switch.master = None
            self.role = role
        if role == ofp.OFPCR_ROLE_MASTER:
            if switch.master is not None:
                switch.master.role = ofp.OFPCR_ROLE_SLAVE
            switch.master = self
        current = switch.generation if switch.generation is not None else 0xFFFFFFFFFFFFFFFF
        self._send(messages.message(ofp.OFPT_ROLE_REPLY, xid, struct.pack("!I4xQ", self.role, current)))

    def _flow_mod(self, request: bytes, _xid: int) -> None:
        if self.role == ofp.OFPCR_ROLE_SLAVE:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE, "a slave may not change rules")
        now = time.monotonic_ns()
        removed = self._switch.table.apply(decode_flow_mod(request), now)
        self._switch.rules_removed(removed, ofp.OFPRR_DELETE, now)

    # Multipart

    def _multipart(self, request: bytes, xid: int) -> None:
        if len(request) < ofp.OFP_MULTIPART_REQUEST_SIZE:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "multipart request too short")
        kind, flags = struct.unpack_from(ofp.OFP_MULTIPART_REQUEST_PACK_STR, request, _HEADER.size)
        if flags & ofp.OFPMPF_REQ_MORE:
            raise OpenFlowError(
                ofp.OFPET_BAD_REQUEST,
                ofp.OFPBRC_MULTIPART_BUFFER_OVERFLOW,
                "no request here needs more than one",
            )
        answer = _MULTIPARTS.get(kind)
        if answer is None:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_MULTIPART, f"multipart {kind}")
        # Made whole before the first byte goes out: a refusal must not follow half an answer.
        parts = list(answer(self, request))
        # Each message of an experimenter's reply opens with the experimenter's header.
        prefix = parts.pop(0) if kind == ofp.OFPMP_EXPERIMENTER else b""
        for data in messages.multipart(xid, kind, parts, prefix):
            self._send(data)

    def _no_body(self, request: bytes) -> None:
        if len(request) != ofp.OFP_MULTIPART_REQUEST_SIZE:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "this request has no body")

    def _desc(self, request: bytes) -> Iterator[bytes]:
        self._no_body(request)
        yield messages.description(self._switch.bridge, self._switch.dpid)

    def _port_desc(self, request: bytes) -> Iterator[bytes]:
        self._no_body(request)
        for port in self._switch.data.ports.values():
            yield messages.port(port)

    def _rules_asked(self, request: bytes) -> list[Rule]:
        fixed = ofp.OFP_MULTIPART_REQUEST_SIZE + ofp.OFP_FLOW_STATS_REQUEST_0_SIZE
        if len(request) < fixed + ofp.OFP_MATCH_SIZE:
            raise OpenFlowError(
                ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "flow statistics request too short"
            )
        table, _port, _group, cookie, mask = struct.unpack_from(
            ofp.OFP_FLOW_STATS_REQUEST_0_PACK_STR, request, ofp.OFP_MULTIPART_REQUEST_SIZE
        )
        match, end = decode_match(request, fixed)
        if end != len(request):
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "bytes behind the match")
        if table not in (0, ofp.OFPTT_ALL):
            return []
        return self._switch.table.select(match, cookie, mask)

    def _flow_stats(self, request: bytes) -> Iterator[bytes]:
        now = time.monotonic_ns()
        for rule in self._rules_asked(request):
            yield messages.flow_stats(rule, *self._switch.data.counters(rule.slot), now)

    def _aggregate(self, request: bytes) -> Iterator[bytes]:
        rules = self._rules_asked(request)
        counts = [self._switch.data.counters(rule.slot) for rule in rules]
        matched, lowered = sum(met for met, _ in counts), sum(low for _, low in counts)
        yield struct.pack(ofp.OFP_AGGREGATE_STATS_REPLY_PACK_STR, matched, lowered, len(rules))

    def _table_stats(self, request: bytes) -> Iterator[bytes]:
        self._no_body(request)
        table = self._switch.table
        matched = sum(self._switch.data.counters(rule.slot)[0] for rule in table.rules())
        yield messages.table_stats(len(table), matched, matched)

    def _ports_asked(self, number: int) -> list[BridgePort]:
        ports = self._switch.data.ports
        if number == ofp.OFPP_ANY:
            return list(ports.values())
        if number not in ports:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT, f"no port {number} here")
        return [ports[number]]

    def _body(self, request: bytes, size: int) -> bytes:
        body = request[ofp.OFP_MULTIPART_REQUEST_SIZE :]
        if len(body) != size:
            raise OpenFlowError(
                ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, f"body of {len(body)} bytes, not {size}"
            )
        return body

    def _port_stats(self, request: bytes) -> Iterator[bytes]:
        number = struct.unpack("!I4x", self._body(request, 8))[0]
        age = self._switch.age_ns(time.monotonic_ns())
        for port in self._ports_asked(number):
            state = self._switch.data.queue(port)
            yield messages.port_stats(port.ofport, state.packets, state.bytes, state.drops, age)

    def _queue_stats(self, request: bytes) -> Iterator[bytes]:
        number, queue = struct.unpack("!II", self._body(request, 8))
        if number not in self._switch.data.ports and number != ofp.OFPP_ANY:
            raise OpenFlowError(ofp.OFPET_QUEUE_OP_FAILED, ofp.OFPQOFC_BAD_PORT, f"no port {number} here")
        if queue not in (0, ofp.OFPQ_ALL):
            raise OpenFlowError(ofp.OFPET_QUEUE_OP_FAILED, ofp.OFPQOFC_BAD_QUEUE, f"no queue {queue}")
        age = self._switch.age_ns(time.monotonic_ns())
        for port in self._ports_asked(number):
            state = self._switch.data.queue(port)
            yield messages.queue_stats(port.ofport, state.packets, state.bytes, state.drops, age)

    def _experimenter_multipart(self, request: bytes) -> Iterator[bytes]:
        head = request[ofp.OFP_MULTIPART_REQUEST_SIZE :][:8]
        if len(head) < 8:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "experimenter header truncated")
        experimenter, exp_type = struct.unpack("!II", head)
        if experimenter != oxm.EXPERIMENTER_ID:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXPERIMENTER, f"{experimenter:#x}")
        body = request[ofp.OFP_MULTIPART_REQUEST_SIZE + 8 :]
        try:
            if exp_type == queue_depth.EXP_TYPE_QUEUE_DEPTH:
                ports = self._ports_asked(queue_depth.decode_request(body))
                parts = [queue_depth.encode_reply([r]) for r in self._switch.queue_depths(self, ports)]
            elif exp_type == records.EXP_TYPE_FLOW_RECORDS:
                asked = records.decode_request(body)
                parts = self._switch.data.flow_records(asked.idle_ms, self._ports_asked(asked.port))
            elif exp_type == segments.EXP_TYPE_SEGMENTS:
                states = map(self._switch.data.segment_state, segments.decode_request(body))
                parts = [segments.encode_state(state) for state in states]
            else:
                raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXP_TYPE, f"type {exp_type}")
        except ValueError as error:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, str(error)) from None
        yield head
        yield from parts


_HANDLERS: dict[int, Callable[[Channel, bytes, int], None]] = {
    ofp.OFPT_ECHO_REQUEST: Channel._echo,
    ofp.OFPT_EXPERIMENTER: Channel._experimenter,
    ofp.OFPT_FEATURES_REQUEST: Channel._features,
    ofp.OFPT_GET_CONFIG_REQUEST: Channel._get_config,
    ofp.OFPT_SET_CONFIG: Channel._set_config,
    ofp.OFPT_FLOW_MOD: Channel._flow_mod,
    ofp.OFPT_MULTIPART_REQUEST: Channel._multipart,
    ofp.OFPT_BARRIER_REQUEST: Channel._barrier,
    ofp.OFPT_ROLE_REQUEST: Channel._role,
}
_MULTIPARTS: dict[int, Callable[[Channel, bytes], Iterator[bytes]]] = {
    ofp.OFPMP_DESC: Channel._desc,
    ofp.OFPMP_FLOW: Channel._flow_stats,
    ofp.OFPMP_AGGREGATE: Channel._aggregate,
    ofp.OFPMP_TABLE: Channel._table_stats,
    ofp.OFPMP_PORT_STATS: Channel._port_stats,
    ofp.OFPMP_QUEUE: Channel._queue_stats,
    ofp.OFPMP_PORT_DESC: Channel._port_desc,
    ofp.OFPMP_EXPERIMENTER: Channel._experimenter_multipart,
}

"""The handlers of a controller's multipart requests: one function for each type, and their table."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator

from fairq_ryu.agent import messages
from fairq_ryu.agent.openflow_server import InstalledRule, Session
from fairq_ryu.agent.window_channel import answer_request
from fairq_ryu.channel.flow_match import decode_match
from fairq_ryu.channel.flowmod import TABLES
from fairq_ryu.channel.framing import HEADER
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError


def answer_multipart(session: Session, request: bytes, xid: int) -> None:
    """Send the reply to a multipart request, in as many messages as needed."""
    if len(request) < ofp.OFP_MULTIPART_REQUEST_SIZE:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "multipart request too short")
    kind, flags = struct.unpack_from(ofp.OFP_MULTIPART_REQUEST_PACK_STR, request, HEADER.size)
    if flags & ofp.OFPMPF_REQ_MORE:
        raise OpenFlowError(
            ofp.OFPET_BAD_REQUEST,
            ofp.OFPBRC_MULTIPART_BUFFER_OVERFLOW,
            "no request here needs more than one",
        )
    answer = _MULTIPARTS.get(kind)
    if answer is None:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_MULTIPART, f"multipart {kind}")
    # Complete before the first message is sent: an error must not follow half a reply.
    parts = list(answer(session, request))
    # Each message of an experimenter's reply begins with the experimenter's header.
    prefix = parts.pop(0) if kind == ofp.OFPMP_EXPERIMENTER else b""
    session.send_all(messages.multipart(xid, kind, parts, prefix))


def _no_body(request: bytes) -> None:
    if len(request) != ofp.OFP_MULTIPART_REQUEST_SIZE:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "this request has no body")


def _desc(session: Session, request: bytes) -> Iterator[bytes]:
    _no_body(request)
    server = session.server
    yield messages.description(server.bridge, server.dpid, server.data.capabilities)


def _port_desc(session: Session, request: bytes) -> Iterator[bytes]:
    _no_body(request)
    for port in session.server.data.ports.values():
        yield messages.port(port)


def _requested_rules(session: Session, request: bytes) -> list[InstalledRule]:
    fixed = ofp.OFP_MULTIPART_REQUEST_SIZE + ofp.OFP_FLOW_STATS_REQUEST_0_SIZE
    if len(request) < fixed + ofp.OFP_MATCH_SIZE:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "flow statistics request too short")
    table, _port, _group, cookie, mask = struct.unpack_from(
        ofp.OFP_FLOW_STATS_REQUEST_0_PACK_STR, request, ofp.OFP_MULTIPART_REQUEST_SIZE
    )
    match, end = decode_match(request, fixed)
    if end != len(request):
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "bytes behind the match")
    tables = TABLES if table == ofp.OFPTT_ALL else (table,)
    found = session.server.selected_rules(match, cookie, mask)
    return [rule for rule in found if rule.table in tables]


def _flow_stats(session: Session, request: bytes) -> Iterator[bytes]:
    now = time.monotonic_ns()
    for rule in _requested_rules(session, request):
        yield messages.flow_stats(rule, *session.server.rule_counts(rule), now)


def _aggregate(session: Session, request: bytes) -> Iterator[bytes]:
    rules = _requested_rules(session, request)
    counts = [session.server.rule_counts(rule) for rule in rules]
    matched, acted_on = sum(met for met, _ in counts), sum(acted for _, acted in counts)
    yield struct.pack(ofp.OFP_AGGREGATE_STATS_REPLY_PACK_STR, matched, acted_on, len(rules))


def _table_stats(session: Session, request: bytes) -> Iterator[bytes]:
    _no_body(request)
    for table in TABLES:
        rules = [rule for rule in session.server.rules() if rule.table == table]
        matched = sum(session.server.rule_counts(rule)[0] for rule in rules)
        yield messages.table_stats(table, len(rules), matched, matched)


def _body(request: bytes, size: int) -> bytes:
    body = request[ofp.OFP_MULTIPART_REQUEST_SIZE :]
    if len(body) != size:
        raise OpenFlowError(
            ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, f"body of {len(body)} bytes, not {size}"
        )
    return body


def _port_stats(session: Session, request: bytes) -> Iterator[bytes]:
    number = struct.unpack("!I4x", _body(request, 8))[0]
    age = session.server.age_ns(time.monotonic_ns())
    for port in session.server.requested_ports(number):
        state = session.server.data.queue(port)
        yield messages.port_stats(port.ofport, state.packets, state.bytes, state.drops, age)


def _queue_stats(session: Session, request: bytes) -> Iterator[bytes]:
    number, queue = struct.unpack("!II", _body(request, 8))
    if number not in session.server.data.ports and number != ofp.OFPP_ANY:
        raise OpenFlowError(ofp.OFPET_QUEUE_OP_FAILED, ofp.OFPQOFC_BAD_PORT, f"no port {number} here")
    if queue not in (0, ofp.OFPQ_ALL):
        raise OpenFlowError(ofp.OFPET_QUEUE_OP_FAILED, ofp.OFPQOFC_BAD_QUEUE, f"no queue {queue}")
    age = session.server.age_ns(time.monotonic_ns())
    for port in session.server.requested_ports(number):
        state = session.server.data.queue(port)
        yield messages.queue_stats(port.ofport, state.packets, state.bytes, state.drops, age)


def _experimenter_multipart(session: Session, request: bytes) -> Iterator[bytes]:
    return answer_request(session, request[ofp.OFP_MULTIPART_REQUEST_SIZE :])


_MULTIPARTS: dict[int, Callable[[Session, bytes], Iterator[bytes]]] = {
    ofp.OFPMP_DESC: _desc,
    ofp.OFPMP_FLOW: _flow_stats,
    ofp.OFPMP_AGGREGATE: _aggregate,
    ofp.OFPMP_TABLE: _table_stats,
    ofp.OFPMP_PORT_STATS: _port_stats,
    ofp.OFPMP_QUEUE: _queue_stats,
    ofp.OFPMP_PORT_DESC: _port_desc,
    ofp.OFPMP_EXPERIMENTER: _experimenter_multipart,
}

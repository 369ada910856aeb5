"""The OpenFlow 1.3 messages that an agent sends, as bytes. Layouts are Ryu's constants.

Ryu encodes only what controllers send, and decodes only what switches send. So these messages are packed
here, with Ryu's pack strings, and the tests decode them with Ryu.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from fairq_ryu import __version__
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.rule_table import Rule
from fairq_ryu.agent.segment_copier import CopyRule
from fairq_ryu.channel import description as described
from fairq_ryu.channel import oxm, segment_copies
from fairq_ryu.channel.flowmod import TABLES
from fairq_ryu.channel.framing import HEADER, message, serialized
from fairq_ryu.channel.protocol import addrconv, ofp, parser
from fairq_ryu.model import dpid_text

_MAX_BODY = 60000
_ERROR_DATA = 64
_NS = 1_000_000_000
_UNKNOWN = 0xFFFFFFFFFFFFFFFF


def hello(xid: int) -> bytes:
    """HELLO with a bitmap that offers OpenFlow 1.3 only."""
    return message(
        ofp.OFPT_HELLO, xid, struct.pack("!HHI", ofp.OFPHET_VERSIONBITMAP, 8, 1 << ofp.OFP_VERSION)
    )


def error(kind: int, code: int, request: bytes, reason: str = "") -> bytes:
    """ERROR in answer to a request, of which the first 64 bytes are quoted. ``code`` is one of our own for
    OFPET_EXPERIMENTER; then the ``reason`` follows the quotation.
    """
    xid = HEADER.unpack_from(request)[3] if len(request) >= HEADER.size else 0
    head = struct.pack("!HH", kind, code)
    if kind == ofp.OFPET_EXPERIMENTER:
        head += struct.pack("!I", oxm.EXPERIMENTER_ID)
        return message(ofp.OFPT_ERROR, xid, head + request[:_ERROR_DATA] + reason.encode())
    return message(ofp.OFPT_ERROR, xid, head + request[:_ERROR_DATA])


def features(xid: int, dpid: int) -> bytes:
    """FEATURES_REPLY: two tables, no buffers."""
    capabilities = ofp.OFPC_FLOW_STATS | ofp.OFPC_TABLE_STATS | ofp.OFPC_PORT_STATS | ofp.OFPC_QUEUE_STATS
    return message(
        ofp.OFPT_FEATURES_REPLY,
        xid,
        struct.pack(ofp.OFP_SWITCH_FEATURES_PACK_STR, dpid, 0, len(TABLES), 0, capabilities, 0),
    )


def multipart(xid: int, kind: int, parts: Iterable[bytes], prefix: bytes = b"") -> Iterator[bytes]:
    """A multipart reply, split into messages between its parts. Each message begins with ``prefix``."""
    body, more = [prefix], []
    size = len(prefix)
    for part in parts:
        if size + len(part) > _MAX_BODY:
            more.append(b"".join(body))
            body, size = [prefix], len(prefix)
        body.append(part)
        size += len(part)
    more.append(b"".join(body))
    for i, chunk in enumerate(more):
        flags = ofp.OFPMPF_REPLY_MORE if i + 1 < len(more) else 0
        head = struct.pack(ofp.OFP_MULTIPART_REPLY_PACK_STR, kind, flags)
        yield message(ofp.OFPT_MULTIPART_REPLY, xid, head + chunk)


def description(bridge: str, dpid: int, capabilities: described.Capability = described.ALL) -> bytes:
    """The body of a DESC reply."""
    return struct.pack(
        ofp.OFP_DESC_PACK_STR,
        b"fairq_ryu",
        described.hardware(capabilities),
        f"fairq agent {__version__}".encode(),
        dpid_text(dpid).encode(),
        described.datapath(bridge),
    )


def port(p: BridgePort) -> bytes:
    """An ``ofp_port``."""
    speed = p.speed // 1000
    return struct.pack(
        ofp.OFP_PORT_PACK_STR,
        p.ofport,
        addrconv.mac.text_to_bin(p.mac),
        p.name.encode()[:15],
        0 if p.admin_up else ofp.OFPPC_PORT_DOWN,
        0 if p.link_up else ofp.OFPPS_LINK_DOWN,
        0,
        0,
        0,
        0,
        speed,
        speed,
    )


def port_status(reason: int, p: BridgePort) -> bytes:
    """PORT_STATUS."""
    return message(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", reason) + port(p))


def port_stats(ofport: int, packets: int, size: int, drops: int, age_ns: int) -> bytes:
    """An ``ofp_port_stats``: counters of the port's queue. OVS counts the received packets."""
    no = _UNKNOWN
    return struct.pack(
        ofp.OFP_PORT_STATS_PACK_STR,
        ofport,
        no,
        packets,
        no,
        size,
        no,
        drops,
        no,
        no,
        no,
        no,
        no,
        no,
        age_ns // _NS,
        age_ns % _NS,
    )


def queue_stats(ofport: int, packets: int, size: int, drops: int, age_ns: int) -> bytes:
    """An ``ofp_queue_stats`` of the port's one queue, number 0."""
    return struct.pack(
        ofp.OFP_QUEUE_STATS_PACK_STR, ofport, 0, size, packets, drops, age_ns // _NS, age_ns % _NS
    )


def table_stats(table: int, active: int, lookups: int, matched: int) -> bytes:
    """An ``ofp_table_stats`` of a table."""
    return struct.pack(ofp.OFP_TABLE_STATS_PACK_STR, table, active, lookups, matched)


def match(rule: Rule | CopyRule) -> bytes:
    """The rule's ``ofp_match``, padded."""
    if isinstance(rule, CopyRule):
        return serialized(segment_copies.ryu_match(rule.target))
    return serialized(parser.OFPMatch(**rule.match))


def _action(rule: Rule | CopyRule) -> Any:
    if isinstance(rule, CopyRule):
        return parser.OFPActionOutput(ofp.OFPP_CONTROLLER, rule.action.max_len)
    return parser.OFPActionSetField(**{rule.window.kind.field: rule.window.bytes})


def flow_stats(rule: Rule | CopyRule, matched: int, acted_on: int, now_ns: int) -> bytes:
    """An ``ofp_flow_stats``; the packet count is the number of ACKs to which the rule applied, and the byte
    count, because there is no better field, the number of ACKs whose window was lowered. With a rule for
    copies: of segments that it matched, and of those that were copied; with that of a queue law: of packets
    that it judged, and of those that were dropped or marked.
    """
    instruction = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [_action(rule)])
    tail = match(rule) + serialized(instruction)
    age = max(0, now_ns - rule.since_ns)
    head = struct.pack(
        ofp.OFP_FLOW_STATS_0_PACK_STR,
        ofp.OFP_FLOW_STATS_0_SIZE + len(tail),
        rule.table,
        age // _NS,
        age % _NS,
        rule.priority,
        0,
        rule.hard_timeout,
        rule.flags,
        rule.cookie,
        matched,
        acted_on,
    )
    return head + tail


def flow_removed(rule: Rule | CopyRule, reason: int, matched: int, acted_on: int, now_ns: int) -> bytes:
    """FLOW_REMOVED, with counts as in :func:`flow_stats`."""
    age = max(0, now_ns - rule.since_ns)
    body = struct.pack(
        "!QHBBIIHHQQ",
        rule.cookie,
        rule.priority,
        reason,
        rule.table,
        age // _NS,
        age % _NS,
        0,
        rule.hard_timeout,
        matched,
        acted_on,
    )
    return message(ofp.OFPT_FLOW_REMOVED, 0, body + match(rule))

"""The flow-record multipart: what an agent knows of the flows that cross its bridge.

Request body (8 bytes): idle limit in milliseconds (flows silent for longer are left out; 0: all), and the
port whose flows are requested (``OFPP_ANY`` for all). Reply body: one 88-byte record for each direction of a
connection. Network byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.model import FlowKey, new_tuple
from fairq_ryu.packet import addresses

EXP_TYPE_FLOW_RECORDS = 2

_REQUEST = struct.Struct("!II")
_RECORD = struct.Struct("!16s16sHHBBHIHHQQQQII")
REQUEST_SIZE = _REQUEST.size
RECORD_SIZE = _RECORD.size

KNOWN = 1  # the handshake was seen: the scale is known
CLOSED = 2  # this direction has sent FIN, or the connection was reset
RULED = 4  # it has a window rule of its own
ESTABLISHED = 8  # the handshake is complete: both ends have acknowledged something, or data has passed
UNSCALED = 0xFF


class FlowRecord(NamedTuple):
    """One direction of a connection: the segments that ``key.src`` sends.

    ``port``: the OpenFlow port through which they leave; ``wscale``: the window scale that the *sender*
    announced (None: no option); ``mss``: the MSS that it announced, bytes; ``idle_ms``: the time since its
    last segment; ``bytes``: payload; ``packets``: data segments; ``rewritten``: segments whose window was
    lowered; ``acked``: payload bytes of this direction that the other end has acknowledged; ``rtt_us``: the
    round-trip time of the connection in microseconds, measured in its handshake (0: not known).
    """

    key: FlowKey
    port: int
    flags: int
    wscale: int | None
    mss: int
    idle_ms: int
    bytes: int
    packets: int
    rewritten: int
    acked: int = 0
    rtt_us: int = 0


class RecordRequest(NamedTuple):
    """The requested records: those of flows not silent for longer than ``idle_ms`` (0: all) that leave
    through ``port`` (``OFPP_ANY``: any port).
    """

    idle_ms: int
    port: int


def request(datapath: Any, idle_ms: int, port: int = ofp.OFPP_ANY) -> Any:
    """The request for the records of the flows that leave through a port, or of all; see
    :class:`RecordRequest`.
    """
    return framing.request(datapath, EXP_TYPE_FLOW_RECORDS, encode_request(idle_ms, port))


def encode_request(idle_ms: int, port: int = ofp.OFPP_ANY) -> bytes:
    """The request's body."""
    return _REQUEST.pack(idle_ms, port)


def decode_request(data: bytes) -> RecordRequest:
    """The content of a request. Raises ValueError on a wrong length."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"a flow-record request is {REQUEST_SIZE} bytes, not {len(data)}")
    return RecordRequest._make(_REQUEST.unpack(data))


def encode_reply(records: Iterable[FlowRecord]) -> bytes:
    """The reply's body."""
    return b"".join(
        _RECORD.pack(
            addresses.padded(r.key.src),
            addresses.padded(r.key.dst),
            r.key.sport,
            r.key.dport,
            r.key.version,
            UNSCALED if r.wscale is None else r.wscale,
            r.mss,
            r.port,
            r.key.vlan,
            r.flags,
            r.bytes,
            r.packets,
            r.rewritten,
            r.acked,
            r.idle_ms,
            r.rtt_us,
        )
        for r in records
    )


def decode_reply(data: bytes) -> list[FlowRecord]:
    """The records of a reply's body. Raises ValueError on a wrong length or IP version."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a flow-record reply is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    records = []
    for (
        src,
        dst,
        sport,
        dport,
        version,
        wscale,
        mss,
        port,
        vlan,
        flags,
        size,
        packets,
        rewritten,
        acked,
        idle,
        rtt,
    ) in _RECORD.iter_unpack(data):
        ends = addresses.unpadded(src, version), addresses.unpadded(dst, version)
        key = new_tuple(FlowKey, (*ends, sport, dport, vlan))
        scale = None if wscale == UNSCALED else wscale
        fields = key, port, flags, scale, mss, idle, size, packets, rewritten, acked, rtt
        records.append(new_tuple(FlowRecord, fields))
    return records


REQUEST = Incoming(EXP_TYPE_FLOW_RECORDS, "flow-record request", decode_request)
REPLY = Incoming(EXP_TYPE_FLOW_RECORDS, "flow-record reply", decode_reply)

"""A packet that the queue of a port has dropped: a PACKET_IN with a cookie of its own.

Agents send it for the ports whose thresholds have the flag REPORT_DROPS
(:mod:`fairq_ryu.channel.congestion`), to a controller that recovers losses by itself.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import framing

COOKIE_DROPPED = 0xFA17 << 48 | 0xD809


class DroppedPacket(NamedTuple):
    """``port``: the OpenFlow port through which the packet would have left; ``frame``: the packet or its
    beginning; ``total_len``: its length in bytes.
    """

    port: int
    frame: bytes
    total_len: int


def encode(dropped: DroppedPacket) -> bytes:
    """The whole PACKET_IN."""
    head = struct.pack(
        ofp.OFP_PACKET_IN_PACK_STR,
        ofp.OFP_NO_BUFFER,
        min(dropped.total_len, 0xFFFF),
        ofp.OFPR_ACTION,
        0,
        COOKIE_DROPPED,
    )
    in_port = framing.serialized(parser.OFPMatch(in_port=dropped.port))
    return framing.message(ofp.OFPT_PACKET_IN, 0, head + in_port + bytes(2) + dropped.frame)


def decode(message: Any) -> DroppedPacket | None:
    """The content of a PACKET_IN that Ryu has decoded; None: it is not about a dropped packet."""
    if message.cookie != COOKIE_DROPPED or "in_port" not in message.match:
        return None
    return DroppedPacket(message.match["in_port"], bytes(message.data), message.total_len)

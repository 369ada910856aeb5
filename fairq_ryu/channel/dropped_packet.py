"""A packet that the queue of a port has dropped: a PACKET_IN with a cookie of its own.

Agents send it for the ports whose thresholds have the flag REPORT_DROPS
(:mod:`fairq_ryu.channel.congestion`), to a controller that recovers losses by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
    return framing.packet_in(COOKIE_DROPPED, *dropped)


def decode(message: Any) -> DroppedPacket | None:
    """The content of a PACKET_IN that Ryu has decoded; None: it is not about a dropped packet."""
    if message.cookie != COOKIE_DROPPED or "in_port" not in message.match:
        return None
    return DroppedPacket(message.match["in_port"], bytes(message.data), message.total_len)

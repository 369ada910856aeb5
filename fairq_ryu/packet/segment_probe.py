"""Segment probes: frames by which the controller finds two ports that lead to the same foreign segment.

Discovery frames (LLDP) end at the next bridge, whoever owns it. A probe is an ordinary group frame, which
every bridge floods. It names the port that it left by, and has a keyed tag: nobody else can make one. Behind
the Ethernet header are, in network byte order: dpid (8 bytes), port (4), time (8, ms), tag (8).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

from fairq_ryu.model import PortKey
from fairq_ryu.packet.headers import ETHERNET_SIZE, mac_bytes

ETH_TYPE = 0x88B5  # IEEE 802, local experimental
GROUP = "03:fa:17:00:00:01"  # a locally administered group
_BODY = struct.Struct("!QIQ")
_TAG_SIZE = 8
_MIN_FRAME = 60
_START = mac_bytes(GROUP)


class SegmentProbe(NamedTuple):
    """A probe that has left by ``port`` at ``sent_ms``, by the controller's clock."""

    port: PortKey
    sent_ms: int


def build(probe: SegmentProbe, key: bytes) -> bytes:
    """The frame of a probe. Its source address is one of its own for each port, so that foreign bridges do
    not see one address at several ports.
    """
    source = b"\x02\xfa\x17" + struct.pack("!BH", probe.port.dpid & 0xFF, probe.port.port & 0xFFFF)
    body = _BODY.pack(*probe.port, probe.sent_ms)
    frame = _START + source + struct.pack("!H", ETH_TYPE) + body + _tag(body, key)
    return frame.ljust(_MIN_FRAME, b"\0")


def is_probe(frame: bytes) -> bool:
    """Whether a frame has the address and the type of probes."""
    return frame.startswith(_START) and frame[12:ETHERNET_SIZE] == ETH_TYPE.to_bytes(2, "big")


def parse(frame: bytes, key: bytes) -> SegmentProbe | None:
    """The probe of a frame; None if it is none, or one with another key."""
    body = frame[ETHERNET_SIZE : ETHERNET_SIZE + _BODY.size]
    tag = frame[ETHERNET_SIZE + _BODY.size : ETHERNET_SIZE + _BODY.size + _TAG_SIZE]
    if not is_probe(frame) or not hmac.compare_digest(tag, _tag(body, key)):
        return None
    dpid, port, sent_ms = _BODY.unpack(body)
    return SegmentProbe(PortKey(dpid, port), sent_ms)


def _tag(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, hashlib.sha256)[:_TAG_SIZE]

"""Discovery frames: LLDP (IEEE 802.1AB) with a tag that only the controller can make.

A frame names the port through which it leaves, as other controllers' frames do (chassis ID ``dpid:`` and 16
hexadecimal digits, port ID of four bytes). An organizationally specific TLV carries the time slot in which
it was made, and the tag. All these frames have one size and one layout, and any other frame is not read at
all: what a host sends reaches no other parser.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fairq_ryu.packet.headers import ETH_LLDP

TAG_SIZE = 16
_TO_NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
# Locally administered, so it is nobody's (IEEE 802, clause 8.4); the digits of our cookies.
_OUI = bytes.fromhex("fa1700")
_CHASSIS, _PORT, _TTL, _ORGANIZATION = (kind << 9 for kind in (1, 2, 3, 127))
_LOCALLY_ASSIGNED, _PORT_COMPONENT = 7, 2
_SECONDS = 120
# Ethernet; the TLVs of the chassis, the port, the time to live, and ours; the end.
_FRAME = struct.Struct(f"!6s6sH HB5s16s HBI HH H3sBQ{TAG_SIZE}s H")
_CHASSIS_HEADER, _PORT_HEADER = (_CHASSIS | 22, _LOCALLY_ASSIGNED, b"dpid:"), (_PORT | 5, _PORT_COMPONENT)
_TTL_FIELD = (_TTL | 2, _SECONDS)
_OUR_HEADER = (_ORGANIZATION | 12 + TAG_SIZE, _OUI, 0)


class DiscoveryFrame(NamedTuple):
    """The contents of a frame. ``dpid`` and ``port``: the port through which it has left; ``slot``: when it
    was made; ``tag``: :data:`TAG_SIZE` bytes, not checked yet.
    """

    dpid: int
    port: int
    slot: int
    tag: bytes


def build(frame: DiscoveryFrame) -> bytes:
    """The bytes of a discovery frame."""
    # A source address of its own for each port: switches of others on the way may learn it.
    source = b"\x02" + (frame.dpid & 0xFFFFFF).to_bytes(3, "big") + (frame.port & 0xFFFF).to_bytes(2, "big")
    return _FRAME.pack(
        *(_TO_NEAREST_BRIDGE, source, ETH_LLDP),
        *(*_CHASSIS_HEADER, b"%016x" % frame.dpid),
        *(*_PORT_HEADER, frame.port),
        *_TTL_FIELD,
        *(*_OUR_HEADER, frame.slot, frame.tag),
        0,
    )


def parse(data: bytes) -> DiscoveryFrame | None:
    """Read a discovery frame. None: it does not have the layout of :func:`build`."""
    if len(data) != _FRAME.size:
        return None
    fields = _FRAME.unpack(data)
    dpid_digits, port, slot, tag = fields[6], fields[9], fields[15], fields[16]
    try:
        dpid = int(dpid_digits, 16)
    except ValueError:
        return None
    frame = DiscoveryFrame(dpid, port, slot, tag)
    # Everything else is constant, or follows from these.
    return frame if build(frame) == data else None

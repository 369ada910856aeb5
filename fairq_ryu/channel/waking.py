"""WAKE: the agent ends the pauses of single flows with window updates, in the names of their receivers.

It follows the FlowMods that end the pauses, in the same connection, so the agent sends each update when the
rule that lowers it is in force. One record of 64 bytes for each flow, at most :data:`MAX_FLOWS`, in network
byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.segment_state import KEY_SIZE, decode_key, encode_key
from fairq_ryu.packet.headers import mac_bytes, mac_text
from fairq_ryu.packet.tcp_build import Addressing

EXP_TYPE_WAKE = 10
# Each flow costs the agent a lookup in the flow map and a system call, and other requests wait meanwhile.
MAX_FLOWS = 512
MAX_TAGS = 2

_LINK = struct.Struct("!6s6s2HB7x")
RECORD_SIZE = KEY_SIZE + _LINK.size


def wake(datapath: Any, flows: Sequence[Addressing]) -> Any:
    """The message that wakes the senders that these directions acknowledge. Raises ValueError for none, for
    more than :data:`MAX_FLOWS`, or for more than two VLAN tags.
    """
    return framing.command(datapath, EXP_TYPE_WAKE, encode(flows))


def encode(flows: Sequence[Addressing]) -> bytes:
    """The body of a WAKE; the key of each flow is the direction of its ACKs."""
    if not 0 < len(flows) <= MAX_FLOWS:
        raise ValueError(f"a WAKE has 1 to {MAX_FLOWS} flows, not {len(flows)}")
    return b"".join(map(_record, flows))


def _record(flow: Addressing) -> bytes:
    if len(flow.tags) > MAX_TAGS:
        raise ValueError(f"{len(flow.tags)} VLAN tags; at most {MAX_TAGS}")
    tags = (*flow.tags, 0, 0)[:MAX_TAGS]
    return encode_key(flow.key) + _LINK.pack(mac_bytes(flow.src), mac_bytes(flow.dst), *tags, len(flow.tags))


def decode(data: bytes) -> list[Addressing]:
    """The flows of a WAKE. Raises ValueError on a wrong length, IP version or number of VLAN tags."""
    if not data or len(data) % RECORD_SIZE or len(data) > MAX_FLOWS * RECORD_SIZE:
        raise ValueError(f"a WAKE is {RECORD_SIZE} bytes a flow, 1 to {MAX_FLOWS} flows, not {len(data)}")
    found = []
    for at in range(0, len(data), RECORD_SIZE):
        key = decode_key(data[at : at + KEY_SIZE])
        src, dst, outer, inner, count = _LINK.unpack_from(data, at + KEY_SIZE)
        if count > MAX_TAGS:
            raise ValueError(f"{count} VLAN tags; at most {MAX_TAGS}")
        found.append(Addressing(key, mac_text(src), mac_text(dst), (outer, inner)[:count]))
    return found


WAKE = Incoming(EXP_TYPE_WAKE, "WAKE", decode)

"""The segment-state multipart: the last segment of single directions, from which an ACK can be created.

Request body: one 40-byte key for each requested direction, at most :data:`MAX_KEYS`. Reply body: one 76-byte
record for each key, in their order. Network byte order; addresses as in the flow records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.model import FlowKey, SegmentState
from fairq_ryu.packet import addresses

EXP_TYPE_SEGMENTS = 3
# Each key costs the agent a lookup in the flow map, and other requests wait meanwhile.
MAX_KEYS = 512

_KEY = struct.Struct("!16s16sHHBxH")
_STATE = struct.Struct("!IIIIHBxIIIHxx")
KEY_SIZE = _KEY.size
RECORD_SIZE = _KEY.size + _STATE.size

FOUND = 1  # the direction is known, and all other fields are valid
TIMESTAMPS = 2  # tsval and tsecr are those of the segment
TIMESTAMPS_UNKNOWN = 4  # its segments carry timestamps, but the switch could not read the last ones
FIN = 8
RST = 16
SIGNED = 32  # its segments are signed (TCP-MD5, TCP-AO)
NO_SCALE = 0xFF


def encode_key(key: FlowKey) -> bytes:
    """One direction, as a key of 40 bytes."""
    return _KEY.pack(
        addresses.padded(key.src),
        addresses.padded(key.dst),
        key.sport,
        key.dport,
        key.version,
        key.vlan,
    )


def decode_key(data: bytes) -> FlowKey:
    """The direction in a key of 40 bytes. Raises ValueError on a wrong IP version."""
    src, dst, sport, dport, version, vlan = _KEY.unpack(data)
    return FlowKey(addresses.unpadded(src, version), addresses.unpadded(dst, version), sport, dport, vlan)


def request(datapath: Any, keys: Sequence[FlowKey]) -> Any:
    """The request for the last segment of single directions. Raises ValueError for more than
    :data:`MAX_KEYS`.
    """
    return framing.request(datapath, EXP_TYPE_SEGMENTS, encode_request(keys))


def encode_request(keys: Sequence[FlowKey]) -> bytes:
    """The request's body. Raises ValueError for more than :data:`MAX_KEYS`."""
    if len(keys) > MAX_KEYS:
        raise ValueError(f"{len(keys)} flows in one request; at most {MAX_KEYS}")
    return b"".join(map(encode_key, keys))


def decode_request(data: bytes) -> list[FlowKey]:
    """The requested directions. Raises ValueError on a wrong length or IP version, or too many keys."""
    if len(data) % KEY_SIZE or len(data) > MAX_KEYS * KEY_SIZE:
        raise ValueError(
            f"a segment-state request is {KEY_SIZE} bytes a flow, at most {MAX_KEYS} flows, not {len(data)}"
        )
    return [decode_key(data[at : at + KEY_SIZE]) for at in range(0, len(data), KEY_SIZE)]


def encode_state(state: SegmentState) -> bytes:
    """One record of a reply."""
    flags = FOUND * state.found | FIN * state.fin | RST * state.rst | SIGNED * state.is_signed
    flags |= TIMESTAMPS_UNKNOWN if state.has_timestamps is None else TIMESTAMPS * state.has_timestamps
    return encode_key(state.key) + _STATE.pack(
        state.port,
        flags,
        state.seq_next,
        state.ack,
        state.window,
        NO_SCALE if state.wscale is None else state.wscale,
        state.tsval,
        state.tsecr,
        state.idle_ms,
        state.passed,
    )


def encode_reply(states: Iterable[SegmentState]) -> bytes:
    """The reply's body."""
    return b"".join(map(encode_state, states))


def decode_reply(data: bytes) -> list[SegmentState]:
    """The records of a reply's body. Raises ValueError on a wrong length or IP version."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a segment-state reply is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    states = []
    for at in range(0, len(data), RECORD_SIZE):
        port, flags, seq_next, ack, window, wscale, tsval, tsecr, idle_ms, passed = _STATE.unpack_from(
            data, at + KEY_SIZE
        )
        states.append(
            SegmentState(
                key=decode_key(data[at : at + KEY_SIZE]),
                found=bool(flags & FOUND),
                port=port,
                seq_next=seq_next,
                ack=ack,
                window=window,
                wscale=None if wscale == NO_SCALE else wscale,
                tsval=tsval,
                tsecr=tsecr,
                has_timestamps=None if flags & TIMESTAMPS_UNKNOWN else bool(flags & TIMESTAMPS),
                idle_ms=idle_ms,
                fin=bool(flags & FIN),
                rst=bool(flags & RST),
                is_signed=bool(flags & SIGNED),
                passed=passed,
            )
        )
    return states


REQUEST = Incoming(EXP_TYPE_SEGMENTS, "segment-state request", decode_request)
REPLY = Incoming(EXP_TYPE_SEGMENTS, "segment-state reply", decode_reply)

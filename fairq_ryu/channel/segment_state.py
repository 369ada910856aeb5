"""The segment-state multipart: the last segment of one direction of some flows, by which an ACK can be made.

Request body: one 40-byte key for each direction that is wanted, at most :data:`MAX_KEYS`. Reply body: one
72-byte record for each key, in their order. Network byte order; addresses as in the flow records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairq_ryu.model import FlowKey
from fairq_ryu.packet import addresses

EXP_TYPE_SEGMENTS = 3
# Each costs the agent a look into the flow map, between the questions of others.
MAX_KEYS = 512

_KEY = struct.Struct("!16s16sHHB3x")
_STATE = struct.Struct("!IIIIHBxIII")
KEY_SIZE = _KEY.size
RECORD_SIZE = _KEY.size + _STATE.size

FOUND = 1  # all that follows is known
TIMESTAMPS = 2  # tsval and tsecr are those of the segment
TIMESTAMPS_UNKNOWN = 4  # its segments carry timestamps, but the switch could not read the last ones
FIN = 8
RST = 16
NO_SCALE = 0xFF


class SegmentState(NamedTuple):
    """What the sender of one direction, ``key.src``, said last.

    ``found`` is False when the switch does not know, or has seen no acknowledgement of it; the rest is then
    without meaning. ``port`` is the OpenFlow port by which its segments leave; ``seq_next`` the sequence
    number behind all it has sent (data, SYN, FIN); ``ack`` its last acknowledgement number, ``window`` the
    window it advertised with that, before any switch lowered it, in steps of ``1 << wscale``; ``wscale``
    the shift in force (0: the ends agreed on none; None: the handshake was not seen). ``has_timestamps``
    None: its segments carry timestamps (RFC 7323) that the switch could not read, so nobody can make one in
    its name. ``fin``: it has sent FIN; ``rst``: the connection was reset.
    """

    key: FlowKey
    found: bool
    port: int = 0
    seq_next: int = 0
    ack: int = 0
    window: int = 0
    wscale: int | None = None
    tsval: int = 0
    tsecr: int = 0
    has_timestamps: bool | None = False
    idle_ms: int = 0
    fin: bool = False
    rst: bool = False


def _encode_key(key: FlowKey) -> bytes:
    return _KEY.pack(
        addresses.packed(key.src).ljust(16, b"\0"),
        addresses.packed(key.dst).ljust(16, b"\0"),
        key.sport,
        key.dport,
        key.version,
    )


def _decode_key(data: bytes) -> FlowKey:
    src, dst, sport, dport, version = _KEY.unpack(data)
    if version not in (4, 6):
        raise ValueError(f"a flow of IP version {version}")
    length = 4 if version == 4 else 16
    return FlowKey(addresses.text(src[:length]), addresses.text(dst[:length]), sport, dport)


def encode_request(keys: Sequence[FlowKey]) -> bytes:
    """The request's body. Raises ValueError for more than :data:`MAX_KEYS`."""
    if len(keys) > MAX_KEYS:
        raise ValueError(f"{len(keys)} flows in one request; at most {MAX_KEYS}")
    return b"".join(map(_encode_key, keys))


def decode_request(data: bytes) -> list[FlowKey]:
    """The directions asked for. Raises ValueError on a wrong length, IP version or too many."""
    if len(data) % KEY_SIZE or len(data) > MAX_KEYS * KEY_SIZE:
        raise ValueError(
            f"a segment-state request is {KEY_SIZE} bytes a flow, for {MAX_KEYS} at most, not {len(data)}"
        )
    return [_decode_key(data[at : at + KEY_SIZE]) for at in range(0, len(data), KEY_SIZE)]


def encode_state(state: SegmentState) -> bytes:
    """One record of a reply."""
    flags = FOUND * state.found | FIN * state.fin | RST * state.rst
    flags |= TIMESTAMPS_UNKNOWN if state.has_timestamps is None else TIMESTAMPS * state.has_timestamps
    return _encode_key(state.key) + _STATE.pack(
        state.port,
        flags,
        state.seq_next,
        state.ack,
        state.window,
        NO_SCALE if state.wscale is None else state.wscale,
        state.tsval,
        state.tsecr,
        state.idle_ms,
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
        port, flags, seq_next, ack, window, wscale, tsval, tsecr, idle_ms = _STATE.unpack_from(
            data, at + KEY_SIZE
        )
        states.append(
            SegmentState(
                key=_decode_key(data[at : at + KEY_SIZE]),
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
            )
        )
    return states

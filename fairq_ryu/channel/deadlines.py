"""SET_DEADLINES: the deadlines of connections whose handshakes wait for their turn at the agent, or will.

One record of 48 bytes for each connection, at most :data:`MAX_CONNECTIONS`, in network byte order. Deadlines
are relative, because the clocks of controller and agent have nothing in common.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.segment_state import KEY_SIZE, decode_key, encode_key
from fairq_ryu.model import FlowKey

EXP_TYPE_SET_DEADLINES = 13
# Other requests wait while the agent stores them.
MAX_CONNECTIONS = 512
NO_DEADLINE = 0xFFFFFFFF
# A later deadline is sent as this one, microseconds: more than an hour, and a handshake waits 0.5 s.
LATEST_US = NO_DEADLINE - 1

_TIME = struct.Struct("!I4x")
RECORD_SIZE = KEY_SIZE + _TIME.size


class HandshakeDeadline(NamedTuple):
    """The deadline of a connection, of which ``key`` is either direction: ``us`` microseconds from now, 0 if
    it has passed; None: it has none any more.
    """

    key: FlowKey
    us: int | None


def microseconds(seconds: float) -> int:
    """The time until a deadline as it is sent: at least 0, and at most :data:`LATEST_US`."""
    return math.floor(min(max(seconds * 1e6, 0), LATEST_US))


def set_deadlines(datapath: Any, wanted: Sequence[HandshakeDeadline]) -> Any:
    """The message that sets or removes deadlines. Raises ValueError for none, for more than
    :data:`MAX_CONNECTIONS`, or for a time that is out of bounds.
    """
    return framing.command(datapath, EXP_TYPE_SET_DEADLINES, encode(wanted))


def encode(wanted: Sequence[HandshakeDeadline]) -> bytes:
    """The body of a SET_DEADLINES."""
    if not 0 < len(wanted) <= MAX_CONNECTIONS:
        raise ValueError(f"a SET_DEADLINES has 1 to {MAX_CONNECTIONS} connections, not {len(wanted)}")
    return b"".join(map(_record, wanted))


def _record(wanted: HandshakeDeadline) -> bytes:
    if wanted.us is not None and not 0 <= wanted.us <= LATEST_US:
        raise ValueError(f"a deadline is 0 to {LATEST_US} us from now, not {wanted.us}")
    return encode_key(wanted.key) + _TIME.pack(NO_DEADLINE if wanted.us is None else wanted.us)


def decode(data: bytes) -> list[HandshakeDeadline]:
    """The records of a SET_DEADLINES. Raises ValueError on a wrong length or IP version."""
    if not data or len(data) % RECORD_SIZE or len(data) > MAX_CONNECTIONS * RECORD_SIZE:
        raise ValueError(
            f"a SET_DEADLINES is {RECORD_SIZE} bytes a connection, 1 to {MAX_CONNECTIONS} connections, "
            f"not {len(data)}"
        )
    found = []
    for at in range(0, len(data), RECORD_SIZE):
        (us,) = _TIME.unpack_from(data, at + KEY_SIZE)
        key = decode_key(data[at : at + KEY_SIZE])
        found.append(HandshakeDeadline(key, None if us == NO_DEADLINE else us))
    return found


SET = Incoming(EXP_TYPE_SET_DEADLINES, "SET_DEADLINES", decode)

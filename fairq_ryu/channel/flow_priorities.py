"""SET_PRIORITIES: the priorities of single flows within their tenants.

One record of 48 bytes for each flow, at most :data:`MAX_FLOWS`, in network byte order.
Without records: no flow has one any more that was set through this bridge.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.segment_state import KEY_SIZE, decode_key, encode_key
from fairq_ryu.model import MOST_PRIORITY, FlowKey

EXP_TYPE_SET_PRIORITIES = 24
# Other requests wait while the agent stores them.
MAX_FLOWS = 512

_PRIORITY = struct.Struct("!H6x")
RECORD_SIZE = KEY_SIZE + _PRIORITY.size


class FlowPriority(NamedTuple):
    """The priority of a flow; ``key`` is the direction of its data. None: it has none of its own any more."""

    key: FlowKey
    priority: int | None


def set_priorities(datapath: Any, wanted: Sequence[FlowPriority]) -> Any:
    """The message that sets or removes priorities; none: it removes all. Raises ValueError for more than
    :data:`MAX_FLOWS`, or for a priority that is out of bounds.
    """
    return framing.command(datapath, EXP_TYPE_SET_PRIORITIES, encode(wanted))


def encode(wanted: Sequence[FlowPriority]) -> bytes:
    """The body of a SET_PRIORITIES."""
    if len(wanted) > MAX_FLOWS:
        raise ValueError(f"a SET_PRIORITIES has at most {MAX_FLOWS} flows, not {len(wanted)}")
    return b"".join(map(_record, wanted))


def _record(wanted: FlowPriority) -> bytes:
    if wanted.priority is not None and not 1 <= wanted.priority <= MOST_PRIORITY:
        raise ValueError(f"a priority is 1 to {MOST_PRIORITY}, not {wanted.priority}")
    return encode_key(wanted.key) + _PRIORITY.pack(wanted.priority or 0)


def decode(data: bytes) -> list[FlowPriority]:
    """The records of a SET_PRIORITIES. Raises ValueError on a wrong length, IP version or priority."""
    if len(data) % RECORD_SIZE or len(data) > MAX_FLOWS * RECORD_SIZE:
        raise ValueError(
            f"a SET_PRIORITIES is {RECORD_SIZE} bytes a flow, at most {MAX_FLOWS} flows, not {len(data)}"
        )
    found = []
    for at in range(0, len(data), RECORD_SIZE):
        (priority,) = _PRIORITY.unpack_from(data, at + KEY_SIZE)
        if priority > MOST_PRIORITY:
            raise ValueError(f"a priority is 1 to {MOST_PRIORITY}, not {priority}")
        found.append(FlowPriority(decode_key(data[at : at + KEY_SIZE]), priority or None))
    return found


SET = Incoming(EXP_TYPE_SET_PRIORITIES, "SET_PRIORITIES", decode)

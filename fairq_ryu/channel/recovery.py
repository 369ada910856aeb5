"""SET_RECOVERY: how the agent recovers the segments that the queue of a port drops.

A message of 24 bytes, in network byte order. It has a lease, because it lets the agent send segments.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming

EXP_TYPE_SET_RECOVERY = 11

DUPACK = 1  # flags
REINJECT = 2
# Code (exp_type) of the OFPET_EXPERIMENTER error that answers a SET_RECOVERY; others are those of
# SET_THRESHOLDS.
ERROR_LIMIT = 13
ERRORS = {ERROR_LIMIT: "a limit of the recovery is out of bounds"}

_SET = struct.Struct("!6I")
SET_SIZE = _SET.size


class SetRecovery(NamedTuple):
    """The body of a SET_RECOVERY, in the order of the wire. ``flags`` 0 ends the recovery; at most ``bytes``
    of segments are stored, none longer than ``age_ms`` after it was last dropped or acted on; segments are
    sent again when the queue is below ``below`` bytes; ``lease`` in seconds.
    """

    port: int
    flags: int
    bytes: int
    age_ms: int
    below: int
    lease: int


# Least and most of each limit, where the recovery does not end.
BOUNDS = {
    "bytes": (0, 1 << 31),
    "age_ms": (1, 60_000),
    "below": (1, 0xFFFFFFFF),
    "lease": (1, 0xFFFF),
}


def set_recovery(datapath: Any, wanted: SetRecovery) -> Any:
    """The message that sets, renews or ends the recovery of a port."""
    return framing.command(datapath, EXP_TYPE_SET_RECOVERY, encode_set(wanted))


def encode_set(wanted: SetRecovery) -> bytes:
    """The body of a SET_RECOVERY."""
    return _SET.pack(*wanted)


def decode_set(data: bytes) -> SetRecovery:
    """The requested recovery; its values are not checked. Raises ValueError on a wrong length."""
    if len(data) != SET_SIZE:
        raise ValueError(f"the body of SET_RECOVERY is {SET_SIZE} bytes, not {len(data)}")
    return SetRecovery._make(_SET.unpack(data))


SET = Incoming(EXP_TYPE_SET_RECOVERY, "SET_RECOVERY", decode_set)

"""Congestion of a port: the thresholds that a controller sets, and the notices that the agent sends when a
queue crosses them.

Both are OFPT_EXPERIMENTER messages (OpenFlow 1.3.5, section 7.5.4), in network byte order.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.model import Congestion, Thresholds

EXP_TYPE_SET_THRESHOLDS = 4
EXP_TYPE_CONGESTION = 5

REPORT_DROPS = 1  # flag of SET_THRESHOLDS
# Codes (exp_type) of the OFPET_EXPERIMENTER errors that answer a SET_THRESHOLDS.
ERROR_ORDER = 1
ERROR_FLAGS = 2
ERROR_NO_DROPS = 3
ERRORS = {
    ERROR_ORDER: "NOM is not below CNG",
    ERROR_FLAGS: "unknown flags",
    ERROR_NO_DROPS: "its kernel does not report dropped packets",
}

_SET = struct.Struct("!IIII")
_NOTICE = struct.Struct("!IB3xI4xQ")
SET_SIZE = _SET.size
NOTICE_SIZE = _NOTICE.size
_STATES = (Congestion.NOM, Congestion.CNG)


class SetThresholds(NamedTuple):
    """The body of a SET_THRESHOLDS (16 bytes): ``cng`` and ``nom`` in bytes of queue; 0 and 0: never
    congested.
    """

    port: int
    cng: int
    nom: int
    flags: int


class CongestionNotice(NamedTuple):
    """The body of a congestion message (24 bytes): the state of a port, its queue in bytes, and the time of
    that state in ns of the switch's monotonic clock.
    """

    port: int
    state: Congestion
    backlog: int
    clock_ns: int


def set_thresholds(datapath: Any, port: int, thresholds: Thresholds) -> Any:
    """The message that sets the thresholds of a port; 0 and 0: the agent sends no more notices about it."""
    return framing.command(datapath, EXP_TYPE_SET_THRESHOLDS, encode_set(port, thresholds))


def encode_set(port: int, thresholds: Thresholds) -> bytes:
    """The body of a SET_THRESHOLDS."""
    return _SET.pack(port, thresholds.cng, thresholds.nom, REPORT_DROPS * thresholds.drops)


def decode_set(data: bytes) -> SetThresholds:
    """The requested thresholds; their values are not checked. Raises ValueError on a wrong length."""
    if len(data) != SET_SIZE:
        raise ValueError(f"the body of SET_THRESHOLDS is {SET_SIZE} bytes, not {len(data)}")
    return SetThresholds._make(_SET.unpack(data))


def notice_message(notice: CongestionNotice) -> bytes:
    """The whole congestion message."""
    return framing.notification(EXP_TYPE_CONGESTION, encode_notice(notice))


def encode_notice(notice: CongestionNotice) -> bytes:
    """The body of a congestion message."""
    state = _STATES.index(notice.state)
    return _NOTICE.pack(notice.port, state, min(notice.backlog, 0xFFFFFFFF), notice.clock_ns)


def decode_notice(data: bytes) -> CongestionNotice:
    """The content of a congestion message. Raises ValueError on a wrong length or state."""
    if len(data) != NOTICE_SIZE:
        raise ValueError(f"the body of a congestion message is {NOTICE_SIZE} bytes, not {len(data)}")
    port, state, backlog, clock_ns = _NOTICE.unpack(data)
    if state >= len(_STATES):
        raise ValueError(f"state {state} in a congestion message")
    return CongestionNotice(port, _STATES[state], backlog, clock_ns)


SET = Incoming(EXP_TYPE_SET_THRESHOLDS, "SET_THRESHOLDS", decode_set)
NOTICE = Incoming(EXP_TYPE_CONGESTION, "congestion message", decode_notice)

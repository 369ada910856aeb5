"""Congestion on the channel: thresholds that a controller sets, and what the agent tells unasked.

All are OFPT_EXPERIMENTER messages (OpenFlow 1.3.5, section 7.5.4), in network byte order. A packet that a
queue refused comes as an OFPT_PACKET_IN with :data:`COOKIE_DROPPED`, ``in_port`` being the port it would
have left by.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fairq_ryu.model import Congestion, Thresholds

EXP_TYPE_SET_THRESHOLDS = 4
EXP_TYPE_CONGESTION = 5
COOKIE_DROPPED = 0xFA17 << 48 | 0xD809

REPORT_DROPS = 1  # flag of SET_THRESHOLDS
# Codes (exp_type) of the OFPET_EXPERIMENTER errors that answer a SET_THRESHOLDS.
ERROR_ORDER = 1  # nom is not below cng
ERROR_FLAGS = 2  # unknown flags
ERROR_NO_DROPS = 3  # this switch's kernel does not tell of dropped packets

_SET = struct.Struct("!IIII")
_NOTICE = struct.Struct("!IB3xI4xQ")
SET_SIZE = _SET.size
NOTICE_SIZE = _NOTICE.size
_STATES = (Congestion.NOM, Congestion.CNG)


class SetThresholds(NamedTuple):
    """The body of a SET_THRESHOLDS (16 bytes): ``cng`` and ``nom`` in bytes of queue, 0 and 0 for never."""

    port: int
    cng: int
    nom: int
    flags: int


class CongestionNotice(NamedTuple):
    """The body of a congestion message (24 bytes): the state of a port, its queue in bytes, and when that
    was, in ns of the switch's monotonic clock.
    """

    port: int
    state: Congestion
    backlog: int
    clock_ns: int


def encode_set(port: int, thresholds: Thresholds) -> bytes:
    """The body of a SET_THRESHOLDS."""
    return _SET.pack(port, thresholds.cng, thresholds.nom, REPORT_DROPS * thresholds.drops)


def decode_set(data: bytes) -> SetThresholds:
    """What is to be set, unchecked. Raises ValueError on a wrong length."""
    if len(data) != SET_SIZE:
        raise ValueError(f"the body of SET_THRESHOLDS is {SET_SIZE} bytes, not {len(data)}")
    return SetThresholds._make(_SET.unpack(data))


def encode_notice(notice: CongestionNotice) -> bytes:
    """The body of a congestion message."""
    state = _STATES.index(notice.state)
    return _NOTICE.pack(notice.port, state, min(notice.backlog, 0xFFFFFFFF), notice.clock_ns)


def decode_notice(data: bytes) -> CongestionNotice:
    """What a congestion message says. Raises ValueError on a wrong length or state."""
    if len(data) != NOTICE_SIZE:
        raise ValueError(f"the body of a congestion message is {NOTICE_SIZE} bytes, not {len(data)}")
    port, state, backlog, clock_ns = _NOTICE.unpack(data)
    if state >= len(_STATES):
        raise ValueError(f"state {state} in a congestion message")
    return CongestionNotice(port, _STATES[state], backlog, clock_ns)

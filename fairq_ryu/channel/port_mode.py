"""SET_PORT_MODE: whether windows are lowered for a port, or it is only observed; and the port-mode multipart:
the modes of ports, and the ACKs that were lowered or would have been.

Everything is in network byte order. A mode has no lease: it stays until it is set again or the agent ends.
So a port cannot begin to act because a controller has died while its rules live.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.protocol import ofp

EXP_TYPE_PORT_MODE = 15
"""The number of the message, and of the multipart."""

ACT, OBSERVE = 0, 1
MODES = (ACT, OBSERVE)
# Code (exp_type) of the OFPET_EXPERIMENTER error that answers a SET_PORT_MODE.
ERROR_MODE = 15
ERRORS = {ERROR_MODE: "unknown mode of a port"}

_SET = struct.Struct("!II")
_REQUEST = struct.Struct("!I4x")
_RECORD = struct.Struct("!IIQQQ")
SET_SIZE, REQUEST_SIZE, RECORD_SIZE = _SET.size, _REQUEST.size, _RECORD.size


class SetPortMode(NamedTuple):
    """The body of a SET_PORT_MODE: a port, or ``OFPP_ANY`` for all that there are; and :data:`ACT` or
    :data:`OBSERVE`.
    """

    port: int
    mode: int


class PortWindows(NamedTuple):
    """A port's record, in the order of the wire. ``acks`` of its data to which a rule applied; of these,
    ``lowered`` ones, and those that the rule ``would_lower`` if the port was not only observed. The counts
    begin when the port is added to the agent.
    """

    port: int
    mode: int
    acks: int
    lowered: int
    would_lower: int


# Setting


def set_port_mode(datapath: Any, port: int, mode: int) -> Any:
    """The message that sets the mode of a port."""
    return framing.command(datapath, EXP_TYPE_PORT_MODE, encode_set(SetPortMode(port, mode)))


def encode_set(wanted: SetPortMode) -> bytes:
    """The body of a SET_PORT_MODE."""
    return _SET.pack(*wanted)


def decode_set(data: bytes) -> SetPortMode:
    """The requested mode, which is not checked. Raises ValueError on a wrong length."""
    if len(data) != SET_SIZE:
        raise ValueError(f"the body of SET_PORT_MODE is {SET_SIZE} bytes, not {len(data)}")
    return SetPortMode._make(_SET.unpack(data))


# Reading


def request(datapath: Any, port: int = ofp.OFPP_ANY) -> Any:
    """The request for the modes of all ports, or of one."""
    return framing.request(datapath, EXP_TYPE_PORT_MODE, encode_request(port))


def encode_request(port: int) -> bytes:
    """The request's body for one port, or ``OFPP_ANY``."""
    return _REQUEST.pack(port)


def decode_request(data: bytes) -> int:
    """The requested port. Raises ValueError on a wrong length."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"a request for the modes of ports is {REQUEST_SIZE} bytes, not {len(data)}")
    return int(_REQUEST.unpack(data)[0])


def encode_reply(records: Iterable[PortWindows]) -> bytes:
    """The reply's body."""
    return b"".join(_RECORD.pack(*record) for record in records)


def decode_reply(data: bytes) -> list[PortWindows]:
    """The records of a reply's body. Raises ValueError on a wrong length."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a reply about modes is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    return [PortWindows._make(fields) for fields in _RECORD.iter_unpack(data)]


def is_refused(error: Any) -> bool:
    """Whether an error message (Ryu's ``OFPErrorMsg``) shows that the agent cannot be relied on to observe
    ports only: it refuses one of these messages for any reason, except that the port has just gone.
    """
    if (error.type, error.code) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT):
        return False
    return any(
        framing.quotes(error, kind, EXP_TYPE_PORT_MODE)
        for kind in (ofp.OFPT_EXPERIMENTER, ofp.OFPT_MULTIPART_REQUEST)
    )


SET = Incoming(EXP_TYPE_PORT_MODE, "SET_PORT_MODE", decode_set)
REQUEST = Incoming(EXP_TYPE_PORT_MODE, "request for the modes of ports", decode_request)
REPLY = Incoming(EXP_TYPE_PORT_MODE, "reply about the modes of ports", decode_reply)

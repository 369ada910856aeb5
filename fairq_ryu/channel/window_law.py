"""Window laws on the channel: SET_LAW adds, changes or deletes one, and a multipart reports their state.

As OpenFlow's meters: to add a law that is there, or to change one that is not, is an error; to delete one
removes the rules that refer to it, and :data:`ALL_LAWS` deletes all. Everything is in network byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from fairq_ryu.channel import framing, quoted_law
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.quoted_law import ALL_LAWS as ALL_LAWS  # for those who import it from here
from fairq_ryu.law_spec import LawSpec, Parameters
from fairq_ryu.laws.registry import window_laws

EXP_TYPE_SET_LAW = 6
EXP_TYPE_LAW_STATS = 7
MAX_LAW_ID = 0xFFFF0000

# Codes (exp_type) of the OFPET_EXPERIMENTER errors that answer a SET_LAW, or a rule that refers to a law.
ERROR_LAW_EXISTS = 4
ERROR_LAW_UNKNOWN = 5
ERROR_LAW_COMMAND = 6
ERROR_LAW_KIND = 7
ERROR_LAW_PARAMETER = 8
ERROR_LAW_IN_USE = 10
ERROR_LAW_TABLE_FULL = 11
ERROR_LAW_NO_QUEUE = 12
ERRORS = {
    ERROR_LAW_EXISTS: "there is a law with this id",
    ERROR_LAW_UNKNOWN: "there is no law with this id",
    ERROR_LAW_COMMAND: "unknown command",
    ERROR_LAW_KIND: "unknown kind of law",
    ERROR_LAW_PARAMETER: "a parameter is out of bounds",
    ERROR_LAW_IN_USE: "another port's rule refers to this law",
    ERROR_LAW_TABLE_FULL: "there are as many laws as the agent can hold",
    ERROR_LAW_NO_QUEUE: "the port has no queue of known size and rate",
}

_REQUESTS = quoted_law.LawRequests(EXP_TYPE_SET_LAW, EXP_TYPE_LAW_STATS, table=0)

_SET = struct.Struct("!BB2xI")
_REQUEST = struct.Struct("!I4x")
_RECORD = struct.Struct("!IIIIIIIIIIHHIQQI4xQQQQ")
REQUEST_SIZE, RECORD_SIZE = _REQUEST.size, _RECORD.size


_Spec = TypeVar("_Spec", bound=Parameters)


class LawCommand(IntEnum):
    """What a SET_LAW does."""

    ADD = 0
    MODIFY = 1
    DELETE = 2


class SetLaw(NamedTuple):
    """The body of a SET_LAW: 8 bytes, and the parameters of the kind. ``spec`` is None in a deletion, and if
    command or kind are not known.
    """

    command: int
    law: int
    spec: LawSpec | None


class LawState(NamedTuple):
    """The state of a law (104 bytes), in the order of the wire.

    ``port``: whose rule refers to it (0: none). Bytes: ``pool`` in force, ``window`` of every flow (0: none),
    ``queue`` mean of the last interval, ``target``. ``flows`` share the pool, ``young`` of them have sent
    little; ``beta``: new flows of this interval, if the law counts them; ``mode`` and ``limited_by`` as
    ``FQ_MODE_...`` and ``FQ_LIMITED_BY_...``; ``kind``; ``updates`` of the pool; ``late`` ticks.

    With turns, SYNs and SYN-ACKs: those ``waiting`` now, those ``held`` ever; of these, those ``released``
    because there was room, and ``overdue`` ones, which had waited too long. ``overflowed``: those that did
    not wait for room because too many waited or too many handshakes were incomplete.
    """

    law: int
    port: int
    pool: int
    window: int
    queue: int
    target: int
    flows: int
    young: int
    beta: int
    segment: int
    mode: int
    limited_by: int
    kind: int
    updates: int
    late: int
    waiting: int = 0
    held: int = 0
    released: int = 0
    overdue: int = 0
    overflowed: int = 0


# Setting and deleting


def set_law(datapath: Any, command: LawCommand, law: int, spec: LawSpec | None = None) -> Any:
    """The message that adds, changes or deletes a law; ``spec`` is not needed to delete one."""
    return framing.command(datapath, EXP_TYPE_SET_LAW, encode_set(command, law, spec))


def encode_set(command: int, law: int, spec: Parameters | None) -> bytes:
    """The body of a SET_LAW or SET_QUEUE_LAW."""
    if spec is None:
        return _SET.pack(command, 0, law)
    return _SET.pack(command, spec.kind, law) + spec.pack()


def decode_set(data: bytes) -> SetLaw:
    """The requested law; bounds are not checked. Raises ValueError on a wrong length."""
    return SetLaw(*split_set("SET_LAW", data, window_laws()))


def split_set(message: str, data: bytes, kinds: Mapping[int, type[_Spec]]) -> tuple[int, int, _Spec | None]:
    """Command, number and law of a message with one of these kinds. Raises ValueError on a wrong length."""
    if len(data) < _SET.size:
        raise ValueError(f"the body of {message} is {_SET.size} bytes or more, not {len(data)}")
    command, kind, law = _SET.unpack_from(data)
    if command == LawCommand.DELETE:
        if len(data) > _SET.size:
            raise ValueError(f"{message} to delete a law is {_SET.size} bytes, not {len(data)}")
    elif kind in kinds:
        return command, law, kinds[kind].unpack(data[_SET.size :])
    return command, law, None


class RefusedLaw(NamedTuple):
    """A law that an agent has refused, or the rule that refers to it. ``law``: its number, which is also that
    of its port; 0: all laws. ``others``: another controller has added or deleted a law with this number.
    """

    law: int
    reason: str
    others: bool = False


def refused_law(error: Any, requests: quoted_law.LawRequests = _REQUESTS) -> RefusedLaw | None:
    """The law that an error message (Ryu's ``OFPErrorMsg``) of an agent refuses. None: it refuses something
    else, or refuses any change from this controller (a slave).
    """
    data = bytes(error.data or b"")
    law = requests.quoted(data)
    if law is None:
        return None
    if error.type == ofp.OFPET_EXPERIMENTER:
        reason = quoted_law.reason(error, ERRORS)
        others = error.exp_type in (ERROR_LAW_EXISTS, ERROR_LAW_UNKNOWN)
        return None if reason is None else RefusedLaw(law, reason, others)
    if law and requests.unusable.get(data[1]) == (error.type, error.code):
        return RefusedLaw(law, quoted_law.UNUSABLE)
    return None


# Statistics


def request(datapath: Any, law: int = ALL_LAWS) -> Any:
    """The request for the state of a law, or of all laws."""
    return framing.request(datapath, EXP_TYPE_LAW_STATS, encode_request(law))


def encode_request(law: int) -> bytes:
    """The request's body."""
    return _REQUEST.pack(law)


def decode_request(data: bytes) -> int:
    """The requested law. Raises ValueError on a wrong length."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"a request for laws is {REQUEST_SIZE} bytes, not {len(data)}")
    return int(_REQUEST.unpack(data)[0])


def encode_reply(states: Iterable[LawState]) -> bytes:
    """The reply's body."""
    return b"".join(_RECORD.pack(*state) for state in states)


def decode_reply(data: bytes) -> list[LawState]:
    """The states in a reply's body. Raises ValueError on a wrong length."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a reply about laws is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    return [LawState._make(fields) for fields in _RECORD.iter_unpack(data)]


SET = Incoming(EXP_TYPE_SET_LAW, "SET_LAW", decode_set)
REQUEST = Incoming(EXP_TYPE_LAW_STATS, "request for laws", decode_request)
REPLY = Incoming(EXP_TYPE_LAW_STATS, "reply about laws", decode_reply)

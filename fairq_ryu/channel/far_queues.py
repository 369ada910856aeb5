"""SET_FAR_QUEUES: what a controller changes in the far queues of a bridge; LEASE_FAR_RATES: other rates for
some of them, for a while; and the far-queue multipart: those that there are.

Everything is in network byte order. Both messages are whole: each replaces the one before it. Interfaces are
named, and not numbered, because a far queue may be told before its port is there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fairq_ryu.channel import framing, quoted_law
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.far_queue import FarQueue

EXP_TYPE_FAR_QUEUES = 19
"""The number of SET_FAR_QUEUES, and of the multipart."""
EXP_TYPE_LEASE_FAR_RATES = 21

REMOVED, TOLD = 1, 2  # flags of a record
# Code (exp_type) of the OFPET_EXPERIMENTER error that answers either message; the reason follows it.
ERROR_FAR_QUEUE = 16
ERRORS = {ERROR_FAR_QUEUE: "the agent cannot have such a far queue"}
MOST_TOLD = 1000
"""So many far queues fit in a message, with room to spare."""

_SET = struct.Struct("!16sQIII4x")
_RECORD = struct.Struct("!16sQIIIIQ")
_LEASE = struct.Struct("!I4x")
_RATE = struct.Struct("!16sQ")
SET_SIZE, RECORD_SIZE = _SET.size, _RECORD.size
LEASE_SIZE, RATE_SIZE = _LEASE.size, _RATE.size
# A share is a whole number of millionths.
_MILLION = 1_000_000

Told = Mapping[str, FarQueue | None]
"""What a controller changes, by interface: its far queue, whatever the configuration of the agent has; None:
it has none.
"""


class FarQueueState(NamedTuple):
    """A far queue that there is, in the order of the wire: as it is configured or told; ``told``: by a
    controller; ``ofport``: the number of its port of the bridge; ``leased``: the rate in force instead of its
    own, bytes per second (0: its own).
    """

    queue: FarQueue
    told: bool
    ofport: int
    leased: int = 0


class RateLease(NamedTuple):
    """The body of a LEASE_FAR_RATES: rates in bytes per second, by interface, for ``seconds``."""

    seconds: int
    rates: Mapping[str, int]


# Setting


def set_far_queues(datapath: Any, told: Told) -> Any:
    """The message with all that a controller changes. Raises ValueError for more than :data:`MOST_TOLD`."""
    if len(told) > MOST_TOLD:
        raise ValueError(f"{len(told)} far queues do not fit in a message")
    return framing.command(datapath, EXP_TYPE_FAR_QUEUES, encode_set(told))


def encode_set(told: Told) -> bytes:
    """The body of a SET_FAR_QUEUES."""
    return b"".join(
        _SET.pack(*_fields(FarQueue(port, share=0.0) if queue is None else queue), REMOVED * (queue is None))
        for port, queue in told.items()
    )


def decode_set(data: bytes) -> Told:
    """What a controller changes; bounds are not checked. Raises ValueError on a wrong length or name."""
    if len(data) % SET_SIZE:
        raise ValueError(f"the body of SET_FAR_QUEUES is a multiple of {SET_SIZE} bytes, not {len(data)}")
    told: dict[str, FarQueue | None] = {}
    for name, rate, buffer, share, flags in _SET.iter_unpack(data):
        port = _port(name, told)
        told[port] = None if flags & REMOVED else FarQueue(port, rate, buffer, share / _MILLION)
    return told


def lease_far_rates(datapath: Any, lease: RateLease) -> Any:
    """The message that renews the rates of far queues, or ends them."""
    return framing.command(datapath, EXP_TYPE_LEASE_FAR_RATES, encode_lease(lease))


def encode_lease(lease: RateLease) -> bytes:
    """The body of a LEASE_FAR_RATES."""
    rates = (_RATE.pack(port.encode(), rate) for port, rate in lease.rates.items())
    return _LEASE.pack(lease.seconds) + b"".join(rates)


def decode_lease(data: bytes) -> RateLease:
    """The rates of a message; bounds are not checked. Raises ValueError on a wrong length or name."""
    if len(data) < LEASE_SIZE or (len(data) - LEASE_SIZE) % RATE_SIZE:
        raise ValueError(
            f"the body of LEASE_FAR_RATES is {LEASE_SIZE} bytes and {RATE_SIZE} a port, not {len(data)}"
        )
    (seconds,) = _LEASE.unpack_from(data)
    rates: dict[str, int] = {}
    for name, rate in _RATE.iter_unpack(data[LEASE_SIZE:]):
        rates[_port(name, rates)] = rate
    return RateLease(seconds, rates)


def _fields(queue: FarQueue) -> tuple[bytes, int, int, int]:
    return queue.port.encode(), queue.rate, queue.buffer, round(queue.share * _MILLION)


def _port(name: bytes, known: Mapping[str, object]) -> str:
    """Raises ValueError, also for a name that is there already."""
    port = name.rstrip(b"\0").decode()
    if not port or "\0" in port or port in known:
        raise ValueError(f"a far queue of interface {port!r}{' twice' if port in known else ''}")
    return port


# Reading


def request(datapath: Any) -> Any:
    """The request for the far queues of a bridge."""
    return framing.request(datapath, EXP_TYPE_FAR_QUEUES, b"")


def decode_request(data: bytes) -> None:
    """Check a request. Raises ValueError if it has a body."""
    if data:
        raise ValueError(f"a request for far queues has no body, not {len(data)} bytes")


def encode_reply(states: Iterable[FarQueueState]) -> bytes:
    """The reply's body."""
    return b"".join(
        _RECORD.pack(*_fields(each.queue), TOLD * each.told, each.ofport, each.leased) for each in states
    )


def decode_reply(data: bytes) -> list[FarQueueState]:
    """The far queues of a reply's body. Raises ValueError on a wrong length or name."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a reply about far queues is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    found: dict[str, FarQueueState] = {}
    for name, rate, buffer, share, flags, ofport, leased in _RECORD.iter_unpack(data):
        port = _port(name, found)
        queue = FarQueue(port, rate, buffer, share / _MILLION)
        found[port] = FarQueueState(queue, bool(flags & TOLD), ofport, leased)
    return list(found.values())


def refused(error: Any) -> str | None:
    """Why an agent refuses a SET_FAR_QUEUES, from an error message (Ryu's ``OFPErrorMsg``). None: it refuses
    something else.
    """
    if not framing.quotes(error, ofp.OFPT_EXPERIMENTER, EXP_TYPE_FAR_QUEUES):
        return None
    if error.type == ofp.OFPET_EXPERIMENTER:
        return quoted_law.reason(error, ERRORS) or ERRORS[ERROR_FAR_QUEUE]
    return f"it answers with error {error.type}, code {error.code} (see its log)"


def is_unlisted(error: Any) -> bool:
    """Whether an error message answers a request for far queues: no reply to it will come."""
    return framing.quotes(error, ofp.OFPT_MULTIPART_REQUEST, EXP_TYPE_FAR_QUEUES)


SET = Incoming(EXP_TYPE_FAR_QUEUES, "SET_FAR_QUEUES", decode_set)
REQUEST = Incoming(EXP_TYPE_FAR_QUEUES, "request for far queues", decode_request)
REPLY = Incoming(EXP_TYPE_FAR_QUEUES, "reply about far queues", decode_reply)
LEASE = Incoming(EXP_TYPE_LEASE_FAR_RATES, "LEASE_FAR_RATES", decode_lease)

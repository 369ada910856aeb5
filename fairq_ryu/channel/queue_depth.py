"""The queue-depth multipart: what the queue statistics of OpenFlow 1.3 lack, such as the backlog and its
peak.

Request body (8 bytes): port number (``OFPP_ANY`` for all), padding. Reply body: one 64-byte record for each
port, see :class:`QueueDepth`. Everything is in network byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.model import QueueSample

EXP_TYPE_QUEUE_DEPTH = 1
UNMEASURED = 0xFFFFFFFFFFFFFFFF
"""The ``limit`` of a port whose backlog cannot be measured."""

_REQUEST = struct.Struct("!I4x")
_RECORD = struct.Struct("!IIQQQQQQQ")
REQUEST_SIZE = _REQUEST.size
RECORD_SIZE = _RECORD.size


class QueueDepth(NamedTuple):
    """One port's record, in the order of the wire.

    ``active``: flows whose data left through the port recently and that have no rule of their own;
    ``backlog``, ``peak`` (since the last request on this connection) and ``limit`` (0: not known;
    :data:`UNMEASURED`: the backlog is not that of one queue, so that the port has no windows) in bytes;
    ``rate`` in bytes per second (0: not known); ``drops`` in packets, by the queue's own count (it does not
    start at 0); ``byte_ns``: the integral of the backlog over time, in byte nanoseconds, up to ``clock_ns``
    of the switch's monotonic clock, so that two records give the exact mean between them.
    """

    port: int
    active: int
    backlog: int
    peak: int
    limit: int
    rate: int
    drops: int
    byte_ns: int
    clock_ns: int

    @property
    def measured(self) -> bool:
        """Whether the backlog is that of one queue."""
        return self.limit != UNMEASURED

    @property
    def buffer(self) -> int:
        """The limit, bytes; 0: not known, or the queue cannot be measured."""
        return 0 if self.limit == UNMEASURED else self.limit


def request(datapath: Any, port: int = ofp.OFPP_ANY) -> Any:
    """The request for the queue depth of a port, or of all ports."""
    return framing.request(datapath, EXP_TYPE_QUEUE_DEPTH, encode_request(port))


def encode_request(port: int) -> bytes:
    """The request's body for one port, or ``OFPP_ANY``."""
    return _REQUEST.pack(port)


def decode_request(data: bytes) -> int:
    """The requested port. Raises ValueError on a wrong length."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"a queue-depth request is {REQUEST_SIZE} bytes, not {len(data)}")
    return int(_REQUEST.unpack(data)[0])


def encode_reply(records: Iterable[QueueDepth]) -> bytes:
    """The reply's body."""
    return b"".join(_RECORD.pack(*record) for record in records)


def decode_reply(data: bytes) -> list[QueueDepth]:
    """The records of a reply's body. Raises ValueError on a wrong length."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a queue-depth reply is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    return [QueueDepth._make(fields) for fields in _RECORD.iter_unpack(data)]


REQUEST = Incoming(EXP_TYPE_QUEUE_DEPTH, "queue-depth request", decode_request)
REPLY = Incoming(EXP_TYPE_QUEUE_DEPTH, "queue-depth reply", decode_reply)


def sample(now: QueueDepth, before: QueueDepth | None) -> QueueSample:
    """A policy's view of a record, given the one before it (None: there is none)."""
    mean = float(now.backlog)
    if before is not None and now.clock_ns > before.clock_ns and now.byte_ns >= before.byte_ns:
        mean = (now.byte_ns - before.byte_ns) / (now.clock_ns - before.clock_ns)
    return QueueSample(
        backlog=now.backlog,
        peak=now.peak,
        limit=now.buffer,
        rate=now.rate,
        drops=now.drops,
        active=now.active,
        mean=mean,
    )

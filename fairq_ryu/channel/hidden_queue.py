"""The hidden-queue multipart: what an agent has inferred about the queues that far queues stand for.

Everything is in network byte order. The reply has a record for each far queue that was asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.protocol import ofp

EXP_TYPE_HIDDEN_QUEUE = 20

_REQUEST = struct.Struct("!I4x")
_RECORD = struct.Struct("!IIIIQQQQQ")
REQUEST_SIZE, RECORD_SIZE = _REQUEST.size, _RECORD.size


class HiddenQueue(NamedTuple):
    """A far queue's record, in the order of the wire.

    ``why``: a :class:`~fairq_ryu.far_queue.Why`; ``standing``: what stood in the hidden queue throughout the
    last interval, and ``mean`` what did so on average, bytes; ``line``: the rate of the line (0: not known),
    ``rate``: that of the virtual queue, ``peak``: the highest rate of arrivals in an interval of the last one
    to two seconds, bytes per second; ``excess_ns``: what all ``samples`` of round trips took beyond the least
    ones, so that two records give the exact mean between them.
    """

    port: int
    why: int
    standing: int
    mean: int
    line: int
    rate: int
    peak: int
    excess_ns: int
    samples: int

    def delay_s(self, before: HiddenQueue | None) -> float | None:
        """The mean delay in the hidden queue since the record before, seconds; None: not measured since."""
        if before is None or before.samples >= self.samples or before.excess_ns > self.excess_ns:
            return None
        return (self.excess_ns - before.excess_ns) / (self.samples - before.samples) / 1e9


def request(datapath: Any, port: int = ofp.OFPP_ANY) -> Any:
    """The request for all far queues, or for one."""
    return framing.request(datapath, EXP_TYPE_HIDDEN_QUEUE, encode_request(port))


def encode_request(port: int) -> bytes:
    """The request's body for one port, or ``OFPP_ANY``."""
    return _REQUEST.pack(port)


def decode_request(data: bytes) -> int:
    """The requested port. Raises ValueError on a wrong length."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"a request for hidden queues is {REQUEST_SIZE} bytes, not {len(data)}")
    return int(_REQUEST.unpack(data)[0])


def encode_reply(records: Iterable[HiddenQueue]) -> bytes:
    """The reply's body."""
    return b"".join(_RECORD.pack(*record) for record in records)


def decode_reply(data: bytes) -> list[HiddenQueue]:
    """The records of a reply's body. Raises ValueError on a wrong length."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a reply about hidden queues is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    return [HiddenQueue._make(fields) for fields in _RECORD.iter_unpack(data)]


REQUEST = Incoming(EXP_TYPE_HIDDEN_QUEUE, "request for hidden queues", decode_request)
REPLY = Incoming(EXP_TYPE_HIDDEN_QUEUE, "reply about hidden queues", decode_reply)

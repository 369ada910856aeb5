"""The flow-change multipart: the flow records of a bridge as changes, in chunks.

A request names the generation up to which the controller has applied the changes, or 0 for none. The reply is
one chunk: the records that have changed since, the directions that are not listed any more, and the
generation to name next. The agent sends a chunk only when it is asked for one, so a controller that is slow
is never sent more than it can take, and a flow without segments costs nothing after its first record.

Request body (16 bytes) and the head of the reply (40 bytes) are below, in network byte order; the records are
those of :mod:`~fairq_ryu.channel.flow_records`, the directions the keys of
:mod:`~fairq_ryu.channel.segment_state`.
"""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import Any, NamedTuple

from fairq_ryu.channel import flow_records, framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.segment_state import KEY_SIZE, decode_key
from fairq_ryu.model import FlowKey

EXP_TYPE_FLOW_CHANGES = 16
# Records and directions in a chunk: so many fit in one message.
MAX_RECORDS = 640
LEAVE_OUT_MS = 1500
"""How much later an agent reports a connection that lasts while it leaves out those that end soon, at most: a
reading of the flow map that begins longer after the one before leaves none out."""
# The flow map was never read, or longer ago than this tells.
NEVER_MS = 0xFFFFFFFF

_REQUEST = struct.Struct("!QIHH")
_HEAD = struct.Struct("!QIIIIIIHHxxxx")
REQUEST_SIZE = _REQUEST.size
HEAD_SIZE = _HEAD.size
_VERSIONS = {4, 6}
# Offset of the IP version in a record and in a key.
_VERSION_AT = 36


class RequestFlags(IntFlag):
    """``ENDED_AGAIN``: connections that have ended are reported again at every reading of the flow map, as
    long as it has them: their last counts are needed. ``LASTING``: a new connection is reported only when
    two readings of the flow map, which follow each other soon, have seen it alive; one that ends before is
    not reported at all.
    """

    ENDED_AGAIN = 1
    LASTING = 2


class ChunkFlags(IntFlag):
    """``ANEW``: forget what was listed before, this chunk begins the list; ``MORE``: changes are waiting."""

    ANEW = 1
    MORE = 2


class ChangeRequest(NamedTuple):
    """The requested changes: those after ``generation`` (0: all), at most ``limit`` records and directions
    together. A flow that sends is reported again every ``refresh_ms`` at most.
    """

    generation: int
    refresh_ms: int
    limit: int
    flags: RequestFlags = RequestFlags(0)


class Chunk(NamedTuple):
    """The head of a reply.

    ``generation``: to be named in the next request; ``age_ms``: since the agent began its last complete
    reading of the flow map, whose changes all come before the end of the chunks; ``refresh_ms``: the interval
    in force, the shortest that a controller has asked for; ``listed``: directions that the agent lists in
    all; ``active``: of these, those that have sent within ``refresh_ms``; ``unscaled``: those whose window
    scale is not known.
    """

    generation: int
    flags: ChunkFlags
    age_ms: int
    refresh_ms: int
    listed: int
    active: int
    unscaled: int


class Changes(NamedTuple):
    """A reply. The records and directions are left encoded, because there may be hundreds: a controller
    decodes as many at a time as it has time for.
    """

    head: Chunk
    records: bytes
    removed: bytes


def request(datapath: Any, wanted: ChangeRequest) -> Any:
    """The request for a chunk of changes."""
    return framing.request(datapath, EXP_TYPE_FLOW_CHANGES, encode_request(wanted))


def encode_request(wanted: ChangeRequest) -> bytes:
    """The request's body."""
    return _REQUEST.pack(*wanted)


def decode_request(data: bytes) -> ChangeRequest:
    """The content of a request. Raises ValueError on a wrong length, or a limit that allows no connection."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"a flow-change request is {REQUEST_SIZE} bytes, not {len(data)}")
    generation, refresh_ms, limit, flags = _REQUEST.unpack(data)
    if limit < 2:
        raise ValueError(f"a flow-change request is for 2 records at least, not {limit}")
    return ChangeRequest(generation, refresh_ms, limit, RequestFlags(flags))


def encode_reply(reply: Changes) -> bytes:
    """The reply's body."""
    records, removed = reply.records, reply.removed
    counts = len(records) // flow_records.RECORD_SIZE, len(removed) // KEY_SIZE
    return _HEAD.pack(*reply.head, *counts) + records + removed


def decode_reply(data: bytes) -> Changes:
    """The content of a reply's body. Raises ValueError on a wrong length or IP version."""
    if len(data) < HEAD_SIZE:
        raise ValueError(f"a flow-change reply is {HEAD_SIZE} bytes at least, not {len(data)}")
    generation, flags, *numbers, records, removed = _HEAD.unpack_from(data)
    end = HEAD_SIZE + records * flow_records.RECORD_SIZE
    if len(data) != end + removed * KEY_SIZE:
        raise ValueError(
            f"a flow-change reply with {records} records and {removed} removed directions is "
            f"{end + removed * KEY_SIZE} bytes, not {len(data)}"
        )
    found = Changes(Chunk(generation, ChunkFlags(flags), *numbers), data[HEAD_SIZE:end], data[end:])
    for part, width in ((found.records, flow_records.RECORD_SIZE), (found.removed, KEY_SIZE)):
        versions = set(part[_VERSION_AT::width])
        if not versions <= _VERSIONS:
            raise ValueError(f"IP version {max(versions - _VERSIONS)}")
    return found


def decode_removed(data: bytes) -> list[FlowKey]:
    """The directions in a part of :attr:`Changes.removed`. Raises ValueError on a wrong IP version."""
    return [decode_key(data[at : at + KEY_SIZE]) for at in range(0, len(data), KEY_SIZE)]


REQUEST = Incoming(EXP_TYPE_FLOW_CHANGES, "flow-change request", decode_request)
REPLY = Incoming(EXP_TYPE_FLOW_CHANGES, "flow-change reply", decode_reply)

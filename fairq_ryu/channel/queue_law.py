"""Queue laws on the channel: SET_QUEUE_LAW adds, changes or deletes one, and a multipart reports states.

As window laws (:mod:`.window_law`), with the same commands and error codes; the rules that refer to them are
in a flow table of their own. Everything is in network byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from fairq_ryu.channel import framing, quoted_law, window_law
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.channel.flowmod import QUEUE_TABLE_ID
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.quoted_law import ALL_LAWS
from fairq_ryu.channel.window_law import REQUEST_SIZE as REQUEST_SIZE  # a request is the same for both
from fairq_ryu.channel.window_law import (
    LawCommand,
    RefusedLaw,
    encode_request,
    encode_set,
    split_set,
)
from fairq_ryu.channel.window_law import decode_request as decode_request
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.queue_law_spec import QueueLawSpec

EXP_TYPE_SET_QUEUE_LAW = 17
EXP_TYPE_QUEUE_LAW_STATES = 18

_RECORD = struct.Struct("!IIHHIQQQQQIIIIIIII")
RECORD_SIZE = _RECORD.size
_REQUESTS = quoted_law.LawRequests(
    EXP_TYPE_SET_QUEUE_LAW,
    EXP_TYPE_QUEUE_LAW_STATES,
    QUEUE_TABLE_ID,
    {**quoted_law.UNUSABLE_LAW, ofp.OFPT_FLOW_MOD: (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)},
)


class SetQueueLaw(NamedTuple):
    """The body of a SET_QUEUE_LAW, as that of a SET_LAW. ``spec`` is None in a deletion, and if command or
    kind are not known.
    """

    command: int
    law: int
    spec: QueueLawSpec | None


class QueueLawState(NamedTuple):
    """The state of a queue law, in the order of the wire.

    ``port``: whose rule refers to it (0: none). ``kind`` and ``variant`` of the law (0: it has none);
    ``limits``: what it acts on now (:class:`~fairq_ryu.queue_law_spec.Limits`). Packets, of all laws of the
    port: ``judged``, of these ``dropped``, ``marked``, ``not_ect`` that are not ECN-capable, and
    ``unmarked``, those of them that would have been marked otherwise. ``fair_q16``: the fair share in 1/65536
    samples (0: not known), ``flows`` and ``samples`` in the shadow buffer, one in ``sample_every`` packets
    (0: the law counts none). ``target_bytes`` is the queue length that the law aims at (0: none),
    ``delay_us`` the queueing delay of the last packet, ``target_us`` and ``interval_us`` those in force,
    microseconds (0: the law has none).
    """

    law: int
    port: int
    kind: int
    variant: int
    limits: int
    judged: int = 0
    dropped: int = 0
    marked: int = 0
    not_ect: int = 0
    unmarked: int = 0
    fair_q16: int = 0
    flows: int = 0
    samples: int = 0
    sample_every: int = 0
    target_bytes: int = 0
    delay_us: int = 0
    target_us: int = 0
    interval_us: int = 0


# Setting and deleting


def set_queue_law(datapath: Any, command: LawCommand, law: int, spec: QueueLawSpec | None = None) -> Any:
    """The message that adds, changes or deletes a queue law; ``spec`` is not needed to delete one."""
    return framing.command(datapath, EXP_TYPE_SET_QUEUE_LAW, encode_set(command, law, spec))


def decode_set(data: bytes) -> SetQueueLaw:
    """The requested law; bounds are not checked. Raises ValueError on a wrong length."""
    return SetQueueLaw(*split_set("SET_QUEUE_LAW", data, queue_laws()))


# Refusals


def refused_law(error: Any) -> RefusedLaw | None:
    """The queue law that an error message of an agent refuses, as :func:`.window_law.refused_law`."""
    return window_law.refused_law(error, _REQUESTS)


# Statistics


def request(datapath: Any, law: int = ALL_LAWS) -> Any:
    """The request for the state of a queue law, or of all."""
    return framing.request(datapath, EXP_TYPE_QUEUE_LAW_STATES, encode_request(law))


def encode_reply(states: Iterable[QueueLawState]) -> bytes:
    """The reply's body."""
    return b"".join(_RECORD.pack(*state) for state in states)


def decode_reply(data: bytes) -> list[QueueLawState]:
    """The states in a reply's body. Raises ValueError on a wrong length."""
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a reply about queue laws is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    return [QueueLawState._make(fields) for fields in _RECORD.iter_unpack(data)]


SET = Incoming(EXP_TYPE_SET_QUEUE_LAW, "SET_QUEUE_LAW", decode_set)
REQUEST = Incoming(EXP_TYPE_QUEUE_LAW_STATES, "request for queue laws", decode_request)
REPLY = Incoming(EXP_TYPE_QUEUE_LAW_STATES, "reply about queue laws", decode_reply)

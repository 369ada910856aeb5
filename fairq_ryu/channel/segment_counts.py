"""The segment-count multipart: the segments that the agent has sent by itself, those that it could not send,
and the outcomes of the losses that it has recovered.

The request has no body. The reply has one record of 16 bytes for each count that is not 0, in network byte
order. All counts begin with the agent, except :attr:`SegmentCounts.stored`, which is a present number.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming
from fairq_ryu.packet.tcp_build import Refusal

EXP_TYPE_SEGMENT_COUNTS = 12

# Groups of counts.
LOSSES, WAKE, DUPACK, REINJECT, STORED = range(1, 6)
KINDS = {WAKE: "wake", DUPACK: "dupack", REINJECT: "reinject"}
# Items of the group LOSSES.
OUTCOMES = (
    "lost",
    "ignored",
    "tracked",
    "repeated",
    "truncated",
    "duplicates",
    "reinjected",
    "acked",
    "expired",
    "overflow",
    "forgotten",
    "limited",
    "unanswered",
)
UNKNOWN_ADDRESSES = "addresses not known"
NOT_SENT = "the port takes no more packets"
OVER = "the connection is over"
OBSERVED = "the port is only observed"
# Items of the groups in KINDS: 0 counts what was sent, the others what was not, by reason.
REASONS: dict[int, str] = {
    1: Refusal.NOT_FOUND,
    2: Refusal.ENDED,
    3: Refusal.TIMESTAMPS,
    4: Refusal.ADDRESSES,
    5: Refusal.CLOSED_WINDOW,
    6: Refusal.WINDOW,
    7: Refusal.NUMBERS,
    8: UNKNOWN_ADDRESSES,
    9: NOT_SENT,
    10: OVER,
    11: OBSERVED,
    12: Refusal.SIGNED,
}

_RECORD = struct.Struct("!HH4xQ")
RECORD_SIZE = _RECORD.size
_ITEMS = {str(reason): item for item, reason in REASONS.items()}
_GROUPS = {name: group for group, name in KINDS.items()}


class SegmentCounts(NamedTuple):
    """``losses``: outcomes by name, in segments; ``sent``: by kind and, for what was not sent, by
    ``"KIND: REASON"``; ``stored``: losses that can still be recovered.
    """

    losses: Mapping[str, int]
    sent: Mapping[str, int]
    stored: int


def request(datapath: Any) -> Any:
    """The request for all counts."""
    return framing.request(datapath, EXP_TYPE_SEGMENT_COUNTS, b"")


def decode_request(data: bytes) -> None:
    """Raises ValueError if there is a body."""
    if data:
        raise ValueError(f"a request for segment counts has no body, not {len(data)} bytes")


def encode_reply(counts: SegmentCounts) -> list[bytes]:
    """The records of the reply. Raises KeyError for a name that has no number."""
    found = [(LOSSES, OUTCOMES.index(name), count) for name, count in counts.losses.items() if count]
    for name, count in counts.sent.items():
        kind, _, reason = name.partition(": ")
        found.append((_GROUPS[kind], _ITEMS[reason] if reason else 0, count))
    if counts.stored:
        found.append((STORED, 0, counts.stored))
    return [_RECORD.pack(*record) for record in found]


def decode_reply(data: bytes) -> SegmentCounts:
    """The counts in a reply's body; those of unknown groups or items are left out, because a newer agent may
    have more. Raises ValueError on a wrong length.
    """
    if len(data) % RECORD_SIZE:
        raise ValueError(f"a reply about segments is a multiple of {RECORD_SIZE} bytes, not {len(data)}")
    losses: dict[str, int] = {}
    sent: dict[str, int] = {}
    stored = 0
    for group, item, count in _RECORD.iter_unpack(data):
        if group == LOSSES and item < len(OUTCOMES):
            losses[OUTCOMES[item]] = count
        elif group in KINDS and item == 0:
            sent[KINDS[group]] = count
        elif group in KINDS and item in REASONS:
            sent[f"{KINDS[group]}: {REASONS[item]}"] = count
        elif group == STORED and item == 0:
            stored = count
    return SegmentCounts(losses, sent, stored)


REQUEST = Incoming(EXP_TYPE_SEGMENT_COUNTS, "request for segment counts", decode_request)
REPLY = Incoming(EXP_TYPE_SEGMENT_COUNTS, "reply about segments", decode_reply)

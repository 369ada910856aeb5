"""The segment-count multipart."""

from __future__ import annotations

import struct
from dataclasses import fields

import pytest

from fairq_ryu.channel import segment_counts
from fairq_ryu.channel.segment_counts import SegmentCounts
from fairq_ryu.fabric.recovery.actions import Counters
from fairq_ryu.packet.tcp_build import Refusal

COUNTS = SegmentCounts(
    {"lost": 7, "reinjected": 5, "limited": 1},
    {"wake": 2, "wake: addresses not known": 1, "reinject": 5, f"dupack: {Refusal.ENDED}": 3},
    4,
)


def test_counts_on_the_wire():
    found = segment_counts.encode_reply(COUNTS)
    assert set(found) == {
        struct.pack("!HH4xQ", *record)
        for record in [
            (1, 0, 7),
            (1, 6, 5),
            (1, 11, 1),
            (2, 0, 2),
            (2, 8, 1),
            (4, 0, 5),
            (3, 2, 3),
            (5, 0, 4),
        ]
    }
    assert segment_counts.decode_reply(b"".join(found)) == COUNTS


def test_zeros_are_left_out():
    assert segment_counts.encode_reply(SegmentCounts({"lost": 0}, {}, 0)) == []
    assert segment_counts.decode_reply(b"") == SegmentCounts({}, {}, 0)


def test_every_outcome_and_every_refusal_has_a_number():
    assert tuple(field.name for field in fields(Counters)) == segment_counts.OUTCOMES
    assert set(Refusal) < set(segment_counts.REASONS.values())
    for kind in segment_counts.KINDS.values():
        for reason in segment_counts.REASONS.values():
            counts = SegmentCounts({}, {f"{kind}: {reason}": 9}, 0)
            assert segment_counts.decode_reply(b"".join(segment_counts.encode_reply(counts))) == counts


def test_what_a_newer_agent_counts_is_left_out():
    unknown = [(1, 99, 1), (2, 99, 1), (9, 0, 1), (5, 1, 1)]
    data = b"".join(struct.pack("!HH4xQ", *record) for record in unknown)
    assert segment_counts.decode_reply(data) == SegmentCounts({}, {}, 0)


def test_wrong_lengths():
    with pytest.raises(ValueError, match="multiple of 16 bytes, not 15"):
        segment_counts.decode_reply(bytes(15))
    with pytest.raises(ValueError, match="no body, not 1"):
        segment_counts.decode_request(b"\0")

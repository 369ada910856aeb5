"""The flow-change multipart."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import flow_changes, flow_records, segment_state
from fairq_ryu.channel.flow_changes import ChangeRequest, Changes, Chunk, ChunkFlags, RequestFlags
from fairq_ryu.model import FlowKey
from tests.unit.channel.test_flow_records import FIRST, KEYS, RECORDS

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
CHUNKS = st.builds(Chunk, U64, st.integers(0, 3).map(ChunkFlags), U32, U32, U32, U32, U32)
HEAD = Chunk(0x0102030405060708, ChunkFlags.ANEW | ChunkFlags.MORE, 9, 1000, 11, 12, 13)
GONE = FlowKey("10.0.0.3", "10.0.0.4", 5, 6)


def reply(
    head: Chunk = HEAD,
    records: tuple[flow_records.FlowRecord, ...] = (FIRST,),
    gone: tuple[FlowKey, ...] = (GONE, GONE.reversed),
) -> bytes:
    removed = b"".join(map(segment_state.encode_key, gone))
    return flow_changes.encode_reply(Changes(head, flow_records.encode_reply(records), removed))


def test_a_reply_on_the_wire():
    data = reply()
    head = struct.pack("!Q6I2H4x", 0x0102030405060708, 3, 9, 1000, 11, 12, 13, 1, 2)
    keys = segment_state.encode_key(GONE) + segment_state.encode_key(GONE.reversed)
    assert data == head + flow_records.encode_reply([FIRST]) + keys
    assert flow_changes.HEAD_SIZE == len(head) == 40


def test_a_request_on_the_wire():
    data = flow_changes.encode_request(ChangeRequest(7, 1000, 512, RequestFlags.ENDED_AGAIN))
    assert data == struct.pack("!QIHH", 7, 1000, 512, 1)
    assert len(data) == flow_changes.REQUEST_SIZE == 16


@given(CHUNKS, st.lists(RECORDS, max_size=3), st.lists(KEYS, max_size=3))
def test_replies_round_trip(head, records, gone):
    found = flow_changes.decode_reply(reply(head, records, gone))
    assert found.head == head
    assert flow_records.decode_reply(found.records) == records
    assert flow_changes.decode_removed(found.removed) == gone


@given(st.builds(ChangeRequest, U64, U32, st.integers(2, 2**16 - 1), st.integers(0, 1).map(RequestFlags)))
def test_requests_round_trip(wanted):
    assert flow_changes.decode_request(flow_changes.encode_request(wanted)) == wanted


@pytest.mark.parametrize("limit", [0, 1])
def test_a_request_that_has_no_room_for_a_connection_is_refused(limit):
    with pytest.raises(ValueError, match="2 records"):
        flow_changes.decode_request(flow_changes.encode_request(ChangeRequest(0, 1, limit)))


def test_wrong_lengths_are_refused():
    whole, request = reply(), flow_changes.encode_request(ChangeRequest(0, 1, 2))
    for end in range(len(whole)):
        with pytest.raises(ValueError, match="bytes"):
            flow_changes.decode_reply(whole[:end])
    for data in (request[:-1], request + b"\0", b""):
        with pytest.raises(ValueError, match="16 bytes"):
            flow_changes.decode_request(data)
    with pytest.raises(ValueError, match="bytes"):
        flow_changes.decode_reply(whole + b"\0")


@pytest.mark.parametrize("at", [36, flow_records.RECORD_SIZE + 36, flow_records.RECORD_SIZE + 76])
@pytest.mark.parametrize("version", [0, 5, 255])
def test_ip_versions_are_checked_before_anything_is_decoded(at, version):
    data = bytearray(reply())
    data[flow_changes.HEAD_SIZE + at] = version
    with pytest.raises(ValueError, match=f"IP version {version}"):
        flow_changes.decode_reply(bytes(data))


def test_a_full_chunk_fits_in_a_message():
    data = reply(HEAD, (FIRST,) * flow_changes.MAX_RECORDS, ())
    assert len(data) + 8 <= 60_000  # what a reply may have in one message, with the experimenter's header

"""The queue-depth multipart."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import queue_depth
from fairq_ryu.channel.queue_depth import QueueDepth

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
RECORDS = st.builds(QueueDepth, U32, U32, U64, U64, U64, U64, U64, U64, U64)
FIRST = QueueDepth(port=1, active=2, backlog=3, peak=4, limit=5, rate=6, drops=7, byte_ns=8, clock_ns=9)


def test_a_record_on_the_wire():
    data = queue_depth.encode_reply([FIRST])
    assert len(data) == queue_depth.RECORD_SIZE == 64
    assert data == struct.pack("!2I7Q", 1, 2, 3, 4, 5, 6, 7, 8, 9)


@given(st.lists(RECORDS, max_size=5))
def test_records_round_trip(records):
    assert queue_depth.decode_reply(queue_depth.encode_reply(records)) == records


@given(U32)
def test_requests_round_trip(port):
    data = queue_depth.encode_request(port)
    assert data == struct.pack("!I", port) + bytes(4)
    assert queue_depth.decode_request(data) == port


@given(st.binary(max_size=200))
def test_wrong_lengths_are_refused(data):
    if len(data) != 8:
        with pytest.raises(ValueError, match="8 bytes"):
            queue_depth.decode_request(data)
    if len(data) % 64:
        with pytest.raises(ValueError, match="multiple of 64"):
            queue_depth.decode_reply(data)


def test_the_first_sample_has_no_mean():
    sample = queue_depth.sample(FIRST, None)
    assert sample.mean == 3.0
    assert (sample.backlog, sample.peak, sample.limit, sample.rate) == (3, 4, 5, 6)
    assert (sample.drops, sample.active) == (7, 2)


def test_a_queue_that_cannot_be_measured_has_no_limit():
    record = FIRST._replace(limit=queue_depth.UNMEASURED)
    assert queue_depth.encode_reply([record])[24:32] == b"\xff" * 8
    assert (record.measured, record.buffer, queue_depth.sample(record, None).limit) == (False, 0, 0)
    assert (FIRST.measured, FIRST.buffer) == (True, 5)


def test_the_mean_is_the_integral_over_the_time_between():
    # 1000 bytes for 2 ms, then 4000 bytes for 1 ms: 2000 on average.
    before = FIRST._replace(byte_ns=10**9, clock_ns=5_000_000)
    now = before._replace(
        byte_ns=before.byte_ns + 1000 * 2_000_000 + 4000 * 1_000_000, clock_ns=8_000_000, backlog=0
    )
    assert queue_depth.sample(now, before).mean == pytest.approx(2000)


@pytest.mark.parametrize("change", [{"clock_ns": 9}, {"clock_ns": 1}, {"clock_ns": 20, "byte_ns": 7}])
def test_a_switch_that_started_again_has_no_mean(change):
    assert queue_depth.sample(FIRST._replace(**change), FIRST).mean == 3.0

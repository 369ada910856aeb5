"""The flow-record multipart."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import flow_records
from fairq_ryu.channel.flow_records import FlowRecord
from fairq_ryu.model import FlowKey

U16, U32, U64 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
KEYS = st.one_of(
    *(
        st.builds(FlowKey, *[st.ip_addresses(v=version).map(str)] * 2, U16, U16, st.integers(0, 4094))
        for version in (4, 6)
    )
)
RECORDS = st.builds(
    FlowRecord, KEYS, U32, U16, st.none() | st.integers(0, 14), U16, U32, U64, U64, U64, U64, U32
)
FIRST = FlowRecord(
    key=FlowKey("10.0.0.1", "10.0.0.2", 0x1234, 80),
    port=3,
    flags=flow_records.KNOWN | flow_records.RULED,
    wscale=None,
    mss=1460,
    idle_ms=8,
    bytes=9,
    packets=10,
    rewritten=11,
    acked=12,
    rtt_us=13,
)


def test_a_record_on_the_wire():
    data = flow_records.encode_reply([FIRST])
    assert len(data) == flow_records.RECORD_SIZE == 88
    addresses = bytes([10, 0, 0, 1]) + bytes(12) + bytes([10, 0, 0, 2]) + bytes(12)
    ends = struct.pack("!2H2BH2I", 0x1234, 80, 4, 0xFF, 1460, 3, 5)
    assert data == addresses + ends + struct.pack("!4Q2I", 9, 10, 11, 12, 8, 13)


@given(st.lists(RECORDS, max_size=5))
def test_records_round_trip(found):
    assert flow_records.decode_reply(flow_records.encode_reply(found)) == found


@given(U32, U32)
def test_requests_round_trip(idle, port):
    assert flow_records.decode_request(flow_records.encode_request(idle, port)) == (idle, port)


def test_a_request_is_for_all_ports_unless_it_names_one():
    assert flow_records.encode_request(7) == struct.pack("!II", 7, 0xFFFFFFFF)


@given(st.binary(max_size=200))
def test_wrong_lengths_are_refused(data):
    if len(data) != 8:
        with pytest.raises(ValueError, match="8 bytes"):
            flow_records.decode_request(data)
    if len(data) % 88:
        with pytest.raises(ValueError, match="multiple of 88"):
            flow_records.decode_reply(data)


@pytest.mark.parametrize("version", [0, 5, 255])
def test_other_versions_of_ip_are_refused(version):
    data = bytearray(flow_records.encode_reply([FIRST]))
    data[36] = version
    with pytest.raises(ValueError, match=f"IP version {version}"):
        flow_records.decode_reply(bytes(data))


@given(st.binary(min_size=88, max_size=88))
def test_any_bytes_are_a_record_or_refused(data):
    try:
        (record,) = flow_records.decode_reply(data)
    except ValueError:
        assert data[36] not in (4, 6)
    else:
        assert record.key.version == data[36]

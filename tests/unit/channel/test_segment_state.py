"""The segment-state multipart."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import segment_state
from fairq_ryu.model import FlowKey, SegmentState

U16, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)
KEYS = st.one_of(
    *(
        st.builds(FlowKey, *[st.ip_addresses(v=version).map(str)] * 2, U16, U16, st.integers(0, 4095))
        for version in (4, 6)
    )
)
FLAG = st.booleans()
STATES = st.builds(
    SegmentState,
    KEYS,
    FLAG,
    U32,
    U32,
    U32,
    U16,
    st.none() | st.integers(0, 14),
    U32,
    U32,
    st.none() | FLAG,
    U32,
    FLAG,
    FLAG,
    FLAG,
    U16,
)
KEY = FlowKey("10.0.0.1", "10.0.0.2", 0x1234, 80)
KEY_BYTES = (
    bytes([10, 0, 0, 1])
    + bytes(12)
    + bytes([10, 0, 0, 2])
    + bytes(12)
    + struct.pack("!HHI", 0x1234, 80, 4 << 24)
)


def test_a_key_and_a_state_on_the_wire():
    assert segment_state.encode_request([KEY]) == KEY_BYTES
    assert len(KEY_BYTES) == segment_state.KEY_SIZE == 40
    state = SegmentState(KEY, True, 1, 2, 3, 4, 5, 6, 7, True, 8, fin=True, passed=9)
    data = segment_state.encode_reply([state])
    assert len(data) == segment_state.RECORD_SIZE == 76
    assert data == KEY_BYTES + struct.pack("!4IHBB3IHH", 1, 1 | 2 | 8, 2, 3, 4, 5, 0, 6, 7, 8, 9, 0)
    signed = state._replace(fin=False, is_signed=True)
    data = segment_state.encode_reply([signed])
    assert data == KEY_BYTES + struct.pack("!4IHBB3IHH", 1, 1 | 2 | 32, 2, 3, 4, 5, 0, 6, 7, 8, 9, 0)
    assert segment_state.decode_reply(data) == [signed]


@given(st.lists(STATES, max_size=4))
def test_states_round_trip(states):
    assert segment_state.decode_reply(segment_state.encode_reply(states)) == states


@given(st.lists(KEYS, max_size=4))
def test_requests_round_trip(keys):
    assert segment_state.decode_request(segment_state.encode_request(keys)) == keys


def test_too_many():
    keys = [KEY] * segment_state.MAX_KEYS
    assert segment_state.decode_request(segment_state.encode_request(keys)) == keys
    with pytest.raises(ValueError, match="at most"):
        segment_state.encode_request([*keys, KEY])
    with pytest.raises(ValueError, match="at most"):
        segment_state.decode_request(KEY_BYTES * (segment_state.MAX_KEYS + 1))


@given(st.binary(max_size=240))
def test_any_bytes_are_decoded_or_refused(data):
    for decode, size in ((segment_state.decode_request, 40), (segment_state.decode_reply, 76)):
        versions = [data[at + 36] for at in range(0, len(data) // size * size, size)]
        if len(data) % size or set(versions) - {4, 6}:
            with pytest.raises(ValueError, match=r"segment-state|IP version"):
                decode(data)
        else:
            assert len(decode(data)) == len(versions)

"""Congestion messages of the channel: thresholds to the agent, notifications to the controller."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.channel import congestion
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.model import Congestion, Thresholds

CNG = Congestion.CNG
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


@given(U32, st.builds(Thresholds, U32, U32, st.booleans()))
def test_set_thresholds_round_trip(port, thresholds):
    found = congestion.decode_set(congestion.encode_set(port, thresholds))
    assert found == (port, thresholds.cng, thresholds.nom, int(thresholds.drops))


@given(st.builds(CongestionNotice, U32, st.sampled_from(Congestion), U32, U64))
def test_notices_round_trip(notice):
    assert congestion.decode_notice(congestion.encode_notice(notice)) == notice


def test_messages_on_the_wire():
    body = congestion.encode_set(17, Thresholds(5, 4, True))
    assert body == struct.pack("!4I", 17, 5, 4, 1)
    notice = congestion.encode_notice(CongestionNotice(17, CNG, 6, 7))
    assert notice == struct.pack("!IIIIQ", 17, 1 << 24, 6, 0, 7)


@given(st.binary(max_size=40))
def test_wrong_messages_are_refused(data):
    if len(data) != 16:
        with pytest.raises(ValueError, match="16 bytes"):
            congestion.decode_set(data)
    if len(data) != 24:
        with pytest.raises(ValueError, match="24 bytes"):
            congestion.decode_notice(data)
    elif data[4] > 1:
        with pytest.raises(ValueError, match="state"):
            congestion.decode_notice(data)

"""Which dropped packets matter to a sender: their loss costs a retransmission."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.packet.parse import can_be_lost
from tests.switch.packets import DESTINATION, VLAN, Segment

DATA = Segment(payload=b"x" * 100).frame()


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ({"payload": b"x"}, True),
        ({"flags": "S"}, True),
        ({"flags": "SA"}, True),
        ({"flags": "FA"}, True),
        ({"flags": "A"}, False),
        ({"flags": "A", "trailer": bytes(6)}, False),
        ({"flags": "R"}, False),
        ({"payload": b"x", "vlans": ((VLAN, 5), (VLAN, 6))}, True),
        ({"payload": b"x", "vlans": ((VLAN, 5),) * 3}, False),
        ({"payload": b"x", "options": bytes(40)}, True),
        ({"options": bytes(40)}, False),
    ],
)
def test_segments_whose_loss_matters(what, wanted, v6):
    ends = {"src": "fe80::1", "dst": "fe80::2", "extensions": ((DESTINATION, bytes(6)),)} if v6 else {}
    assert can_be_lost(Segment(**ends, **what).frame()) is wanted


def test_fragments_and_other_protocols_are_not_reported():
    frame = bytearray(DATA)
    frame[20] |= 0x20
    assert not can_be_lost(bytes(frame))
    frame = bytearray(DATA)
    frame[23] = 17
    assert not can_be_lost(bytes(frame))
    assert not can_be_lost(DATA[:12] + b"\x08\x06" + DATA[14:])


@given(st.binary(max_size=120))
def test_any_bytes_are_classified(data):
    can_be_lost(data)
    can_be_lost(DATA[:14] + data)

"""SET_RECOVERY on the wire."""

from __future__ import annotations

import struct

import pytest

from fairq_ryu.channel import recovery
from fairq_ryu.channel.recovery import SetRecovery

WANTED = SetRecovery(17, recovery.DUPACK | recovery.REINJECT, 1 << 20, 1000, 50_000, 2)


def test_a_recovery_on_the_wire():
    data = recovery.encode_set(WANTED)
    assert data == struct.pack("!6I", 17, 3, 1 << 20, 1000, 50_000, 2)
    assert len(data) == recovery.SET_SIZE == 24
    assert recovery.decode_set(data) == WANTED


@pytest.mark.parametrize("size", [0, 23, 25])
def test_a_wrong_length(size):
    with pytest.raises(ValueError, match=f"24 bytes, not {size}"):
        recovery.decode_set(bytes(size))


def test_bounds_are_those_of_fields():
    assert recovery.BOUNDS.keys() == set(SetRecovery._fields) - {"port", "flags"}

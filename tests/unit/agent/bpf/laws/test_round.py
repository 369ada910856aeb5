"""What a sender far from the switch has under way."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from tests.support.host_laws import library

MOST = 1 << 30
TIMES = st.integers(0, 2**32 - 1)


def released(measured: Any, acked: int, rtt: int, now: int) -> int:
    times = rtt, ctypes.c_uint64(now)
    return int(library().fq_host_released(ctypes.byref(measured), ctypes.c_uint64(acked), *times))


@given(
    st.lists(st.tuples(st.integers(0, 1 << 34), st.integers(0, 1 << 32)), max_size=30),
    st.sampled_from([0, 1_000_000, 20_000_000]) | TIMES,
)
def test_a_round_is_what_was_acknowledged_at_its_rate(steps, rtt):
    """By a model with real numbers: 9/8 of the bytes of the last round, scaled to a round trip."""
    measured = layout.fq_round()
    acked = now = 0
    began: tuple[int, int] | None = None
    expected = 0.0
    for more, spent in steps:
        acked, now = acked + more, now + spent
        found = released(measured, acked, rtt, now)
        if not rtt:
            assert found == 0
            continue
        since = began or (0, 0)
        if now - since[0] >= rtt:
            rate = min(acked - since[1], MOST) / (now - since[0])
            expected = min(rate * rtt * 9 / 8, MOST) if began and began[0] else 0.0
            began = (now, acked)
        assert found == pytest.approx(expected, abs=2)


def test_a_round_has_what_acks_have_released_in_the_round_trip_of_the_sender():
    made = layout.fq_round()
    rtt = 20_000_000
    assert released(made, 1_000, 0, 10**9) == 0, "nobody knows the round trip"
    assert released(made, 1_000, rtt, 10**9) == 0, "the first round begins"
    assert released(made, 9_000, rtt, 10**9 + rtt - 1) == 0
    assert released(made, 17_000, rtt, 10**9 + rtt) == 18_000, "16,000 and an eighth"
    # Within a pause of a second 16,000 bytes more: in a round trip a fiftieth of them.
    assert released(made, 33_000, rtt, 2 * 10**9 + rtt) == 360

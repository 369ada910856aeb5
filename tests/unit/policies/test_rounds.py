"""What a sender far from the switch has under way: the C code and its twin give the same."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.policies.rounds import Round
from tests.support.host_laws import build


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(layout.BPF_DIR, tmp_path_factory.mktemp("laws"))


TIMES = st.integers(0, 2**32 - 1)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 34), st.integers(0, 1 << 32)), max_size=30),
    st.sampled_from([0, 1_000_000, 20_000_000]) | TIMES,
    st.sampled_from([0, 1_000_000]) | TIMES,
)
def test_both_measure_the_same_rounds(library, steps, rtt, base_rtt):
    library.fq_host_released.restype = ctypes.c_uint32
    twin, measured = Round(), layout.fq_round()
    acked = now = 0
    for more, spent in steps:
        acked, now = acked + more, now + spent
        times = rtt, base_rtt, ctypes.c_uint64(now)
        released = library.fq_host_released(ctypes.byref(measured), ctypes.c_uint64(acked), *times)
        assert twin.bytes_released(acked, rtt, base_rtt, now) == released
        assert (twin.ns, twin.acked, twin.released) == (measured.ns, measured.acked, measured.released)


def test_a_round_has_what_acks_have_released_in_the_round_trip_of_the_sender():
    made = Round()
    rtt, base = 20_000_000, 1_000_000
    assert made.bytes_released(1_000, base, base, 10**9) == 0, "the sender is near"
    assert made.bytes_released(1_000, rtt, base, 10**9) == 0, "the first round begins"
    assert made.bytes_released(9_000, rtt, base, 10**9 + rtt - 1) == 0
    assert made.bytes_released(17_000, rtt, base, 10**9 + rtt) == 18_000, "16,000 and an eighth"
    # Within a pause of a second 16,000 bytes more: in a round trip a fiftieth of them.
    assert made.bytes_released(33_000, rtt, base, 2 * 10**9 + rtt) == 360

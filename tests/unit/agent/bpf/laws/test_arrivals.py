"""What a law with a pool is told of a virtual queue (laws/arrivals.h)."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.laws.fairq import FairQLaw
from tests.support.host_laws import RATE, HostLaw, fq_law

SECOND = 10**9


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("silent_s", [2, 10, 3600])
def test_what_has_arrived_without_ticks_is_no_load(before: int, silent_s: int) -> None:
    """Half of the rate arrives all the time; for a while there is no law. Then it is told of half the target
    at most, and its integral never runs backwards.
    """
    law, arrivals = HostLaw(fq_law(FairQLaw)), layout.fq_arrivals()
    step, now = int(law.parameters.interval_ns), SECOND

    def ticks(number: int) -> None:
        nonlocal now
        for _ in range(number):
            now += step
            law.arrived(arrivals, RATE // 2 * step // SECOND)
            was = arrivals.length_ns
            law.load(arrivals, 0, now)
            assert was <= arrivals.length_ns <= was + law.parameters.target * step // 2
            assert arrivals.load_q16 <= 1 << 15

    ticks(before)
    now += silent_s * SECOND
    law.arrived(arrivals, silent_s * RATE // 2)
    ticks(3000)
    assert arrivals.load_q16 == pytest.approx(1 << 15, rel=0.01)


def test_more_than_32_bits_of_bytes_are_a_full_load_and_not_none() -> None:
    """As what several processors have left to the next packet may be."""
    law, arrivals = HostLaw(fq_law(FairQLaw)), layout.fq_arrivals()
    law.load(arrivals, 0, 2 * SECOND)
    law.arrived(arrivals, 1 << 32)
    law.load(arrivals, 0, 3 * SECOND)
    assert arrivals.load_q16 > 3 << 16

"""Least attained service in the switch: who has sent little gets more, and nobody loses the last segment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.las import LasLaw
from tests.support.host_laws import ClosedLoop, FedPort, HostLaw, fq_law, in_force

YOUNG = 100_000
COUNTS = st.tuples(st.integers(0, 2000), st.integers(0, 2000)).filter(lambda pair: sum(pair) > 0)


def las(pool: int = 31_250, limit: int = 125_000, target: int = 18_750) -> HostLaw:
    """A law with this pool."""
    law = HostLaw(fq_law(LasLaw, limit=limit, target=target, young_bytes=YOUNG))
    FedPort(law).feed(0)
    law.state.pool = pool << 8
    return law


def test_a_young_flow_weighs_eight_old_ones():
    law = las(pool=240_000, limit=1_000_000)
    # Two young and eight old flows: 24 parts of 10,000 bytes.
    assert [law.window(10, 2, sent) for sent in (0, YOUNG - 1, YOUNG, 10**9)] == [
        80_000,
        80_000,
        10_000,
        10_000,
    ]


def test_in_a_volley_old_flows_have_one_segment_and_young_ones_by_what_they_have_sent():
    law = las(pool=60_000, limit=1_000_000)
    windows = [law.window(20, 15, sent) for sent in (0, 1, 1460, 2920, 10**9)]
    share = (60_000 - 5 * 1460) // 15  # 3,513
    assert windows == [1460, share * 1462 // 2920, share * 3 // 2, share * 5 // 2, 1460]


def test_what_a_volley_has_above_a_segment_is_bounded_by_the_room_in_the_buffer():
    law = las(pool=120_000)
    room = 125_000 - 18_750 - 40 * (1460 + 66)
    assert law.window(40, 35, 50_000) == 1460 + room // 35
    assert law.window(80, 75, 50_000) == 1460, "no room: 80 segments fill it"


@given(COUNTS, st.integers(1460, 1 << 30), st.integers(0, 2 * YOUNG), st.integers(0, 2 * YOUNG))
def test_who_is_ahead_in_a_volley_is_not_overtaken_and_young_flows_have_no_less_than_old_ones(
    counts, pool, one, other
):
    young, old = counts
    law = las(pool)
    n = young + old
    less, more = sorted((one, other))
    if more < YOUNG:
        assert law.window(n, young, less) <= law.window(n, young, more)
    assert law.window(n, young, less) >= 1460
    assert law.window(n, young, YOUNG - 1) >= law.window(n, young, YOUNG)


@given(st.integers(5, 2000), st.integers(0, 2000), st.floats(1e3, 1e8))
def test_the_shares_of_a_volley_in_real_numbers(young, old, pool):
    """What old flows leave, in equal parts, times a half and one for each segment sent."""
    law = las(int(pool), limit=1 << 30)
    rest = max(int(pool) - 1460 * old, 0) / young
    for sent in (1, 1460, 20_000, YOUNG - 1):
        expected = max(rest * (0.5 + sent / 1460), 1460)
        room = max((1 << 30) - 18_750 - (young + old) * 1526, 0) / young
        assert law.window(young + old, young, sent) == pytest.approx(
            min(expected, 1460 + room), abs=2 + sent / 1460
        )


def test_the_queue_settles_at_the_target():
    loop = ClosedLoop(HostLaw(in_force(LasLaw(target_ppm=150_000))), 8, 0.001)
    loop.run(2)
    assert loop.mean_queue(0.5) == pytest.approx(18_750, rel=0.1) and loop.lost == 0

"""What a tenant has of a port, and its flows of that (laws/tenant_share.h)."""

from __future__ import annotations

import ctypes
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw
from tests.support.host_laws import LIMIT, HostLaw, fq_law

ONE = 1 << 16
MSS = 1460
FRAMES = MSS + 66


def port(pool: int, spec: type = FairQLaw) -> HostLaw:
    law = HostLaw(fq_law(spec))
    law.state.pool, law.state.segment = pool << 8, MSS
    return law


def window(law, part=ONE, n=1, young=0, priority=100, shares=None, sent=200_000, quiet=0):
    return law.library.fq_host_tenant_window(
        *law.refs,
        part,
        law.pool,
        ctypes.c_uint64(quiet),
        n,
        young,
        priority,
        100 * n if shares is None else shares,
        ctypes.c_uint64(sent),
        MSS,
    )


def pool_of(law, tenants):
    """The pool that tenants share, each with its flows and its weight."""
    weights = sum(weight for _, weight in tenants)
    needs = [
        law.library.fq_host_tenant_need(ctypes.byref(law.state), 1, ctypes.c_uint64(n), weight, weights)
        for n, weight in tenants
    ]
    broken = [need > law.pool for need in needs]
    return law.library.fq_host_tenants_pool(
        *law.refs,
        ctypes.c_uint64(max(needs)),
        ctypes.c_uint64(sum(n for (n, _), each in zip(tenants, broken, strict=True) if each)),
        weights,
        sum(weight for (_, weight), each in zip(tenants, broken, strict=True) if not each),
    )


@pytest.mark.parametrize("spec", [FairQLaw, LasLaw])
@pytest.mark.parametrize(("n", "young"), [(1, 0), (3, 1), (12, 12)])
def test_alone_a_tenant_has_the_windows_of_the_law(spec, n, young):
    law = port(60_000, spec)
    for sent in (0, 3000, 200_000):
        granted = window(law, n=n, young=young, sent=sent)
        assert granted == max(law.window(n, young, sent), MSS)


def test_the_number_of_its_flows_does_not_change_what_a_tenant_has():
    law = port(60_000)
    for flows in (1, 2, 4, 10):
        assert flows * window(law, part=ONE // 2, n=flows) == 30_000


def test_priorities_divide_what_the_tenant_has():
    law = port(60_000)
    high, low = (window(law, n=2, priority=each, shares=300) for each in (200, 100))
    # A segment each, and of the rest two thirds and a third.
    rest = 60_000 - 2 * MSS
    assert (high, low) == (MSS + rest * 2 // 3, MSS + rest // 3)


def test_the_least_windows_of_low_priorities_are_not_added_to_what_a_tenant_has():
    """With 2.25 segments a flow, in proportion, those of priority 100 would have 0.4 of one."""
    law = port(45 * MSS)
    high, low = (window(law, n=20, priority=each, shares=11_000) for each in (1000, 100))
    assert 44 * MSS < 10 * (high + low) <= 45 * MSS and low > MSS and high > 3 * MSS


def test_what_quiet_flows_use_is_taken_from_their_tenant():
    law = port(60_000)
    assert window(law, part=ONE // 2, quiet=10_000) == 20_000
    assert window(law, part=ONE // 2, quiet=10**6) == MSS


def test_a_floor_of_two_segments_breaks_no_share():
    law = port(60_000)
    assert window(law, part=ONE // 2, n=10) == 3000
    assert window(law, part=ONE // 2, n=15) == 2000
    assert window(law, part=ONE // 2, n=30) == MSS


def test_under_las_young_flows_of_a_tenant_come_before_its_old_ones():
    law = port(60_000, LasLaw)
    young, old = (window(law, part=ONE // 2, n=2, young=1, sent=sent) for sent in (1000, 10**6))
    assert young == 8 * old and young + old == pytest.approx(30_000, abs=9)


def test_the_pool_is_raised_so_that_floors_break_no_share():
    law = port(30_000)
    assert pool_of(law, [(1, 1), (2, 1)]) == 30_000
    # Two segments for each of 16 flows, and as much for the other tenant.
    stepped = MSS + MSS // 16
    assert pool_of(law, [(1, 1), (16, 1)]) == 2 * 16 * 2 * stepped
    # The buffer holds only one for each.
    assert pool_of(law, [(1, 1), (30, 1)]) == 2 * 30 * stepped


def test_where_floors_break_a_share_the_others_have_what_the_buffer_holds():
    law = port(30_000)
    pool = pool_of(law, [(1, 1), (60, 1)])
    assert 60 * MSS + pool // 2 == LIMIT * MSS // FRAMES
    assert pool_of(law, [(1, 1), (500, 1)]) == 30_000  # nothing is left


TENANTS = st.lists(st.tuples(st.integers(1, 200), st.integers(1, 1000)), min_size=1, max_size=6)


@given(TENANTS, st.integers(1460, 150_000))
def test_what_is_granted_beyond_the_laws_pool_fits_into_the_buffer(tenants, pool):
    law = port(pool)
    found = pool_of(law, tenants)
    weights = sum(weight for _, weight in tenants)
    held = LIMIT * MSS // FRAMES
    assert found >= pool
    if found > pool:
        total = sum(max(n * MSS, Fraction(found * weight, weights)) for n, weight in tenants)
        assert total <= held + len(tenants)


def wire(size: int, step: int) -> int:
    return -(-size // step) * step


SIZES = st.tuples(st.integers(0, 10**6), st.integers(536, 9000), st.sampled_from([1, 128, 512, 2048]))


@given(SIZES, st.integers(0, ONE - 1))
def test_windows_are_whole_segments_next_to_what_is_granted(sizes, draw):
    granted, mss, step = sizes
    whole = port(1460).library.fq_host_whole_segments(granted, mss, draw, step)
    unit = max(mss, step)
    assert whole % unit == 0 and whole >= unit
    assert whole == unit or granted - unit - step < wire(whole, step) < granted + unit + step


@given(SIZES)
def test_on_the_wire_a_flow_has_what_it_is_to_have_on_average(sizes):
    granted, mss, step = sizes
    law = port(1460)
    draws = [law.library.fq_host_whole_segments(granted, mss, draw, step) for draw in range(0, ONE, 64)]
    mean = sum(wire(each, step) for each in draws) / len(draws)
    least = wire(max(mss, step), step)
    assert mean == pytest.approx(max(granted, least), abs=(mss + 2 * step) * 64 / ONE + 1)


def times(law, under_way, moved):
    return law.library.fq_host_tenant_time(
        ctypes.byref(law.state), ctypes.c_uint64(under_way), ctypes.c_uint64(moved)
    )


def rates(law, tenants, took):
    """What each tenant sends in a unit of time: its flows have their windows under way for so long."""
    each = list(zip(tenants, took, strict=True))
    weighs = [law.library.fq_host_tenant_weighs(weight, time, min(took)) for (_, weight), time in each]
    parts = [(weigh << 16) // sum(weighs) for weigh in weighs]
    return [
        Fraction(n * window(law, part=part, n=n), time)
        for ((n, _), time), part in zip(each, parts, strict=True)
    ]


SIZED = st.lists(
    st.tuples(st.integers(1, 20), st.integers(1, 10), st.integers(30_000, 60_000)), min_size=2, max_size=6
)


@given(SIZED)
def test_tenants_have_rates_by_weight_whatever_their_receivers_hold_back(sized):
    law = port(1 << 28)  # so large that rounding does not count
    tenants, took = [(n, weight) for n, weight, _ in sized], [time for *_, time in sized]
    found = [rate / weight for rate, (_, weight) in zip(rates(law, tenants, took), tenants, strict=True)]
    assert max(found) <= min(found) * Fraction(101, 100)


def test_a_tenant_weighs_at_most_twice_as_much_for_its_time():
    weighs = port(60_000).library.fq_host_tenant_weighs
    assert [weighs(3, time, 1000) for time in (1000, 1500, 2000, 10**6)] == [768, 1152, 1536, 1536]


def test_without_a_time_tenants_have_their_weights():
    weighs = port(60_000).library.fq_host_tenant_weighs
    assert weighs(5, 0, 1000) == weighs(5, 1000, 0) == 5 * 256


def test_a_few_segments_say_nothing_about_the_time():
    law = port(60_000)
    assert times(law, 10**9, 8 * MSS - 1) == 0
    assert times(law, 8 * MSS * 40, 8 * MSS) == 40

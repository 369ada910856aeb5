"""A virtual queue (lib/virtual_queue.h): what arrives drains, stands, or overflows; no byte is lost."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.backlog import believed
from tests.support.host_laws import drain

S = 10**9
# A byte in 128 ns, which has no fraction in fixed point.
RATE, LIMIT = 7_812_500, 125_000
SHIFT = layout.CONSTANTS["FQ_DRAIN_SHIFT"]
START = 10**12
CHECK = layout.fq_queue_check()


@dataclass
class Virtual:
    """A virtual queue, and time."""

    library: Any
    rate: int = RATE
    limit: int = LIMIT
    now: int = START
    state: Any = field(default_factory=layout.fq_queue)

    def arrive(self, size: int, after: int = 0, segments: int = 1) -> None:
        self.now += after
        rest = ctypes.c_uint64(size), ctypes.c_uint32(segments), ctypes.c_uint64(self.now)
        given_to_c = ctypes.c_uint64(drain(self.rate)), ctypes.c_uint32(self.limit), *rest
        self.library.host_virtual_arrival(ctypes.byref(self.state), *given_to_c)

    def backlog(self, after: int = 0) -> int:
        return believed(self.state, CHECK, self.now + after)[0]

    def byte_ns(self, after: int = 0) -> int:
        return believed(self.state, CHECK, self.now + after)[1]


@pytest.fixture
def virtual(host_queues: Any) -> Virtual:
    return Virtual(host_queues)


def test_it_drains_at_its_rate_and_is_never_less_than_empty(virtual: Virtual) -> None:
    virtual.arrive(1000)
    assert [virtual.backlog(ns) for ns in (0, 127, 128, 127_999, 128_000, S)] == [1000, 1000, 999, 1, 0, 0]


def test_what_arrives_below_the_rate_does_not_stand(virtual: Virtual) -> None:
    for _ in range(1000):
        virtual.arrive(1538, after=1538 * S // RATE + 1)
        assert virtual.state.backlog == 1538
    assert virtual.state.peak == 0


def test_at_the_rate_of_the_line_it_grows_by_the_part_that_is_not_its_share(virtual: Virtual) -> None:
    """1,000 frames, of which 98 % drain: a fiftieth of their bytes stands, and the last one."""
    for _ in range(1000):
        virtual.arrive(1600, after=1600 * 128 * 98 // 100)
    assert virtual.state.backlog == 1600 * 999 // 50 + 1600


@given(
    packets=st.lists(st.tuples(st.integers(0, 10**6), st.integers(24, 65_000)), min_size=1, max_size=60),
    rate=st.integers(12_500, 10**11),
)
def test_every_byte_has_drained_stands_or_has_overflowed(
    host_queues: Any, packets: list[tuple[int, int]], rate: int
) -> None:
    """Compared with exact arithmetic: nothing is lost between packets, however short the time is."""
    virtual, stood = Virtual(host_queues, rate=rate), Fraction(0)
    drained = Fraction(drain(rate), 1 << SHIFT)
    for after, size in packets:
        stood = max(Fraction(0), stood - drained * after) if virtual.state.last_ns else stood
        before = virtual.backlog(after)
        assert 0 <= before - stood < 1
        virtual.arrive(size, after=after)
        assert virtual.state.backlog == min(before + size, LIMIT)
        stood += min(size, LIMIT - before)
    assert virtual.state.bytes == sum(size for _, size in packets)
    assert virtual.state.packets == len(packets)


@given(parts=st.lists(st.integers(0, 10**7), min_size=1, max_size=20))
def test_its_integral_does_not_depend_on_how_often_it_is_worked_out(
    host_queues: Any, parts: list[int]
) -> None:
    virtual = Virtual(host_queues)
    virtual.arrive(LIMIT)
    whole = virtual.byte_ns(sum(parts))
    for after in parts:
        virtual.arrive(1, after=after)  # a byte each, of which the integral is at most that of all of them
    added = virtual.byte_ns() - whole
    assert -len(parts) * 10**7 <= added <= len(parts) * sum(parts) + 10**7


def test_its_integral_is_that_of_a_triangle_when_it_has_drained(virtual: Virtual) -> None:
    virtual.arrive(1000)
    assert virtual.byte_ns(128_000) == 1000 * 128_000 // 2
    assert virtual.byte_ns(S) == virtual.byte_ns(128_000)
    assert virtual.byte_ns(64_000) == (1000 + 500) * 64_000 // 2


@pytest.mark.parametrize("size", [1000, 1001, 15_000, 1 << 32, 1 << 40])
def test_what_is_beyond_the_limit_overflows(virtual: Virtual, size: int) -> None:
    virtual.arrive(LIMIT - 1000)
    virtual.arrive(size, segments=10)
    assert (virtual.state.backlog, virtual.state.bytes) == (LIMIT, LIMIT - 1000 + size)
    assert virtual.state.packets == 11


def test_a_late_clock_changes_no_time(virtual: Virtual) -> None:
    virtual.arrive(10_000)
    virtual.arrive(5_000, after=-7_000)
    assert (virtual.state.backlog, virtual.state.last_ns) == (15_000, START)
    assert virtual.backlog(-(10**6)) == 15_000 and virtual.byte_ns() == 0


@pytest.mark.parametrize("rate", [12_000, 10**11])
def test_nothing_overflows_at_the_bounds(host_queues: Any, rate: int) -> None:
    """The library traps on every overflow of a signed number; others would show in the integral."""
    virtual = Virtual(host_queues, rate=rate, limit=1 << 30)
    virtual.arrive(1 << 30)
    for after in (1, 8 * S - 1, 8 * S, 10**18):
        drained = min(1 << 30, drain(rate) * after >> SHIFT) if after < 8 * S else 1 << 30
        assert virtual.backlog(after) == (1 << 30) - drained
        assert virtual.byte_ns(after) <= (1 << 30) * 8 * S


def test_a_new_rate_holds_from_the_next_packet_on(virtual: Virtual) -> None:
    virtual.arrive(10_000)
    virtual.rate = 2 * RATE
    virtual.arrive(1_000, after=128_000)
    assert virtual.state.backlog == 10_000 - 1_000 + 1_000
    assert virtual.backlog(128_000) == 10_000 - 2_000


@pytest.mark.parametrize("rate", [60, 12_500, 6_125_000, 10**11])
def test_a_rate_in_fixed_point_is_that_rate(rate: int) -> None:
    """To half of the last place: a thousandth at 1 Mbit/s, and far less above."""
    assert abs(Fraction(drain(rate) * S, 1 << SHIFT) - rate) <= max(30, rate / 1000)
    assert drain(rate) > 0 and drain(0) == 0

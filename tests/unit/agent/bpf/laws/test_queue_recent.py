"""Samples that count less as they age: the half-life, its rounding, and the mean."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tests.support.host_queue_laws import Recent, library

ONE = 1 << 16
HALF_LIFE_NS = 1 << 32
NOW = 10**13


def entered(samples: int, at_ns: int = NOW) -> Any:
    return Recent(samples * ONE, at_ns >> 20 & 0xFFFFFFFF)


def q16(flow: Any, now: int) -> int:
    """The samples of a flow as they count now."""
    return int(library().fq_host_recent(ctypes.byref(flow), ctypes.c_uint64(now)))


def enter(flow: Any, mean: Any, now: int, samples: int = 1) -> None:
    library().fq_host_enter(ctypes.byref(flow), ctypes.byref(mean), samples, ctypes.c_uint64(now))


@pytest.mark.parametrize(("half_lives", "left"), [(0, 1), (1, 1 / 2), (2, 1 / 4), (8, 1 / 256)])
def test_a_sample_counts_half_after_each_half_life(half_lives: int, left: float) -> None:
    assert q16(entered(1000), NOW + half_lives * HALF_LIFE_NS) == 1000 * ONE * left


def test_between_two_half_lives_it_is_a_power_of_two_within_a_hundredth() -> None:
    flow = entered(10_000)
    for number in range(1, 200):
        part = number / 50
        found = q16(flow, NOW + int(part * HALF_LIFE_NS)) / (10_000 * ONE)
        assert found == pytest.approx(2**-part, rel=0.01)


def test_small_steps_come_to_the_same_as_one() -> None:
    """A flow that sends often ages in steps of 1 ms."""
    flow = entered(10_000)
    for number in range(1, 4097):
        now = NOW + (number << 20)
        enter(flow, Recent(), now, samples=0)
    assert flow.samples_q16 / ONE == pytest.approx(5_000, rel=0.002)


def test_after_32_half_lives_nothing_is_left() -> None:
    full = Recent(0xFFFFFFFF, 0)
    assert q16(full, 32 * HALF_LIFE_NS - 1) > 0
    assert q16(full, 32 * HALF_LIFE_NS) == 0


def test_an_earlier_time_of_another_processor_changes_nothing() -> None:
    assert q16(entered(10), NOW - HALF_LIFE_NS) == 10 * ONE


def test_the_clock_may_pass_the_range_of_its_field() -> None:
    wrap = 1 << 52
    assert q16(entered(10, wrap - HALF_LIFE_NS), wrap) == 5 * ONE


def test_a_count_stops_at_the_end_of_its_field() -> None:
    flow, mean = Recent(0xFFFFFFFF, NOW >> 20), Recent()
    enter(flow, mean, NOW)
    assert flow.samples_q16 == 0xFFFFFFFF
    assert mean.samples_q16 == 0xFFFFFFFF >> 8


def test_the_mean_is_by_packets() -> None:
    """Two flows, one of which sends three of four packets: the flow of a packet has on average
    (3 * 3 + 1) / 4 times what the smaller one has; less by what samples lose in the time of 256 of them.
    """
    large, small, mean = Recent(), Recent(), Recent()
    for number in range(40_000):
        enter(small if number % 4 == 0 else large, mean, NOW + number * 500_000)
    assert large.samples_q16 / small.samples_q16 == pytest.approx(3, rel=0.01)
    assert mean.samples_q16 / small.samples_q16 == pytest.approx(2.5, rel=0.03)


def test_the_mean_ages_while_nothing_is_sent() -> None:
    flow, mean = Recent(), entered(64)
    enter(flow, mean, NOW + HALF_LIFE_NS)
    assert mean.samples_q16 == 32 * ONE - (31 * ONE >> 8)

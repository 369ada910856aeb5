"""The division of an uplink's rate: what holds for any flows, and what from one division to the next."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from fairq_ryu.far_queue import LEAST_BUFFER, LEAST_RATE, FarQueue
from fairq_ryu.uplink import FLOOR, Member, Uplink, divide, least_rate

PORTS = [Member(f"br{number}", "eth0") for number in range(8)]
COUNTS = some.lists(some.integers(0, 5000), min_size=1, max_size=8)
RATES = some.integers(least_rate(8), 100_000_000_000)


def active(counts: list[int]) -> dict[Member, int]:
    return dict(zip(PORTS, counts, strict=False))


def spread(parts: dict[Member, int], goal: dict[Member, float]) -> float:
    return max(abs(parts[port] - goal[port]) for port in parts)


@given(RATES, COUNTS, some.lists(some.integers(0, 10**11), max_size=8))
def test_parts_sum_to_the_rate_and_none_is_below_the_floor(rate, counts, before):
    """Whatever the parts were before."""
    flows = active(counts)
    parts = divide(rate, flows, active(before))
    assert parts.keys() == flows.keys() and sum(parts.values()) == rate
    assert min(parts.values()) >= int(FLOOR * rate / len(flows)) >= LEAST_RATE


@given(RATES, COUNTS)
def test_with_the_same_flows_each_part_comes_closer_and_never_passes(rate, counts):
    flows, total, number = active(counts), sum(counts), len(counts)
    floor = FLOOR * rate / number
    goal = {
        port: floor + (rate - floor * number) * (count / total if total else 1 / number)
        for port, count in flows.items()
    }
    course = [dict.fromkeys(flows, rate // number)]
    for _ in range(40):
        course.append(divide(rate, flows, course[-1]))
    for earlier, later in pairwise(course):
        for port, wanted in goal.items():
            # Parts are whole bytes.
            low, high = sorted((earlier[port], wanted))
            assert low - 1 <= later[port] <= high + 1
    assert spread(course[-1], goal) <= max(rate * 0.75**40, 4)


def test_more_flows_have_more_and_as_many_have_as_much():
    parts: dict[Member, int] = {}
    for _ in range(100):
        parts = divide(1_250_000_000, active([30, 10, 10, 0]), parts)
    a, b, c, d = parts.values()
    assert a > b > d >= FLOOR * 1_250_000_000 / 4
    assert max(abs(b - c), d - FLOOR * 1_250_000_000 / 4) <= 4, "whole bytes"


def test_a_port_without_flows_gets_an_equal_part_when_nobody_sends():
    parts = divide(1_000_000, active([5, 0]), {})
    for _ in range(100):
        parts = divide(1_000_000, active([0, 0]), parts)
    assert max(parts.values()) - min(parts.values()) <= 8, "whole bytes"


def test_nobody_is_there():
    assert divide(1_000_000, {}, {}) == {}


def test_without_a_controller_each_port_has_an_equal_part():
    uplink = Uplink("rack", tuple(PORTS[:4]), 1_250_000_000, 1_000_000, 0.95)
    assert uplink.parts_at("br2", 9) == [FarQueue("eth0", 312_500_000, 250_000, 0.95)]
    assert uplink.parts_at("br9", 2) == []
    assert Uplink("rack", tuple(PORTS), 10**9, 1600).far_queue("e").buffer == LEAST_BUFFER
    assert Uplink("rack", tuple(PORTS[:4]), 10**9).far_queue("e").buffer == 1_250_000, (
        "5 ms, whatever is leased"
    )


def test_a_bridge_is_named_or_numbered():
    for text in ("br0", "00000000000000af", "af", "AF"):
        assert Member(text, "eth0").is_at("br0", 0xAF)
    assert not Member("br1", "eth0").is_at("br0", 0xAF)

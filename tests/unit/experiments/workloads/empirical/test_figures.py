"""Slowdowns, by the size of flows."""

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.empirical import figures, limits
from fairq_ryu.experiments.workloads.empirical.figures import Flow
from fairq_ryu.experiments.workloads.empirical.rows import TABLE

CHOSEN = scenario.load("web-search")  # 100 Mbit/s, sizes divided by 10


def test_alone_a_flow_takes_what_a_probe_takes_and_its_further_bytes_at_the_rate():
    # 1,000 bytes are one segment with 66 bytes of headers, and 100,000 are 70 of them.
    further = (100_000 + 70 * 66) - (1000 + 66)
    assert limits.alone_ms(100_000, CHOSEN, 2.0) == pytest.approx(2.0 + further * 8 / 100e6 * 1e3)
    assert limits.alone_ms(1000, CHOSEN, 2.0) == 2.0
    assert limits.alone_ms(876, CHOSEN, 2.0) == pytest.approx(2.0 - 124 * 8 / 100e6 * 1e3)


def test_the_figures_of_a_group():
    pairs = [(Flow(10, 4.0, 0), 2.0), (Flow(20, 9.0, 3), 3.0), (Flow(30, None, 1), 1.0)]
    found = figures.group(pairs)
    assert (found["count"], found["unfinished"]) == (3, 1)
    assert (found["fct_ms"]["mean"], found["fct_ms"]["max"]) == (6.5, 9.0)
    assert (found["slowdown"]["count"], found["slowdown"]["mean"], found["slowdown"]["max"]) == (2, 2.5, 3.0)
    assert (found["rto_timeouts"], found["timeout_flows"], found["timeout_share"]) == (4, 2, 2 / 3)
    nothing = figures.group([])
    assert (nothing["count"], nothing["slowdown"], nothing["timeout_share"]) == (0, None, None)
    # A kernel before 6.7 does not count the timeouts of a connection.
    old = figures.group([(Flow(10, 4.0, None), 2.0)])
    assert (old["rto_timeouts"], old["timeout_flows"]) == (None, None)


def test_small_and_large_are_those_of_the_published_sizes():
    assert figures.limits_of(10) == (10_000, 1_000_000)
    sizes = [9_999, 10_000, 1_000_000, 1_000_001]
    found = figures.by_size(CHOSEN, [Flow(size, 1.0, 0) for size in sizes], [1.0] * 4)
    assert [found[which]["count"] for which in ("small", "medium", "large", "all")] == [1, 2, 1, 4]


def test_every_flow_is_in_the_part_between_two_points_of_the_distribution():
    steps = CHOSEN.distribution.steps
    assert steps[:2] == [876, 1898]
    sizes = [876, 876, 877, 1898, 1899, 2_920_000]
    found = figures.by_size(CHOSEN, [Flow(size, 1.0, 0) for size in sizes], [1.0] * 6)["by_size"]
    assert [part["count"] for part in found] == [2, 2, 1, *[0] * 7, 1]
    assert [part["high_bytes"] for part in found] == steps
    assert (found[1]["low_bytes"], found[1]["mean_bytes"]) == (876, (877 + 1898) / 2)
    assert found[3]["mean_bytes"] is None and found[3]["slowdown"] is None


def measured(probe_ms=3.0):
    return {"empirical": {"probe_ms": probe_ms, "load": 0.6, "flows": [(1000, 6.0, 0), (1000, None, 1)]}}


def test_slowdowns_are_over_the_empty_network_without_a_controller():
    found = measured()
    limits.add_limits(CHOSEN, found, {"empirical": {"probe_ms": 2.0}})
    assert found["empirical"]["all"]["slowdown"]["mean"] == 3.0
    assert (found["empirical"]["probe_ms"], found["empirical"]["alone_probe_ms"]) == (3.0, 2.0)
    assert found["empirical"]["load"] == 0.6 and "flows" not in found["empirical"]


def test_without_that_they_are_over_this_policys_own_empty_network():
    found = measured()
    limits.add_limits(CHOSEN, found, None)
    assert found["empirical"]["all"]["slowdown"]["mean"] == 2.0
    assert found["empirical"]["alone_probe_ms"] == 3.0


def test_the_floor_is_the_empty_network():
    floor = limits.floor(scenario.load("web-search", {"capture": "yes"}))
    assert (floor.warmup_s, floor.measured_s, floor.capture) == (0, 0, False)
    assert limits.floor(scenario.load("web-search", {"floor": "no"})) is None


def test_the_table_says_what_the_sizes_are():
    (said,) = TABLE.about(scenario.load("data-mining").settings)
    assert said == (
        "Flow sizes: data-mining (VL2, SIGCOMM 2009), mean 7,470,236 bytes, divided by k = 10 and at most"
        " 10,000,000: mean 311,686 bytes. Small: less than 10,000 bytes; large: more than 1,000,000."
    )
    (said,) = TABLE.about(scenario.load("web-search", {"size_divisor": "1"}).settings)
    assert said.startswith("Flow sizes: web-search (DCTCP, SIGCOMM 2010), mean 1,665,831 bytes. Small: less")

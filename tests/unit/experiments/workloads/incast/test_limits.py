"""Physical limits, computed here by hand."""

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.incast import limits

INCAST = scenario.load("incast", {"rate_mbit": "50"})


def test_the_limit_of_a_volley_of_mice():
    # 32 mice at 50 Mbit/s: data and SYN-ACKs of 74 bytes, all through the bottleneck
    carried = 32 * (11_500 + 8 * 66 + 74)
    assert limits.mice_ms(INCAST) == pytest.approx(carried * 8 / 50e6 * 1e3)
    assert 61 < limits.mice_ms(INCAST) < 63


def test_the_floor_has_the_volley_and_nothing_else():
    floor = limits.floor(INCAST)
    assert floor is not None and floor.elephants == 0
    assert (floor.senders, floor.mice_per_sender, floor.mice_bytes, floor.rate_mbit) == (16, 2, 11_500, 50)
    assert floor.buffer_bytes > 32 * 11_500
    assert limits.floor(scenario.load("incast", {"controller_stopped_s": "1"})).controller_stopped_s == 0
    # The last bytes of a larger volley wait longer than Linux's least timeout.
    assert floor.rto_min_ms == 200
    large = scenario.load("incast", {"mice_per_sender": "16"})
    assert limits.floor(large).rto_min_ms > limits.mice_ms(large) > 200
    assert limits.floor(scenario.load("incast", {"mice_per_sender": "0"})) is None
    assert limits.floor(scenario.load("incast", {"udp_mbit": "5"})).udp_mbit == 0


def test_mice_that_follow_each_other_have_no_limit_of_a_volley():
    chained = scenario.load("incast", {"requests": "10"})
    assert limits.floor(chained) is None
    figures = {"mice": {"fct_ms": {"p99": 1}}}
    limits.add_limits(chained, figures, None)
    assert "distance" not in figures


def test_distances_are_added_to_the_figures():
    figures = {"mice": {"fct_ms": {"p99": 2 * limits.mice_ms(INCAST)}}}
    limits.add_limits(INCAST, figures, {"mice": {"fct_ms": {"p99": limits.mice_ms(INCAST)}}})
    assert figures["distance"]["limit_times"] == pytest.approx(2)
    assert figures["distance"]["floor_times"] == pytest.approx(2)
    limits.add_limits(INCAST, figures, None)
    assert figures["distance"]["floor_times"] is None
    assert figures["distance"]["limit_times"] == pytest.approx(2)


@pytest.mark.parametrize("lost", ["unfinished", "segments_dropped", "rto_timeouts"])
def test_a_volley_alone_that_has_lost_segments_is_no_floor(lost):
    figures = {"mice": {"fct_ms": {"p99": 2 * limits.mice_ms(INCAST)}}}
    limits.add_limits(INCAST, figures, {"mice": {"fct_ms": {"p99": 80.0}, lost: 1}})
    assert (figures["distance"]["floor_ms"], figures["distance"]["floor_times"]) == (None, None)
    assert figures["distance"]["limit_times"] == pytest.approx(2)
    limits.add_limits(INCAST, figures, {"mice": {"fct_ms": {"p99": 80.0}, lost: 0}})
    assert figures["distance"]["floor_ms"] == 80

"""What no policy can beat: computed here by hand."""

from dataclasses import replace

import pytest

from fairq_ryu.experiments import limits, scenario

INCAST = scenario.load("incast", {"rate_mbit": "50"})


def test_bytes_on_the_wire():
    assert limits.wire_bytes(1448, True) == 1514
    assert limits.wire_bytes(1460, False) == 1514
    assert limits.wire_bytes(1449, True) == 1449 + 2 * 66
    # 11,500 bytes are 8 segments
    assert limits.wire_bytes(11_500, True) == 11_500 + 8 * 66


def test_the_limit_of_a_volley_of_mice():
    # 32 mice at 50 Mbit/s: data and SYN-ACKs of 74 bytes, all through the bottleneck
    carried = 32 * (11_500 + 8 * 66 + 74)
    assert limits.mice_ms(INCAST) == pytest.approx(carried * 8 / 50e6 * 1e3)
    assert 61 < limits.mice_ms(INCAST) < 63


def test_the_limit_of_a_fan_in():
    rounds = scenario.load("rounds")
    flows, size = rounds.flows[0], rounds.sizes_bytes[0]
    wire = flows * len(rounds.sizes_bytes) * limits.wire_bytes(size, rounds.timestamps)
    assert rounds.prepared
    assert limits.fanin_ms(rounds, flows) == pytest.approx(wire * 8 / rounds.rate_mbit / 1e3)


def test_deadlines_that_no_order_meets():
    # 10 Mbit/s carry 1.25 MB a second, headers included
    one = scenario.build(
        {
            **scenario.load("deadlines").settings,
            "rate_mbit": 10.0,
            "senders": 4,
            "sizes_bytes": (1_000_000, 1_000_000, 300_000, 9_000_000),
            "deadlines_s": (1.0, 1.1, 1.2, 0.0),
        }
    )
    # The two large ones do not fit together before 1.1 s. Without one of them the small one is in time.
    assert limits.impossible(one) == 1
    assert limits.impossible(replace(one, deadlines_s=(1.0, 2.0, 3.0, 0.0))) == 0


def test_the_floor_has_the_volley_and_nothing_else():
    floor = limits.floor_scenario(INCAST)
    assert floor is not None and floor.elephants == 0
    assert (floor.senders, floor.mice_per_sender, floor.mice_bytes, floor.rate_mbit) == (16, 2, 11_500, 50)
    assert floor.buffer_bytes > 32 * 11_500
    assert limits.floor_scenario(scenario.load("deadlines")) is None


def test_distances_are_added_to_the_figures():
    figures = {"mice": {"fct_ms": {"p99": 2 * limits.mice_ms(INCAST)}}}
    limits.annotate(INCAST, figures, {"mice": {"fct_ms": {"p99": limits.mice_ms(INCAST)}}})
    assert figures["distance"]["limit_times"] == pytest.approx(2)
    assert figures["distance"]["floor_times"] == pytest.approx(2)
    limits.annotate(INCAST, figures, None)
    assert figures["distance"]["floor_times"] is None
    assert figures["distance"]["limit_times"] == pytest.approx(2)

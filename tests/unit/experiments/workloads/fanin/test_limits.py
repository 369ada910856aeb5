"""Physical limits, computed here by hand."""

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.common.limits import wire_bytes
from fairq_ryu.experiments.workloads.fanin import limits


def test_the_limit_of_a_fan_in():
    rounds = scenario.load("rounds")
    flows, size = rounds.flows[0], rounds.sizes_bytes[0]
    wire = flows * len(rounds.sizes_bytes) * wire_bytes(size, rounds.timestamps)
    assert rounds.prepared
    assert limits.fanin_ms(rounds, flows) == pytest.approx(wire * 8 / rounds.rate_mbit / 1e3)


@pytest.mark.parametrize("lost", ["unfinished", "qdisc_drops", "rto_timeouts"])
def test_a_volley_alone_that_has_lost_segments_is_no_floor(lost):
    rounds = scenario.load("rounds")
    n = rounds.flows[0]

    def distance(number):
        figures = {"fanin": {"sweep": [{"n": n, "last_byte_ms": {"p50": 300.0}}]}}
        alone = {"fanin": {"sweep": [{"n": n, "last_byte_ms": {"p50": 150.0}, lost: number}]}}
        limits.add_limits(rounds, figures, alone)
        return figures["fanin"]["sweep"][0]["distance"]

    assert (distance(0)["floor_ms"], distance(0)["floor_times"]) == (150, 2)
    assert (distance(1)["floor_ms"], distance(1)["floor_times"]) == (None, None)

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

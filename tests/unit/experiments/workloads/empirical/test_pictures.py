"""The slowdown by size, drawn."""

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.empirical import figures
from fairq_ryu.experiments.workloads.empirical.figures import Flow
from fairq_ryu.experiments.workloads.empirical.pictures import PICTURES

CHOSEN = scenario.load("web-search")
BARE = {"policy": "bare", "failed": None, "queue": {"law": "", "rounds": None}, "tcp": {"cubic": "cubic"}}


def policy(name, fct_ms):
    flows = [Flow(size, fct_ms, 0) for size in (876, 876, 1500, 2_000_000)]
    found = figures.by_size(CHOSEN, flows, [1.0, 1.0, 2.0, 4.0])
    return {**BARE, "policy": name, "empirical": found}


def test_a_line_for_each_policy_has_a_point_for_each_part_with_flows():
    p50, p99, _queue = PICTURES
    for picture in (p50, p99):
        figure = picture.figure([policy("droptail", 8.0), policy("fairq", 4.0)], CHOSEN.settings)
        (axes,) = figure.axes
        plain, governed, small, large = axes.lines
        assert list(plain.get_xdata()) == [0.876, 1.5, 2000.0]
        assert list(plain.get_ydata()) == [8.0, 4.0, 2.0] and list(governed.get_ydata()) == [4.0, 2.0, 1.0]
        assert [limit.get_xdata()[0] for limit in (small, large)] == [10.0, 1000.0]
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert axes.get_ylabel() == f"slowdown, {picture.name[-3:]}"


@pytest.mark.parametrize("missing", [{}, {"empirical": None}, {"empirical": {"by_size": []}}])
def test_without_sizes_there_is_no_picture(missing):
    assert PICTURES[0].figure([{**BARE, **missing}], CHOSEN.settings) is None

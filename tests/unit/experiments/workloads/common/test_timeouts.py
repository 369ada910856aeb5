"""Flows with a retransmission timeout are counted once each, and under every kind of traffic alike."""

import pytest

from fairq_ryu.experiments.workloads import registry
from fairq_ryu.experiments.workloads.common.timeouts import timed_out, together


@pytest.mark.parametrize(
    ("timeouts", "flows", "share"),
    [([0, 3, 1, 0], 2, 0.5), ([0, 0], 0, 0.0), ([], 0, None), ([2, None], None, None)],
)
def test_a_flow_counts_once_however_many_timeouts_it_had(timeouts, flows, share):
    assert timed_out(timeouts) == {"timeout_flows": flows, "timeout_share": share}


def test_the_share_of_several_parts_is_that_of_all_flows():
    parts = [{**timed_out([1]), "flows": 1}, {**timed_out([0, 0, 2, 0, 0]), "flows": 5}]
    assert together(parts, "flows") == {"timeout_flows": 2, "timeout_share": pytest.approx(2 / 6)}
    assert together([*parts, {**timed_out([None]), "flows": 1}], "flows")["timeout_flows"] is None
    assert together([], "flows") == {"timeout_flows": 0, "timeout_share": None}


@pytest.mark.parametrize("workload", registry.WORKLOADS.values(), ids=lambda each: each.name)
def test_wherever_timeouts_of_flows_are_counted_the_flows_are_too(workload):
    """Those of senders in all have no flow."""
    groups = [row for group in workload.table.groups for row in group.rows]
    rows = {row.path: row for row in (*workload.table.rows, *groups)}
    counted = [
        path[:-1]
        for path in rows
        if path[-1] == "rto_timeouts" and path[0] not in ("senders", "mice_left_out")
    ]
    assert counted
    for path in counted:
        assert rows[*path, "timeout_flows"].style == "d"
        assert rows[*path, "timeout_share"].style == ".1%"

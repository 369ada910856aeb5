"""Which short flows are counted, and from when to when."""

from fairq_ryu.experiments.workloads.common.short_flows import short_figures


def test_short_flows_are_finished_when_their_last_byte_arrives():
    flows = [
        {"due_ns": 0, "start_ns": at, "done_ns": done, "total_rto": timeouts}
        for at, done, timeouts in ((1_000_000, 4_000_000, 2), (0, None, 0), (0, 5_000_000, 0))
    ]
    found = short_figures(flows, (0, 1))
    assert (found["count"], found["unfinished"], found["fct_ms"]["count"]) == (3, 1, 2)
    assert (found["fct_ms"]["mean"], found["fct_ms"]["max"]) == (4.0, 5.0)
    assert (found["timeout_flows"], found["timeout_share"]) == (1, 1 / 3)
    assert short_figures([], (0, 1))["fct_ms"] is None


def test_a_short_flow_belongs_to_the_phase_in_which_it_was_due():
    """Not to that in which a slow machine starts it, or in which it ends."""
    done_ns = {9: 15, 10: 10**6 + 16, 15: 2 * 10**6 + 21, 19: None, 20: 26}
    flows = [
        {"due_ns": due, "start_ns": due + 6, "done_ns": done, "total_rto": 0} for due, done in done_ns.items()
    ]
    found = short_figures(flows, (10, 20))
    assert (found["count"], found["unfinished"]) == (3, 1)
    assert (found["fct_ms"]["count"], found["fct_ms"]["mean"]) == (2, 1.5)

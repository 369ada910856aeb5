"""Which short flows are counted, and from when to when."""

from fairq_ryu.experiments.workloads.common.short_flows import short_figures


def test_short_flows_are_finished_when_their_last_byte_arrives():
    started = [{"id": number, "due_ns": 0, "start_ns": at} for number, at in enumerate((1_000_000, 0, 0))]
    found = short_figures(started, {0: 4_000_000, 1: None, 2: 5_000_000}, (0, 1))
    assert (found["count"], found["unfinished"], found["fct_ms"]["count"]) == (3, 1, 2)
    assert (found["fct_ms"]["mean"], found["fct_ms"]["max"]) == (4.0, 5.0)
    assert short_figures([], {}, (0, 1))["fct_ms"] is None


def test_a_short_flow_belongs_to_the_phase_in_which_it_was_due():
    """Not to that in which a slow machine starts it, or in which it ends."""
    dues = [9, 10, 15, 19, 20]
    started = [{"id": due, "due_ns": due, "start_ns": due + 6} for due in dues]
    found = short_figures(started, {9: 15, 10: 10**6 + 16, 15: 2 * 10**6 + 21, 19: None, 20: 26}, (10, 20))
    assert (found["count"], found["unfinished"]) == (3, 1)
    assert (found["fct_ms"]["count"], found["fct_ms"]["mean"]) == (2, 1.5)

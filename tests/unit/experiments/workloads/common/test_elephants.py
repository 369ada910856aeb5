import pytest

from fairq_ryu.experiments.workloads.common import elephants


def test_goodput_is_between_two_marks_by_number_of_the_elephant():
    before = {"clock_ns": 0, "bytes": {"0": 100, "10": 0, "9": 0}}
    after = {"clock_ns": 2 * 10**9, "bytes": {"10": 500_000, "9": 250_000, "0": 1_000_100}}
    assert elephants.goodputs(before, after) == pytest.approx([4.0, 1.0, 2.0])
    info = {i: {"total_retrans": 2, "total_rto": 0} for i in ("0", "9", "10")}
    later = {i: {"total_retrans": 5, "total_rto": 1} for i in ("0", "9", "10")}
    summary = elephants.elephants_summary(before, after, info, later, 7.5)
    assert summary["goodput_sum_mbit"] == pytest.approx(7.0)
    assert summary["jain"] == pytest.approx(49 / (3 * 21))
    assert (summary["retransmissions"], summary["rto_timeouts"]) == (9, 3)
    assert (summary["timeout_flows"], summary["timeout_share"]) == (3, 1.0)
    later["9"]["total_rto"] = None
    summary = elephants.elephants_summary(before, after, info, later, 7.5)
    assert (summary["rto_timeouts"], summary["timeout_flows"]) == (None, None)


def test_an_elephant_of_which_nothing_has_arrived_counts():
    """Under a law that starves it: it has a goodput of 0, and Jain's index shows it."""

    class Sink:
        def ask(self, what):
            return {"clock_ns": 0, "bytes": {"1": 5}}

    class Measurement:
        def start_worker(self, host, role):
            return Sink(), 5001

        def start_workers(self, hosts, role):
            return []

    group = elephants.ElephantGroup(Measurement(), "h3", ["h1", "h2"], 3, seed=1)
    assert group.mark() == {"clock_ns": 0, "bytes": {"0": 0, "1": 5, "2": 0}}

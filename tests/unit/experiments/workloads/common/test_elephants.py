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

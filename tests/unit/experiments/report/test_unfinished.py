"""Flows that have not finished."""

from fairq_ryu.experiments.report import repetitions, unfinished


def test_of_repetitions_the_mean_counts_and_no_interval():
    each = [{"policy": "a", "mice": {"fct_ms": {"p99": 1.0}, "unfinished": count}} for count in (10, 12)]
    merged = repetitions.merge(each)
    assert merged["interval"]["mice"]["unfinished"] > 1
    assert unfinished.remark(merged).startswith("a: 11 flows of a repetition have not finished")
    assert unfinished.remark(repetitions.merge(each[:1])).startswith("a: 10 flows")

"""The order of runs, and the time that is left."""

import itertools

import pytest

from fairq_ryu.experiments.sweep import schedule
from fairq_ryu.experiments.sweep.schedule import Run


def test_every_run_is_made_once_one_repetition_after_the_other():
    found = schedule.schedule(3, ["a", "b"], 2)
    assert sorted(found) == [Run(*each) for each in itertools.product(range(3), range(2), "ab")]
    assert [run.repetition for run in found] == [0] * 6 + [1] * 6


def test_no_policy_and_no_point_is_always_the_first():
    found = schedule.schedule(3, ["a", "b"], 3)
    firsts = [run for place, run in enumerate(found) if place % 2 == 0]
    assert [run.policy for run in firsts[:3]] == ["a", "b", "a"]
    assert [found[6 * number].point for number in range(3)] == [0, 1, 2]
    for point in range(3):
        assert {run.policy for run in firsts if run.point == point} == {"a", "b"}
    assert schedule.policies_of(1, 0, ["a", "b", "c"]) == ["b", "c", "a"]


def test_the_time_left_is_that_of_runs_like_those_that_are_left():
    took = {Run(0, 0, "a"): 10.0, Run(0, 0, "b"): 100.0, Run(1, 0, "a"): 30.0}
    assert schedule.seconds_left([Run(0, 1, "a")], took) == 10
    assert schedule.seconds_left([Run(0, 1, "a"), Run(1, 0, "b")], took) == 10 + 100
    assert schedule.seconds_left([Run(2, 0, "a")], took) == 20
    assert schedule.seconds_left([Run(2, 0, "c")], took) == pytest.approx(140 / 3)
    assert schedule.seconds_left([Run(0, 0, "a")], {}) is None
    assert schedule.seconds_left([], took) == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "not yet known"), (20, "less than a minute"), (150, "about 2 min"), (7400, "about 2 h 3 min")],
)
def test_it_is_told_in_words(seconds, words):
    assert words in schedule.in_words(seconds)

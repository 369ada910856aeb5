"""Actions that wait for barrier replies."""

from fairq_ryu.openflow.barriers import Barriers


def test_an_action_waits_for_every_answer():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 7), (2, 9)], lambda: done.append("both"), 0.0)
    barriers.answered((1, 7))
    barriers.answered((1, 9))
    assert not done and len(barriers) == 1
    barriers.answered((2, 9))
    barriers.answered((2, 9))
    assert done == ["both"] and len(barriers) == 0


def test_with_nothing_to_wait_for_it_is_taken_at_once():
    done, barriers = [], Barriers(0.5)
    barriers.wait([], lambda: done.append("now"), 0.0)
    assert done == ["now"]


def test_nobody_waits_for_ever():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 7)], lambda: done.append("late"), 10.0)
    barriers.overdue(10.4)
    assert not done
    barriers.overdue(10.5)
    barriers.answered((1, 7))
    assert done == ["late"]


def test_an_action_may_wait_again():
    done, barriers = [], Barriers(0.5)
    barriers.wait([1], lambda: barriers.wait([2], lambda: done.append("second"), 0.0), 0.0)
    barriers.answered(1)
    assert not done and len(barriers) == 1
    barriers.answered(2)
    assert done == ["second"]

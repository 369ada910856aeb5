"""Actions that wait for barrier replies."""

import math

from fairq_ryu.openflow.barriers import Barriers


def test_an_action_waits_for_every_reply():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 7), (2, 9)], lambda: done.append("both"), 0.0)
    barriers.answered((1, 7))
    barriers.answered((1, 9))
    assert not done and len(barriers) == 1
    barriers.answered((2, 9))
    barriers.answered((2, 9))
    assert done == ["both"] and len(barriers) == 0


def test_an_action_without_barriers_runs_at_once():
    done, barriers = [], Barriers(0.5)
    barriers.wait([], lambda: done.append("now"), 0.0)
    assert done == ["now"]


def test_an_action_runs_after_its_timeout():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 7)], lambda: done.append("late"), 10.0)
    barriers.expire(10.4)
    assert not done
    barriers.expire(10.5)
    barriers.answered((1, 7))
    assert done == ["late"]


def test_an_action_may_wait_again():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 1)], lambda: barriers.wait([(1, 2)], lambda: done.append("second"), 0.0), 0.0)
    barriers.answered((1, 1))
    assert not done and len(barriers) == 1
    barriers.answered((1, 2))
    assert done == ["second"]


def test_actions_may_have_different_timeouts():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 7)], lambda: done.append("patient"), 0.0, math.inf)
    barriers.wait([(1, 8)], lambda: done.append("not"), 0.0)
    barriers.expire(1e9)
    assert done == ["not"]
    barriers.answered((1, 7))
    assert done == ["not", "patient"]


def test_an_action_does_not_wait_for_a_disconnected_switch():
    done, barriers = [], Barriers(0.5)
    barriers.wait([(1, 7), (2, 7)], lambda: done.append("both"), 0.0, math.inf)
    barriers.wait([(1, 8)], lambda: done.append("one"), 0.0, math.inf)
    barriers.disconnected(1)
    assert done == ["one"]
    barriers.answered((2, 7))
    assert done == ["one", "both"] and len(barriers) == 0

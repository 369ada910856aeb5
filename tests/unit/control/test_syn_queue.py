"""The order of queued SYNs: by deadline, and fair between ports."""

from __future__ import annotations

import pytest

from fairq_ryu.control.syn_queue import SynQueue
from tests.support.flownet import A, B


def test_a_port_that_floods_waits_for_itself():
    held = SynQueue()
    for number in range(100):
        held.add(f"flood {number}", A, None, 1.0 + number * 0.0002)
    held.add("another", B, None, 1.02)
    held.add("urgent", B, 1.05, 1.02)
    order = [held.take() for _ in range(len(held))]
    assert order[0] == "urgent"
    assert order.index("another") < 5
    assert [each for each in order if each.startswith("flood")] == [f"flood {n}" for n in range(100)]
    with pytest.raises(IndexError):
        held.take()


def test_a_port_has_its_first_turn_again_when_nothing_of_it_waits():
    held = SynQueue()
    for _ in range(3):
        held.add("old", A, None, 1.0)
        held.take()
    held.add("a", A, None, 1.0)
    held.add("b", B, None, 1.001)
    assert [held.take(), held.take()] == ["a", "b"]

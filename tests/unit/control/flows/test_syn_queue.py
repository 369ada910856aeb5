"""The order of queued SYNs: by deadline, and fair between ports."""

from __future__ import annotations

import pytest

from fairq_ryu.control.flows.syn_queue import SynQueue
from tests.support.flownet import A, B


def test_a_port_that_floods_delays_only_itself():
    queue = SynQueue()
    for number in range(100):
        queue.add(f"flood {number}", A, None, 1.0 + number * 0.0002)
    queue.add("another", B, None, 1.02)
    queue.add("urgent", B, 1.05, 1.02)
    order = [queue.take() for _ in range(len(queue))]
    assert order[0] == "urgent"
    assert order.index("another") < 5
    assert [each for each in order if each.startswith("flood")] == [f"flood {n}" for n in range(100)]
    with pytest.raises(IndexError):
        queue.take()


def test_an_empty_port_queue_starts_with_its_first_turn_again():
    queue = SynQueue()
    for _ in range(3):
        queue.add("old", A, None, 1.0)
        queue.take()
    queue.add("a", A, None, 1.0)
    queue.add("b", B, None, 1.001)
    assert [queue.take(), queue.take()] == ["a", "b"]

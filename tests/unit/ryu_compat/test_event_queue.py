"""Events are taken in their order, and others run between them."""

from __future__ import annotations

from ryu.lib import hub

from fairq_ryu.ryu_compat import event_queue
from fairq_ryu.ryu_compat.event_queue import SlicedQueue


def test_others_run_after_a_slice_of_events(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(event_queue.time, "monotonic", lambda: clock[0])
    queue, seen = SlicedQueue(128), []

    def take() -> None:
        for _ in range(8):
            seen.append(queue.get())
            clock[0] += 0.0004  # what an event takes

    taker = hub.spawn(take)
    hub.sleep(0)  # it waits
    for number in range(8):
        queue.put(number)
    hub.spawn(lambda: seen.append("other"))
    hub.joinall([taker])
    assert [each for each in seen if each != "other"] == list(range(8))
    assert seen.index("other") in (3, 4), "not behind all of them"
    assert queue.empty() and queue.maxsize == 128

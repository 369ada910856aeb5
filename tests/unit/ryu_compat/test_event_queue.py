"""Events are taken in their order, and others run between them."""

from __future__ import annotations

from types import SimpleNamespace

from ryu.lib import hub

from fairq_ryu.ryu_compat import event_queue
from fairq_ryu.ryu_compat.event_queue import SlicedQueue


def test_others_run_after_a_slice_of_events(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(event_queue.time, "monotonic", lambda: clock[0])
    queue, seen = SlicedQueue(128), []

    def take() -> None:
        for _ in range(8):
            seen.append(queue.get()[0])
            clock[0] += 0.0004  # what an event takes

    taker = hub.spawn(take)
    hub.sleep(0)  # it waits
    for number in range(8):
        queue.put((number,))
    hub.spawn(lambda: seen.append("other"))
    hub.joinall([taker])
    assert [each for each in seen if each != "other"] == list(range(8))
    assert seen.index("other") in (2, 3), "not behind all of them"
    assert queue.empty() and queue.maxsize == 128


def test_the_queue_knows_whose_events_wait():
    queue, bridge, agent = SlicedQueue(128), SimpleNamespace(), SimpleNamespace()
    queue.put((SimpleNamespace(msg=SimpleNamespace(datapath=bridge)), "main"))
    queue.put((SimpleNamespace(datapath=agent), "main"))  # its state has changed
    queue.put((SimpleNamespace(datapath=agent), "main"))
    free = []
    while not queue.empty():
        free.append((queue.is_free(bridge), queue.is_free(agent)))
        queue.get()
    assert free == [(False, False), (True, False), (True, False)]
    assert queue.is_free(bridge) and queue.is_free(agent) and queue.is_free(SimpleNamespace())

"""The worker: wakes that come before the call are one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from fairq_ryu.control import worker
from fairq_ryu.control.worker import Worker
from tests.support.workers import Idle, WakeEvent


class Hub:
    """Stands for ryu.lib.hub; ``asleep`` happens during a sleep."""

    Event = WakeEvent

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.asleep: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.asleep()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub()
    monkeypatch.setattr(worker, "hub", hub)
    return hub


def run(worker: Worker) -> None:
    with pytest.raises(Idle):
        worker.run()


def test_it_works_only_after_a_wake_and_once_for_several(hub):
    calls: list[int] = []
    idle = Worker(lambda: calls.append(1))
    run(idle)
    assert calls == []
    idle.wake()
    idle.wake()
    run(idle)
    assert calls == [1] and hub.slept == []


def test_a_wake_during_the_work_is_not_lost(hub):
    calls: list[int] = []

    def work() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            busy.wake()

    busy = Worker(work)
    busy.wake()
    run(busy)
    assert calls == [0, 1]


def test_wakes_during_the_delay_belong_to_the_same_group(hub):
    calls: list[int] = []
    grouped = Worker(lambda: calls.append(1), 0.25)
    hub.asleep = grouped.wake
    grouped.wake()
    run(grouped)
    assert calls == [1] and hub.slept == [0.25]


@pytest.mark.parametrize(("took", "rests"), [(0.02, 0.08), (1.0, 0.5)])
def test_costly_work_rests_while_wakes_come_without_end(hub, monkeypatch, took, rests):
    now, began = [100.0], []
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def work() -> None:
        began.append(now[0])
        now[0] += took
        if len(began) < 3:
            busy.wake()

    def sleep() -> None:
        now[0] += hub.slept[-1]

    hub.asleep = sleep
    busy = Worker(work, delay=0.01, rest=4.0, longest=0.5)
    busy.wake()
    run(busy)
    # The first one after a quiet time waits for its group only.
    assert hub.slept == pytest.approx([0.01, rests, rests])
    now[0] += 10.0
    busy.wake()
    run(busy)
    assert hub.slept[3:] == pytest.approx([0.01])


def test_after_a_failure_the_rest_of_the_work_is_done_without_another_wake(hub):
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError

    failing = Worker(work)
    failing.wake()
    with pytest.raises(ZeroDivisionError):
        failing.run()
    run(failing)
    assert len(calls) == 2

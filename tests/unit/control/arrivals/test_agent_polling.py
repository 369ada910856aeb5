"""The loop that polls an agent: how late it continues is counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.control.arrivals import agent_polling as module
from fairq_ryu.control.arrivals.agent_polling import AgentPolling
from fairq_ryu.control.reports.counters import Delays


def nothing(*_: Any, **__: Any) -> None:
    pass


class Loop:
    """The loop of one agent, run five times with a clock of its own; it continues ``late`` seconds late."""

    def __init__(self, monkeypatch: Any, interval: float | None, late: float, woken: bool):
        self.now, self.late, self.turns, self.woken = 100.0, late, 5, woken
        self.laws_asked: list[float] = []
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "hub", SimpleNamespace(sleep=self.sleep))
        link: Any = SimpleNamespace(
            dpid=1,
            flow_records=SimpleNamespace(request=nothing),
            request_queues=self.request,
            window_laws=SimpleNamespace(request=self.request_laws),
            request_counts=nothing,
            request_hidden_queues=nothing,
            modes=SimpleNamespace(request=nothing),
            poll_now=self,
            send=nothing,
        )
        self.windows: Any = SimpleNamespace(
            links={1: link},
            interval=lambda _: interval,
            records_interval=lambda _link, wanted, _idle: wanted,
            follows_flows=False,
            engine=SimpleNamespace(look_interval=0.05),
            queue_laws=SimpleNamespace(request=nothing),
        )
        self.delay = Delays()
        AgentPolling(self.windows, 60.0, self.delay).run(link)

    def request(self, now: float) -> None:
        self.now += 0.0005  # sending takes its time
        self.turns -= 1
        if not self.turns:
            self.windows.links = {}

    def request_laws(self, interval: float, now: float) -> None:
        """As the link does it."""
        if not self.laws_asked or now - self.laws_asked[-1] >= interval:
            self.laws_asked.append(now)

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late

    def clear(self) -> None:
        pass

    def wait(self, seconds: float) -> bool:
        self.sleep(0.01 if self.woken else seconds)
        return self.woken


@pytest.mark.parametrize(("interval", "late"), [(0.002, 0.004), (0.002, 0.0), (0.05, 0.004), (None, 0.004)])
def test_the_loop_counts_how_late_it_continues(monkeypatch, interval, late):
    loop = Loop(monkeypatch, interval, late, woken=False)
    assert loop.delay.histogram.count == 5
    assert loop.delay.histogram.sum == pytest.approx(5 * late, abs=1e-9)
    assert loop.delay.recent(0.99) == pytest.approx(late, abs=1e-9)


def test_sending_that_takes_longer_than_the_interval_makes_it_late(monkeypatch):
    loop = Loop(monkeypatch, 0.0001, 0.0, woken=False)
    assert loop.delay.histogram.sum == pytest.approx(5 * 0.0004)


@pytest.mark.parametrize("interval", [0.05, None])
def test_being_woken_is_not_being_late(monkeypatch, interval):
    loop = Loop(monkeypatch, interval, 0.004, woken=True)
    assert loop.delay.histogram.count == 0
    assert loop.now == pytest.approx(100 + 5 * (0.0005 + 0.014))


def test_a_late_reading_does_not_delay_the_next_one(monkeypatch):
    """Otherwise loops that were late together would stay together, and be late together again."""
    loop = Loop(monkeypatch, 0.05, 0.004, woken=False)
    assert loop.now == pytest.approx(100 + 5 * 0.05 + 0.004)


def test_a_reading_that_is_later_begins_anew(monkeypatch):
    """What is due with a reading is done up to a tenth of its interval early, and not more."""
    loop = Loop(monkeypatch, 0.05, 0.006, woken=False)
    assert loop.now == pytest.approx(100 + 5 * (0.05 + 0.006))


@pytest.mark.parametrize("late", [0.0, 0.004, 0.006])
def test_the_states_of_laws_are_asked_for_with_each_reading(monkeypatch, late):
    loop = Loop(monkeypatch, 0.05, late, woken=False)
    assert len(loop.laws_asked) == 5

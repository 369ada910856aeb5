"""Held SYNs, and copies of segments: each waits for its turn; what is wrong with one harms no other."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.apps import controller as module
from fairq_ryu.apps.controller import Controller
from fairq_ryu.control.syn_queue import SynQueue
from fairq_ryu.fabric.deadlines.request import request
from fairq_ryu.model import WindowPlan
from fairq_ryu.packet.parse import Frame
from tests.unit.fakes import FakeSwitch
from tests.unit.flownet import KEY, A, B, segment
from tests.unit.site import CLIENT_MAC, SERVER_MAC, Site


class Idle(Exception):
    """The worker has nothing to do: where it would wait for ever, tests go on."""


class Bell:
    """The event that wakes the worker."""

    def __init__(self) -> None:
        self.rung = False

    def set(self) -> None:
        self.rung = True

    def clear(self) -> None:
        self.rung = False

    def wait(self) -> None:
        if not self.rung:
            raise Idle


class Holding:
    """As much of a controller as works on held SYNs. Both hosts are known; ``meanwhile`` happens whenever the
    worker lets others in.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site = Site()
        self.meanwhile: Callable[[], Any] = lambda: None
        self.now = 11.0
        self.clock: Callable[[], float] = lambda: self.now
        monkeypatch.setattr(module, "hub", SimpleNamespace(sleep=lambda _: self.meanwhile()))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.clock()))
        site.fabric.tick(10.0)
        for mac, port in ((CLIENT_MAC, A), (SERVER_MAC, B)):
            site.fabric.host_seen(site.bridge, Frame(mac, "ff:ff:ff:ff:ff:ff", ()), port, 10.0)
        site.fabric.refresh()
        site.log.clear()
        self.controller = fake = SimpleNamespace(
            fabric=site.fabric,
            windows=site.windows,
            flows=site.flows,
            logger=logging.getLogger(__name__),
            _held_syns=SynQueue(),
            _held_there=Bell(),
            _copies=deque(),
            _copies_there=Bell(),
        )
        for name in ("_hold", "_held", "_segment", "_apply", "_release_if_over", "_work_on_held", "_copied",
                     "_work_on_copies"):  # fmt: skip
            setattr(fake, name, partial(getattr(Controller, name), fake))

    def hold(self, number: int, now: float = 11.0) -> None:
        """The first SYN of a connection comes; frames have the number as their bytes."""
        key = KEY._replace(sport=KEY.sport + number)
        frame = Frame(CLIENT_MAC, SERVER_MAC, (), KEY.src, None, segment(key, "S", seq=100), 0)
        self.controller._hold(self.site.bridge, frame, bytes([number]), A, now)

    def work(self) -> None:
        with pytest.raises(Idle):
            self.controller._work_on_held()

    def copy(self, number: int, now: float = 11.0) -> None:
        """A copy of the first SYN of a connection comes."""
        key = KEY._replace(sport=KEY.sport + number)
        said = segment(key, "S", seq=100)
        self.controller._copied(Frame(CLIENT_MAC, SERVER_MAC, (), KEY.src, None, said, 0), said, A, now)

    def fail_with(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Working on that connection goes wrong."""
        path = self.site.fabric.path

        def bad(key: Any, *about: Any) -> Any:
            if key.sport == KEY.sport + number:
                raise RuntimeError("a bad day")
            return path(key, *about)

        monkeypatch.setattr(self.site.fabric, "path", bad)

    def work_on_copies(self) -> None:
        with pytest.raises(Idle):
            self.controller._work_on_copies()

    @property
    def gone_on(self) -> list[int]:
        """The SYNs that are on their way, by number."""
        outs = (message for message in self.site.bridge.sent if type(message).__name__ == "OFPPacketOut")
        return [message.data[0] for message in outs]

    @property
    def counted(self) -> list[int]:
        """The connections that count, by number."""
        return sorted(each.forward.sport - KEY.sport for each in self.site.flows)


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Holding:
    return Holding(monkeypatch)


def test_they_go_on_in_the_order_in_which_they_came(holding):
    for number in range(5):
        holding.hold(number)
    assert holding.gone_on == []
    late = [5, 6]
    holding.meanwhile = lambda: late and holding.hold(late.pop(0))  # while the worker is at it
    holding.work()
    assert holding.gone_on == holding.counted == list(range(7))
    # And the worker is woken again by what comes after.
    holding.hold(7)
    holding.work()
    assert holding.gone_on == list(range(8))


def test_those_with_deadlines_go_on_by_these_and_the_time_they_waited_counts(holding):
    """Deadlines count from when a SYN came, not from when its turn was."""
    site = holding.site
    for number, deadline in ((0, None), (1, 0.5), (2, 0.1), (3, 0.3)):
        if deadline is not None:
            key = KEY._replace(sport=KEY.sport + number)
            wanted = request(key.src, key.dst, key.dport, sport=key.sport, size=5000, deadline=deadline)
            site.windows.announce(wanted, 10.9)
        holding.hold(number, 11.0)
    holding.now = 11.25
    holding.work()
    assert holding.gone_on == [2, 0, 3, 1]
    said = [site.windows.announcements.of(KEY._replace(sport=KEY.sport + number)) for number in range(4)]
    assert said[0] is None
    assert [each.deadline for each in said[1:]] == pytest.approx([11.5, 11.1, 11.3])


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


def test_others_have_their_turn_after_each(holding):
    """Answers to barriers come meanwhile: they are not to wait for a whole volley."""
    seen = []
    holding.meanwhile = lambda: seen.append(list(holding.gone_on))
    for number in range(3):
        holding.hold(number)
    holding.work()
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_a_syn_goes_on_when_its_window_stands(holding):
    site = holding.site
    site.policy.plan = WindowPlan(window=1460)
    site.sample(B, 10.0)
    site.windows.agent_gone(site.link)
    site.connect_agent()  # it knows nothing, and is told with the flow
    holding.hold(0)
    holding.work()
    assert holding.gone_on == [] and holding.counted == [0]
    site.answer_barriers()
    assert holding.gone_on == [0]


def test_when_too_many_wait_the_next_is_worked_on_at_once(holding, monkeypatch):
    """Then whoever sends them waits as well, and what is remembered has a bound."""
    monkeypatch.setattr(module, "_MOST_HELD", 3)
    for number in range(5):
        holding.hold(number)
    assert holding.gone_on == [3, 4]
    assert len(holding.controller._held_syns) == 3
    holding.work()
    assert holding.gone_on == [3, 4, 0, 1, 2]
    holding.hold(5)
    assert len(holding.controller._held_syns) == 1


def test_what_fails_with_one_does_not_end_the_worker(holding, monkeypatch, caplog):
    holding.fail_with(1, monkeypatch)
    for number in range(3):
        holding.hold(number)
    holding.work()
    assert holding.gone_on == [0, 2]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "a bad day" in caplog.text
    holding.hold(3)
    holding.work()
    assert holding.gone_on == [0, 2, 3]


def test_a_bridge_that_goes_while_its_syn_waits_does_no_harm(holding, caplog):
    """Nobody can send it on: it counts nowhere, and has no path. Its sender repeats it."""
    site = holding.site
    holding.hold(0)
    holding.hold(1)
    holding.meanwhile = lambda: site.fabric.bridge_gone(site.bridge)
    holding.work()
    assert holding.gone_on == holding.counted == [0]
    assert len(site.fabric.paths) == 1
    assert not caplog.records


def test_a_bridge_that_is_back_is_not_sent_what_its_old_connection_held(holding, caplog):
    site = holding.site
    holding.hold(0)
    old = site.bridge
    site.fabric.bridge_gone(old)
    site.fabric.bridge_came(FakeSwitch(1), [], [], 12.0)
    site.log.clear()
    holding.work()
    assert not old.sent and not holding.counted and not caplog.records


def test_copies_are_worked_on_later_in_their_order(holding):
    for number in range(5):
        holding.copy(number)
    assert holding.counted == []
    holding.work_on_copies()
    assert holding.counted == list(range(5))
    holding.copy(5)
    holding.work_on_copies()
    assert holding.counted == list(range(6))


def test_others_have_their_turn_among_copies_when_these_take_long(holding):
    seen = []
    holding.meanwhile = lambda: seen.append(len(holding.counted))
    for number in range(4):
        holding.copy(number)
    holding.work_on_copies()
    assert seen == []  # the clock stands: they took no time
    times = iter(11.0 + 0.0006 * tick for tick in range(100))
    holding.clock = lambda: next(times)
    for number in range(4, 8):
        holding.copy(number)
    holding.work_on_copies()
    assert seen and seen[0] < 8


def test_when_too_many_copies_wait_the_first_is_worked_on_at_once(holding, monkeypatch):
    monkeypatch.setattr(module, "_MOST_COPIES", 2)
    for number in range(4):
        holding.copy(number)
    assert holding.counted == [0, 1]  # the first to come
    holding.work_on_copies()
    assert holding.counted == [0, 1, 2, 3]


def test_a_copy_that_fails_does_not_end_the_worker(holding, monkeypatch, caplog):
    holding.fail_with(0, monkeypatch)
    for number in range(3):
        holding.copy(number)
    holding.work_on_copies()
    assert holding.counted == [1, 2] and "a bad day" in caplog.text


def test_the_deadline_of_a_copied_syn_counts_from_when_it_came(holding):
    wanted = request(KEY.src, KEY.dst, KEY.dport, sport=KEY.sport, size=5000, deadline=0.5)
    holding.site.windows.announce(wanted, 10.9)
    holding.copy(0, 11.0)
    holding.now = 11.2
    holding.work_on_copies()
    assert holding.site.windows.announcements.of(KEY).deadline == pytest.approx(11.5)

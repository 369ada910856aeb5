"""Timers do not wait for all sockets that can be read."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from eventlet import hubs
from eventlet.hubs import epolls
from eventlet.hubs.hub import BaseHub
from eventlet.support import greenlets
from ryu.lib import hub as ryu_hub

from fairq_ryu.ryu_compat import short_turns

FEW = short_turns.SOCKETS
MANY = 3 * FEW


class Clock:
    """Time passes only when something is done."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def hub() -> Iterator[BaseHub]:
    loop = epolls.Hub()
    yield loop
    loop.poll.close()


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(short_turns, "time", made)
    return made


def serve(hub: BaseHub, turns: int, clock: Clock, each: float, timers: float = 0.0) -> list[list[int]]:
    """The sockets that are served in each turn, by number: all can be read, and stay so. ``each``: what one
    takes; ``timers``: what the timers take between two turns, seconds.
    """
    served: list[list[int]] = []
    with contextlib.ExitStack() as stack:
        numbers = {}

        def read(descriptor: int) -> None:
            served[-1].append(numbers[descriptor])
            clock.now += each

        for number in range(MANY):
            ends = [stack.enter_context(end) for end in socket.socketpair()]
            ends[0].send(b"x")
            numbers[ends[1].fileno()] = number
            hub.add(hub.READ, ends[1].fileno(), read, None, None)
        for _ in range(turns):
            clock.now += timers
            served.append([])
            hub.wait(0)
    return served


def test_all_sockets_come_at_once_without_a_limit(hub, clock):
    assert [len(each) for each in serve(hub, 2, clock, 1.0)] == [MANY, MANY]


def test_a_turn_serves_a_few_sockets_and_every_socket_has_its_turn(hub, clock):
    short_turns.limit(hub)
    served = serve(hub, 6, clock, short_turns.LEAST)
    assert [len(each) for each in served] == [FEW] * 6
    for round_ in (served[:3], served[3:]):
        assert sorted(number for turn in round_ for number in turn) == list(range(MANY))


@pytest.mark.parametrize(("timers", "groups"), [(0.0, 1), (0.006, 3), (60.0, 20)])
def test_sockets_have_half_as_long_as_the_timers_and_20_ms_at_most(hub, clock, timers, groups):
    """However many timers there are, sockets are served. Each group of them takes a millisecond."""
    short_turns.limit(hub)
    served = serve(hub, 3, clock, 0.001 / FEW * 1.001, timers)
    assert [len(each) for each in served] == [groups * FEW] * 3


def test_a_few_sockets_are_served_once(hub, clock):
    """The loop does not look again when it has seen all that can be read."""
    short_turns.limit(hub)
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(end) for end in socket.socketpair()]
        ends[0].send(b"x")
        seen: list[int] = []
        hub.add(hub.READ, ends[1].fileno(), seen.append, None, None)
        hub.wait(0)
    assert len(seen) == 1


class Readers:
    """Greenlets of the test's own loop that have ``steps`` to do, each of which takes ``each`` seconds, and
    pause after each. ``done``: who has done one, in order, with "timer" where a timer was called.
    """

    def __init__(self, clock: Clock, count: int, steps: int, each: float) -> None:
        short_turns.register()
        self.clock, self.each = clock, each
        self.done: list[Any] = []
        self.greenlets = [ryu_hub.spawn(self._run, number, steps) for number in range(count)]

    def _run(self, number: int, steps: int) -> None:
        for _ in range(steps):
            short_turns.pause()
            self.done.append(number)
            self.clock.now += self.each

    def timers(self, count: int) -> None:
        """A timer in each of the next turns."""
        for _ in range(count):
            ryu_hub.sleep(0)
            self.done.append("timer")


def test_readers_that_have_paused_go_on_one_after_the_other_between_timers(clock):
    readers = Readers(clock, count=5, steps=2, each=short_turns.LEAST)
    readers.timers(12)
    numbers = [each for each in readers.done if each != "timer"]
    assert numbers == [0, 1, 2, 3, 4] * 2
    gaps = "".join("t" if each == "timer" else "r" for each in readers.done).strip("t")
    assert "rr" not in gaps, "one takes all the time of a turn"


def test_readers_share_the_time_of_a_turn(clock):
    readers = Readers(clock, count=8, steps=1, each=short_turns.LEAST * 0.26)
    readers.timers(6)
    turns = "".join("t" if each == "timer" else "r" for each in readers.done).strip("t").split("t")
    assert [len(each) for each in turns] == [4, 4]


def test_a_reader_that_is_killed_while_it_pauses_is_forgotten(clock):
    readers = Readers(clock, count=2, steps=1, each=0.0)
    ryu_hub.sleep(0)  # both begin
    ryu_hub.kill(readers.greenlets[0])
    readers.timers(4)
    assert [each for each in readers.done if each != "timer"] == [1]


def test_a_reader_has_its_slice_at_most_and_a_little_at_least(hub, clock, monkeypatch):
    monkeypatch.setattr(short_turns.hubs, "get_hub", lambda: hub)
    assert short_turns.ends(7.0, 0.5) == 7.5, "the turns are not limited"
    short_turns.limit(hub)
    clock.now += 0.0625
    hub.wait(0)
    now = clock.now
    assert short_turns.ends(now, 0.0005) == now + 0.0005
    assert short_turns.ends(now, 60.0) == now + short_turns.MOST, "not half of the time since the last turn"
    assert short_turns.ends(now + 5.0, 0.0005) == now + 5.0 + short_turns.LEAST_EACH


def test_a_reader_that_fails_does_not_end_the_loop(clock, capsys):
    short_turns.register()

    def fail() -> None:
        short_turns.pause()
        raise ValueError("of a test")

    plain = greenlets.greenlet(fail, hubs.get_hub().greenlet)
    hubs.get_hub().schedule_call_global(0, plain.switch)
    for _ in range(4):
        ryu_hub.sleep(0)
    assert plain.dead and "of a test" in capsys.readouterr().err


def test_a_loop_without_sockets_does_not_look_for_more(hub, clock):
    """The loop does not poll then; how many it found the last time means nothing."""
    short_turns.limit(hub)
    serve(hub, 1, clock, short_turns.LEAST)
    for descriptor in list(hub.listeners[hub.READ]):
        hub.remove_descriptor(descriptor)
    calls: list[float] = []
    turns = vars(hub)["fairq_turns"]
    turns._wait = calls.append
    hub.wait(0)
    assert calls == [0]

"""Timers do not wait for all sockets that can be read."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from eventlet.hubs import epolls
from eventlet.hubs.hub import BaseHub

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


@pytest.mark.parametrize(("timers", "groups"), [(0.0, 1), (6.0, 3)])
def test_sockets_have_half_as_long_as_the_timers(hub, clock, timers, groups):
    """However many timers there are, sockets are served."""
    short_turns.limit(hub)
    served = serve(hub, 3, clock, 1.0 / FEW, timers)
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

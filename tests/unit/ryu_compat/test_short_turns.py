"""Timers do not wait for all sockets that can be read."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from eventlet.hubs import epolls
from eventlet.hubs.hub import BaseHub

from fairq_ryu.ryu_compat import short_turns

MANY = 3 * short_turns.SOCKETS


@pytest.fixture
def hub() -> Iterator[BaseHub]:
    loop = epolls.Hub()
    yield loop
    loop.poll.close()


def serve(hub: BaseHub, turns: int) -> list[list[int]]:
    """The sockets that are served in each turn, by number: all can be read, and stay so."""
    served: list[list[int]] = []
    with contextlib.ExitStack() as stack:
        numbers = {}
        for number in range(MANY):
            ends = [stack.enter_context(end) for end in socket.socketpair()]
            ends[0].send(b"x")
            numbers[ends[1].fileno()] = number
            hub.add(hub.READ, ends[1].fileno(), lambda fd: served[-1].append(numbers[fd]), None, None)
        for _ in range(turns):
            served.append([])
            hub.wait(0)
    return served


def test_all_sockets_come_at_once_without_a_limit(hub):
    assert [len(each) for each in serve(hub, 2)] == [MANY, MANY]


def test_a_turn_serves_a_few_sockets_and_every_socket_has_its_turn(hub):
    short_turns.limit(hub)
    served = serve(hub, 6)
    assert [len(each) for each in served] == [short_turns.SOCKETS] * 6
    for round_ in (served[:3], served[3:]):
        assert sorted(number for turn in round_ for number in turn) == list(range(MANY))

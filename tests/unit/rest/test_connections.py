"""How the web server sends, and which connections it closes: there are too many, or too much is not read."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Iterator
from typing import Any

import eventlet
import pytest

from fairq_ryu.rest.connections import Connections

MOST, UNREAD = 4, 1000


class Reply:
    """What a server holds while its client reads."""


class Clients:
    """Clients of a pool whose servers wait for ever."""

    def __init__(self) -> None:
        self.pool = Connections(MOST, UNREAD)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.replies: list[weakref.ref[Reply]] = []

    def connect(self) -> int:
        """Another one, from the same address; its number."""
        own, client = socket.socketpair()
        client.setblocking(False)
        self._pairs.append((own, client))
        number = len(self._pairs) - 1
        self.pool.spawn(self._serve, ["192.0.2.1", own, ""])
        return number

    def sends(self, number: int, size: int | None) -> None:
        self.pool.sends(self._pairs[number][0], size)

    def _serve(self, connection: Any) -> None:
        reply = Reply()
        self.replies.append(weakref.ref(reply))
        eventlet.sleep(3600)

    def is_closed(self, number: int) -> bool:
        try:
            return self._pairs[number][1].recv(1) == b""
        except BlockingIOError:
            return False

    def closed(self) -> list[int]:
        return [number for number in range(len(self._pairs)) if self.is_closed(number)]

    def close(self) -> None:
        for pair in self._pairs:
            for each in pair:
                each.close()


@pytest.fixture
def clients() -> Iterator[Clients]:
    made = Clients()
    yield made
    made.close()


def test_a_new_connection_takes_the_place_of_the_one_that_has_waited_longest(clients):
    for _ in range(MOST):
        clients.connect()
    clients.sends(0, 0)  # it has asked for something meanwhile
    clients.sends(1, None)
    clients.connect()
    clients.connect()
    assert clients.closed() == [2, 3]
    clients.connect()
    assert clients.closed() == [0, 2, 3]


def test_no_part_of_a_reply_waits_for_an_ack(clients):
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as own,
    ):
        assert not own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        clients.pool.spawn(lambda _connection: None, ["192.0.2.1", own, ""])
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_no_server_is_waited_for(clients):
    """The request of a connection that is closed may be far from its turn."""
    for _ in range(10 * MOST):
        last = clients.connect()
        assert not clients.is_closed(last)
    assert clients.closed() == list(range(9 * MOST))


def test_replies_that_nobody_reads_are_dropped_the_oldest_first(clients):
    first, second, third, silent = (clients.connect() for _ in range(MOST))
    for each in (first, second):
        clients.sends(each, UNREAD // 2)
    assert (clients.closed(), clients.pool.unread) == ([], UNREAD)
    clients.sends(third, 1)
    assert (clients.closed(), clients.pool.unread) == ([first], UNREAD // 2 + 1)
    assert not clients.is_closed(silent)


def test_what_was_read_counts_no_more(clients):
    first, second = clients.connect(), clients.connect()
    for _ in range(10):
        for each in (first, second):
            clients.sends(each, UNREAD)
            clients.sends(each, 0)
    assert (clients.closed(), clients.pool.unread) == ([], 0)


def test_one_reply_may_be_longer_than_the_bound(clients):
    number = clients.connect()
    clients.sends(number, 10 * UNREAD)
    assert clients.closed() == []


def test_the_reply_of_a_connection_that_is_closed_is_freed_without_the_garbage_collector(clients):
    first, second = clients.connect(), clients.connect()
    eventlet.sleep(0)  # both are served now
    gc.disable()
    try:
        for each in (first, second):
            clients.sends(each, UNREAD)
        assert clients.closed() == [first]
        assert [reply() is None for reply in clients.replies] == [True, False]
    finally:
        gc.enable()

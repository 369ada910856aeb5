"""A socket that the loop keeps watching between two waits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from eventlet import hubs
from ryu.lib import hub

from fairq_ryu.ryu_compat.watched_socket import WatchedSocket


class Reader:
    """A greenlet that reads a socket; ``seen`` has what came, and the error that ended it."""

    def __init__(self, ours: socket.socket) -> None:
        self.socket, self.watched = ours, WatchedSocket(ours.fileno())
        self.seen: list[Any] = []
        self.busy: hub.Event | None = None  # until it is set
        self.greenlet = hub.spawn(self._run)

    def _run(self) -> None:
        try:
            while True:
                self.watched.wait()
                self.seen.append(self.socket.recv(100))
                if self.busy is not None:
                    self.busy.wait()
        except hubs.IOClosed as error:
            self.seen.append(type(error))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    theirs, ours = socket.socketpair()
    with theirs, ours:
        yield theirs, ours


@pytest.fixture
def reader(ends) -> Iterator[Reader]:
    made = Reader(ends[1])
    turns()  # it waits
    yield made
    hub.kill(made.greenlet)
    made.watched.end()


@pytest.fixture
def registered(monkeypatch) -> list[int]:
    """The descriptors that the loop was asked to watch, or not to watch any more."""
    found: list[int] = []
    loop = hubs.get_hub()
    real = loop.register
    monkeypatch.setattr(loop, "register", lambda fd, new=False: (found.append(fd), real(fd, new)))
    return found


def turns() -> None:
    """A few turns of the loop: what was sent between two sockets of this machine is there at once."""
    for _ in range(4):
        hub.sleep(0)


def send(theirs: socket.socket, data: bytes) -> None:
    theirs.send(data)
    turns()


def test_the_loop_is_asked_once_for_many_reads(ends, registered, reader):
    for data in (b"one", b"two", b"three"):
        send(ends[0], data)
    assert reader.seen == [b"one", b"two", b"three"]
    assert registered.count(ends[1].fileno()) == 1


def test_data_that_nobody_waits_for_does_not_keep_the_loop_busy(ends, registered, reader):
    reader.busy = hub.Event()
    send(ends[0], b"one")
    send(ends[0], b"two")  # while the reader is busy
    assert reader.seen == [b"one"] and registered.count(ends[1].fileno()) == 2, "it is not watched now"
    reader.busy.set()
    turns()
    assert reader.seen == [b"one", b"two"], "nothing is lost"


def test_the_end_of_the_peer_is_seen(ends, reader):
    ends[0].shutdown(socket.SHUT_RDWR)
    turns()
    assert reader.seen[0] == b""


def test_a_descriptor_that_another_socket_has_got_ends_the_wait(ends, reader):
    hubs.get_hub().mark_as_reopened(ends[1].fileno())
    turns()
    assert reader.seen == [hubs.IOClosed]


def test_a_socket_is_not_watched_after_its_end(ends, registered, reader):
    reader.watched.end()
    reader.watched.end()
    assert registered.count(ends[1].fileno()) == 2
    send(ends[0], b"one")
    assert reader.seen == []


def test_a_descriptor_that_another_socket_has_got_meanwhile_is_not_waited_for(ends, reader):
    """The reader was busy."""
    reader.busy = hub.Event()
    send(ends[0], b"one")
    hubs.get_hub().mark_as_reopened(ends[1].fileno())
    turns()
    reader.busy.set()
    turns()
    assert reader.seen == [b"one", hubs.IOClosed]


def test_a_descriptor_that_the_loop_has_given_up_is_watched_again(ends, reader):
    send(ends[0], b"one")
    hubs.get_hub().listeners["read"].pop(ends[1].fileno())  # as it does after an error in a callback
    hub.kill(reader.greenlet)
    reader.watched.end()
    again = hub.spawn(reader.watched.wait)
    turns()
    assert not again.dead
    send(ends[0], b"two")
    assert again.dead

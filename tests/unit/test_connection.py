"""What waits to be sent to a switch goes out together, and what comes is read together."""

from __future__ import annotations

import pytest
from ryu.lib import hub

import fairq_ryu.apps.controller  # noqa: F401 (it is what registers)
from fairq_ryu.apps.connection import JoiningQueue, ReadingAhead, controller


def filled(*items: tuple[bytes, bool]) -> tuple[JoiningQueue, hub.BoundedSemaphore]:
    room = hub.BoundedSemaphore(16)
    queue = JoiningQueue(16, room)
    for item in items:
        room.acquire()
        queue.put(item)
    return queue, room


def test_all_that_waits_is_taken_as_one():
    queue, room = filled((b"one", False), (b"two", False), (b"three", False))
    assert queue.get() == (b"onetwothree", False)
    room.release()  # as Ryu does for what it has got; more than there were would be an error
    assert room.balance == 16
    with pytest.raises(hub.QueueEmpty):
        queue.get(block=False)


def test_nothing_follows_what_ends_the_connection():
    queue, room = filled((b"one", False), (b"last", True), (b"never", False))
    assert queue.get() == (b"onelast", True)
    room.release()
    assert queue.get() == (b"never", False)
    room.release()
    assert room.balance == 16


class Sink:
    """A socket that remembers what was written, a piece a write."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.pieces.append(data)

    def setsockopt(self, *_about: object) -> None: ...
    def settimeout(self, _seconds: float) -> None: ...
    def shutdown(self, _how: int) -> None: ...


def test_a_connection_sends_every_byte_in_order_and_few_times():
    sink = Sink()
    datapath = controller.Datapath(sink, "test")
    sender = hub.spawn(datapath._send_loop)
    for number in range(100):
        datapath.send(number.to_bytes(4))
        assert not sink.pieces  # nobody else had a turn in between
    hub.sleep(0)
    assert b"".join(sink.pieces) == b"".join(number.to_bytes(4) for number in range(100))
    assert len(sink.pieces) == 1
    hub.kill(sender)


def test_what_has_come_is_read_at_once():
    class Source:
        timeout = 5.0

        def recv(self, size: int) -> bytes:
            return bytes(size)

    ahead = ReadingAhead(Source())
    assert len(ahead.recv(8)) > 8
    assert ahead.timeout == 5.0

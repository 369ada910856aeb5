"""What waits to be sent to a switch goes out together."""

from __future__ import annotations

import pytest
from eventlet.green import socket
from ryu.lib import hub

import fairq_ryu.apps.controller  # noqa: F401 (it is what registers)
from fairq_ryu.apps.connection import JoiningQueue, controller


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


def test_a_connection_sends_every_byte_in_order():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    with ours, theirs:
        datapath = controller.Datapath(ours, "test")
        assert isinstance(datapath.send_q, JoiningQueue)
        sender = hub.spawn(datapath._send_loop)
        # More than wait at once, so that some are sent alone and some together.
        for number in range(100):
            datapath.send(number.to_bytes(4))
        received = b""
        while len(received) < 400:
            received += theirs.recv(400)
        assert received == b"".join(number.to_bytes(4) for number in range(100))
        hub.kill(sender)

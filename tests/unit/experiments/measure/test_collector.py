"""For how many bytes a collector wakes."""

import socket

import pytest

from fairq_ryu.experiments.measure import collector
from fairq_ryu.experiments.traffic.bulk import FIRST_READ_BYTES, LARGE_BUFFER
from fairq_ryu.experiments.traffic.flow_sender import MAX_LOWAT_BYTES


class Idle:
    """In place of the loop: nothing happens."""

    def add(self, *_arguments):
        pass


@pytest.fixture
def made(monkeypatch):
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(collector, "listen", lambda _port: listener)
    monkeypatch.setattr(collector, "answer", lambda *_, **__: None)
    monkeypatch.setattr(collector.gc, "disable", lambda: None)
    yield collector.Collector(Idle(), 0)
    listener.close()


def lowat(made, left, buffer):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer // 2)  # the kernel doubles it
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == buffer
        made._await(collector._Arriving(sock), left)
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def test_it_wakes_for_what_is_missing_or_for_what_every_buffer_holds(made):
    assert lowat(made, 0, 100_000) == 1
    assert lowat(made, 5000, 100_000) == 5000
    assert lowat(made, MAX_LOWAT_BYTES, 100_000) == MAX_LOWAT_BYTES


def test_buffers_that_are_small_can_grow(made, monkeypatch):
    monkeypatch.setattr(collector, "LARGE_BUFFER", 200_000)
    assert lowat(made, 10**6, 100_000) == FIRST_READ_BYTES < MAX_LOWAT_BYTES < LARGE_BUFFER
    assert lowat(made, 10**6, 200_000) == MAX_LOWAT_BYTES

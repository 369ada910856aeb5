"""The tracer, sample by sample."""

import socket

import pytest

from fairq_ryu.experiments.measure import tcp_trace
from fairq_ryu.experiments.measure.sock_diag import SocketList
from fairq_ryu.experiments.traffic import tracer
from tests.support.lab import until


class Timers:
    """In place of the loop: a sample is taken when the test wants one."""

    def __init__(self):
        self.due = []

    def call_at(self, _when, action):
        self.due.append(action)

    def sample(self):
        self.due.pop(0)()


class Repeated(SocketList):
    """What the kernel says, and that it has repeated each SYN-ACK three times."""

    def all(self):
        return [each if each.info else each._replace(syn_acks_again=3) for each in super().all()]


@pytest.fixture
def timers(monkeypatch):
    monkeypatch.setattr(tracer, "answer", lambda _re, **_values: None)
    monkeypatch.setattr(tracer, "SocketList", Repeated)
    return Timers()


def test_a_connection_begins_with_its_handshake(timers, tmp_path):
    path = tmp_path / tcp_trace.FILE_NAME
    tracing = tracer.Tracer(timers)
    tracing.command({
        "cmd": "start", "hosts": {"here": None}, "port": "lo", "status": None, "law_port": None,
        "interval_ms": 2, "count": 50, "rate_mbit": 1000, "buffer_bytes": 5000,
    })  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # The kernel waits for data, as it waits for an ACK that was lost.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30)
        with socket.create_connection(listener.getsockname()) as client:
            timers.sample()
            timers.sample()
            client.send(b"x")
            with listener.accept()[0] as accepted:
                accepted.send(b"y")
                acked = lambda: accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)[120]  # noqa: E731
                assert until(acked)
                timers.sample()
                here = (listener.getsockname()[1], client.getsockname()[1])
                tracing.command({"cmd": "end", "path": str(path)})
    flows = tcp_trace.load(path)["flows"]
    (found,) = (each for each in flows if (each["port"], each["peer_port"]) == here)
    assert found["syn_acks_again"] == 3 and found["bytes"] == 1
    assert found["began_ms"] < found["samples"][0][0] and len(found["samples"]) == 1
    (other,) = (each for each in flows if (each["peer_port"], each["port"]) == here)
    assert other["syn_acks_again"] == 0

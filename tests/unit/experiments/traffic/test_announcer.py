import http.client
import io
import json

import pytest

from fairq_ryu.experiments.traffic import announcer as announcing
from fairq_ryu.experiments.traffic.announcer import Announcer
from fairq_ryu.experiments.traffic.workers import RunError

TOKEN = "secret-of-the-run"


class Controller:
    """A controller's REST interface, and every connection to it. No sockets: other tests patch those."""

    def __init__(self):
        self.announced, self.status, self.closes, self.unreachable = [], 201, False, False

    def connection(self, host, port, timeout):
        assert (host, port) == ("127.0.0.1", 8080) and timeout > 0
        return Connection(self)


class Answer(io.BytesIO):
    status = 0


class Connection:
    def __init__(self, controller):
        self._controller = controller
        self._stale = False

    def request(self, method, path, body, headers):
        assert (method, headers["Content-Type"]) == ("POST", "application/json")
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        if self._controller.unreachable:
            raise ConnectionRefusedError("refused")
        if not self._stale:
            self._controller.announced.append((path, json.loads(body)))

    def getresponse(self):
        if self._stale:  # as if the server had closed a kept connection
            raise http.client.RemoteDisconnected("closed")
        self._stale = self._controller.closes
        answer = Answer(b"why\n")
        answer.status = self._controller.status
        return answer

    def close(self):
        self._stale = False


@pytest.fixture
def controller(monkeypatch):
    made = Controller()
    monkeypatch.setattr(announcing.http.client, "HTTPConnection", made.connection)
    return made


def announce(announcer, sport=40000):
    announcer.announce("10.0.0.1", "10.0.0.9", sport, 5001, 4000, 0.2)


@pytest.mark.parametrize("closes", [False, True])
def test_flows_are_announced(controller, closes):
    controller.closes = closes
    announcer = Announcer(8080, TOKEN)
    announce(announcer)
    announce(announcer, 40001)
    assert announcer.accepted == 2
    body = {
        "src": "10.0.0.1",
        "dst": "10.0.0.9",
        "sport": 40000,
        "dport": 5001,
        "size": 4000,
        "deadline": 0.2,
    }
    assert controller.announced == [
        ("/v1/announcements", body), ("/v1/announcements", {**body, "sport": 40001}),
    ]  # fmt: skip


@pytest.mark.parametrize("status", [404, 405, 409, 501])
def test_a_controller_that_accepts_no_announcements_is_asked_once(controller, status):
    controller.status = status
    announcer = Announcer(8080, TOKEN)
    announce(announcer)
    announce(announcer)
    assert (announcer.accepted, len(controller.announced)) == (0, 1)


def test_a_refusal_fails_the_run(controller):
    controller.status = 400
    with pytest.raises(RunError, match=r"refused an announcement \(400\): why"):
        announce(Announcer(8080, TOKEN))


def test_a_controller_that_stops_accepting_announcements_fails_the_run(controller):
    announcer = Announcer(8080, TOKEN)
    announce(announcer)
    controller.status = 404
    with pytest.raises(RunError, match="404"):
        announce(announcer)


def test_without_a_controller_nothing_is_announced():
    announcer = Announcer(None)
    announce(announcer)
    assert announcer.accepted == 0


def test_an_unreachable_controller_fails_the_run(controller):
    controller.unreachable = True
    with pytest.raises(RunError, match="cannot announce"):
        announce(Announcer(8080, TOKEN))

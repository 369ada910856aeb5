import http.server
import json
import threading

import pytest

from fairq_ryu.experiments.announcing import Announcer
from fairq_ryu.experiments.workers import RunError


@pytest.fixture
def controller():
    """A server that answers with the status asked for, and keeps what it was told."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.told.append((self.path, body))
            self.send_response(self.server.status)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"why\n")
            self.close_connection = self.server.closes

        def log_message(self, *_arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.told, server.status, server.closes = [], 201, False
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def announce(announcer, sport=40000):
    announcer.announce("10.0.0.1", "10.0.0.9", sport, 5001, 4000, 0.2)


@pytest.mark.parametrize("closes", [False, True])
def test_flows_are_announced(controller, closes):
    controller.closes = closes
    announcer = Announcer(controller.server_port)
    announce(announcer)
    announce(announcer, 40001)
    announcer.close()
    assert announcer.taken == 2
    body = {
        "src": "10.0.0.1",
        "dst": "10.0.0.9",
        "sport": 40000,
        "dport": 5001,
        "size": 4000,
        "deadline": 0.2,
    }
    assert controller.told == [
        ("/v1/announcements", body), ("/v1/announcements", {**body, "sport": 40001}),
    ]  # fmt: skip


@pytest.mark.parametrize("status", [404, 405, 501])
def test_who_takes_none_is_not_asked_again(controller, status):
    controller.status = status
    announcer = Announcer(controller.server_port)
    announce(announcer)
    announce(announcer)
    assert (announcer.taken, len(controller.told)) == (0, 1)


def test_a_refusal_fails_the_run(controller):
    announcer = Announcer(controller.server_port)
    controller.status = 400
    with pytest.raises(RunError, match=r"refused an announcement \(400\): why"):
        announce(announcer)
    announcer.close()


def test_one_that_took_some_may_not_stop_taking_them(controller):
    announcer = Announcer(controller.server_port)
    announce(announcer)
    controller.status = 404
    with pytest.raises(RunError, match="404"):
        announce(announcer)
    announcer.close()


def test_without_a_controller_nobody_is_told():
    announcer = Announcer(None)
    announce(announcer)
    assert announcer.taken == 0


def test_a_controller_that_is_gone_fails_the_run(controller):
    announcer = Announcer(controller.server_port)
    controller.shutdown()
    controller.server_close()
    with pytest.raises(RunError, match="cannot announce"):
        announce(announcer)

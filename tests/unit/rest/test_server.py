"""The web server itself, on 127.0.0.1: streams, limits; in its own process."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import eventlet
import pytest

from fairq_ryu.rest import cached_reply, server
from fairq_ryu.rest.cached_reply import CachedReply
from fairq_ryu.rest.connections import CONNECTIONS
from fairq_ryu.rest.schema.state import EventRow, Live
from fairq_ryu.ryu_compat.runtime import hub
from tests.support.restsite import TOKEN

ROOT = Path(__file__).resolve().parents[3]
STREAMS = 4


@pytest.fixture(scope="module")
def process() -> Iterator[subprocess.Popen[str]]:
    made = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.support.restsite", "0", f"streams={STREAMS}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield made
        assert made.poll() is None, "the server has ended"
    finally:
        made.kill()
        made.wait()


@pytest.fixture(scope="module")
def address(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stdout is not None
    parts = urlsplit(process.stdout.readline().strip())
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


def described(address: tuple[str, int], request: bytes, seconds: float = 5.0) -> bytes:
    """All received bytes until the server closes the connection, or pauses after it has begun to answer."""
    with socket.create_connection(address, seconds) as connection:
        connection.sendall(request)
        found = b""
        with contextlib.suppress(TimeoutError):
            found = connection.recv(1 << 16)
            connection.settimeout(0.3)
            while data := connection.recv(1 << 16):
                found += data
        return found


def head(*lines: str, path: str = "/v1/ports") -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode()


HOST = "Host: 127.0.0.1"


def test_the_server_goes_on_after_a_time_without_descriptors(address, process):
    """Eventlet's own ends for good when it cannot accept."""
    server = process.pid
    used = {int(each.name) for each in Path(f"/proc/{server}/fd").iterdir()}
    free = next(number for number in range(len(used) + 1) if number not in used)
    before = resource.prlimit(server, resource.RLIMIT_NOFILE)
    resource.prlimit(server, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        with socket.create_connection(address, 5) as waiting:
            time.sleep(0.3)
            resource.prlimit(server, resource.RLIMIT_NOFILE, before)
            waiting.sendall(head(HOST))
            assert waiting.recv(1 << 16).startswith(b"HTTP/1.1 200")
    finally:
        resource.prlimit(server, resource.RLIMIT_NOFILE, before)


def test_clients_that_do_not_read_keep_nobody_out(address, process):
    """As many as there may be connections, and as many again; each asks for more than its sockets hold."""
    with contextlib.ExitStack() as stack:
        for _ in range(2 * CONNECTIONS):
            hog = stack.enter_context(socket.socket())
            hog.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            hog.connect(address)
            hog.sendall(head(HOST, path="/openapi.json") * 50)
        for path in ("/v1/ports", "/v1/flows"):
            assert described(address, head(HOST, path=path)).startswith(b"HTTP/1.1 200 OK")


def test_a_head_of_a_stream_is_no_stream(address):
    """Its connection goes on, and makes room like any other."""
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS + 1):
            hog = stack.enter_context(socket.create_connection(address, 5))
            hog.sendall(head(HOST, path="/v1/live").replace(b"GET", b"HEAD"))
            assert hog.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
        assert described(address, head(HOST)).startswith(b"HTTP/1.1 200 OK")


# Requests


def test_one_connection_serves_several_requests(address):
    connection = http.client.HTTPConnection(*address, timeout=5)
    for path in ("/v1/ports", "/v1/ports", "/v1/links", "/v1/ports", "/v1/nothing", "/v1/ports"):
        connection.request("GET", path)
        with connection.getresponse() as answer:
            assert json.loads(answer.read())
    connection.close()


def test_pipelined_and_split_requests(address):
    whole = head(HOST)
    answers = described(address, whole * 5)
    assert answers.count(b"HTTP/1.1 200 OK") == 5
    with socket.create_connection(address, 3) as connection:
        for piece in (whole[:7], whole[7:40], whole[40:]):
            connection.sendall(piece)
            time.sleep(0.05)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    ("request_", "status", "detail"),
    [
        (head("Host: evil.example"), 403, "not called"),
        (head(HOST, "Connection: close"), 200, ""),
        (head(HOST, path="/v1/ports?limit=1"), 400, "unknown parameter 'limit'"),
        (head(HOST, "Content-Length: 5") + b"hello", 200, ""),
        (head(HOST, "Content-Length: x"), 400, "Content-Length: 'x' is not a number of bytes"),
        (head(HOST, "Content-Length: -1"), 400, "Content-Length: '-1' is no"),
        (head(HOST, "Content-Length: +5") + b"hello", 400, "Content-Length: '+5' is no"),
        (head(HOST, "Content-Length:"), 400, "Content-Length: '' is no"),
        (head(HOST, f"Content-Length: {'9' * 5000}"), 400, "Content-Length: '999"),
        (head(HOST, "Content-Length: 5", "Content-Length: 6") + b"hello", 400, "more than once"),
        (head(HOST, "Content-Length: 5", "Transfer-Encoding: chunked"), 400, "Transfer-Encoding"),
        (b"NONSENSE\r\n\r\n", 400, "NONSENSE"),
        (b"GET /v1/ports HTTP/9.9\r\n\r\n", 400, "9.9"),
        (b"GET /v1/ports HTTP/x\r\n\r\n", 400, "HTTP/x"),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414, "longer than"),
        (head(HOST, "X: " + "x" * 9000), 431, "header"),
        (head(HOST, *(f"X: {'x' * 900}" for _ in range(80))), 431, "headers"),
        (head(HOST, *(f"X-{n}: 1" for n in range(150))), 431, "headers"),
        (b"POST /v1/ports HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405, "can only be read"),
        (
            b"OPTIONS /v1/policy HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://a\r\n\r\n",
            405,
            "takes only GET, HEAD, PATCH",
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400, ""),
    ],
)
def test_requests_of_all_sorts(address, request_, status, detail):
    """Violations of HTTP itself are answered with a problem document, too."""
    answer = described(address, request_)
    if answer or status != 400 or detail:
        lines, _, body = answer.partition(b"\r\n\r\n")
        assert lines.startswith(b"HTTP/1.1 %d " % status), answer
        assert b"access-control" not in answer.lower()
        if status != 200:
            assert b"\r\nContent-Type: application/problem+json\r\n" in lines
            document = json.loads(body)
            assert set(document) == {"type", "title", "status", "detail"}
            assert document["status"] == status and detail in document["detail"]
            assert len(document["detail"]) < 300
    assert b"Traceback" not in answer
    assert b" 200 " in described(address, head(HOST))


def test_head_gets_no_body_of_a_problem_of_http(address):
    answer = described(address, head(HOST, "Content-Length: x").replace(b"GET", b"HEAD", 1))
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("more", ["Content-Length: 99999999999", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("token", ["", f"Authorization: Bearer {TOKEN}"])
def test_an_unexpected_body_is_not_read(address, more, token):
    lines = ["POST /v1/announcements HTTP/1.1", HOST, "Content-Type: application/json", more]
    request = "\r\n".join([*lines, *([token] if token else []), "", ""]).encode()
    with socket.create_connection(address, 3) as connection:
        connection.sendall(request)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(1 << 16):  # until it is closed, not until a timeout
                found += data
    assert found.split(b" ")[1] in ({b"411", b"413"} if token else {b"401"})
    assert b"Connection: close" in found


def test_trailers_are_no_second_request(address):
    """Nor is what follows them: the server closes the connection after a body of unknown length."""
    other = head(HOST)
    lines = ["POST /v1/ports HTTP/1.1", HOST, "Transfer-Encoding: chunked", "", "0"]
    answer = described(address, "\r\n".join([*lines, ""]).encode() + other + other)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 405 ") and b"\r\nConnection: close\r\n" in answer


# Shared answers


def test_each_request_has_a_turn_of_the_loop_for_itself():
    turn, turns_of_requests = itertools.count(), []
    now = [0]

    def count() -> None:
        while True:
            now[0] = next(turn)
            eventlet.sleep(0)

    def answer(_environ: Any, start: Any) -> list[bytes]:
        turns_of_requests.append(now[0])
        start("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    listening = eventlet.listen(("127.0.0.1", 0))
    greenlets = [eventlet.spawn(server.serve, listening, answer), eventlet.spawn(count)]
    try:
        made = [eventlet.connect(listening.getsockname()) for _ in range(3)]
        for each in made:
            each.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
        for each in made:
            replies = b""
            while replies.count(b"\r\n\r\nok") < 2:
                replies += each.recv(1 << 16)
            each.close()
    finally:
        for greenlet in greenlets:
            greenlet.kill()
    assert len(turns_of_requests) == len(set(turns_of_requests)) == 6


def test_an_answer_is_made_once_for_simultaneous_requests():
    now, made = [0.0], []

    def make() -> bytes:
        made.append(now[0])
        return b"%d" % len(made)

    answer = CachedReply(make, lambda: now[0])
    assert answer.get() == answer.get() == b"1"
    now[0] = cached_reply.KEEP * 0.9
    assert answer.get() == b"1"
    now[0] = cached_reply.KEEP * 1.1
    assert answer.get() == b"2"
    assert len(made) == 2


def test_slow_answers_are_made_less_often():
    now, made, takes = [0.0], [], [0.0]

    def make() -> bytes:
        made.append(1)
        now[0] += takes[0]
        return b""

    for takes[0], keeps in ((0.01, 0.1), (1.0, cached_reply.MAX_AGE)):
        answer = CachedReply(make, lambda: now[0])
        made.clear()
        answer.get()
        now[0] += keeps * 0.9
        answer.get()
        assert len(made) == 1
        now[0] += keeps * 0.2
        answer.get()
        assert len(made) == 2


def test_an_answer_that_failed_is_made_again():
    found: list[Any] = [ValueError("no"), b"yes"]

    def make() -> bytes:
        each = found.pop(0)
        if isinstance(each, Exception):
            raise each
        return bytes(each)

    answer = CachedReply(make)
    with pytest.raises(ValueError, match="no"):
        answer.get()
    assert answer.get() == b"yes"


def test_a_reply_whose_maker_is_killed_is_made_by_one_that_waits() -> None:
    """The oldest connection is closed when there are too many: that concerns nobody else."""
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        hub.sleep(30 if len(made) == 1 else 0)
        return b"yes"

    answer, found = CachedReply(make), []
    first = hub.spawn(answer.get)
    others = [hub.spawn(lambda: found.append(answer.get())) for _ in range(3)]
    hub.sleep(0)
    first.kill()
    hub.joinall(others)
    assert found == [b"yes"] * 3 and len(made) == 2


# Streams


class Reader:
    """A reader of server-sent events."""

    def __init__(self, address: tuple[str, int], path: str, **headers: str) -> None:
        self.connection = http.client.HTTPConnection(*address, timeout=5)
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **headers})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def frames(self, count: int) -> list[dict[str, str]]:
        found: list[dict[str, str]] = []
        frame: dict[str, str] = {}
        while len(found) < count:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            if line == "\n":
                found += [frame] if "data" in frame else []
                frame = {}
            elif not line.startswith(":"):
                name, _, value = line.rstrip("\n").partition(": ")
                frame[name] = value
        return found

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


@pytest.fixture
def read(address):
    readers: list[Reader] = []

    def read(path: str, **headers: str) -> Reader:
        readers.append(Reader(address, path, **headers))
        return readers[-1]

    yield read
    for reader in readers:
        reader.close()
    settle(address)


def settle(address) -> None:
    """Wait until the server has noticed that all readers have disconnected."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        probes = [Reader(address, "/v1/events") for _ in range(STREAMS)]
        fine = all(probe.status == 200 for probe in probes)
        for probe in probes:
            probe.close()
        if fine:
            return
        time.sleep(0.05)
    raise AssertionError("streams of readers that have gone stay open")


def test_events_as_they_happen(read):
    reader = read("/v1/events")
    assert reader.status == 200
    assert reader.answer.headers["Content-Type"] == "text/event-stream"
    for frame in reader.frames(3):
        row = json.loads(frame["data"])
        EventRow.model_validate(row)
        assert (frame["event"], frame["id"].split("@")[0]) == (row["kind"], str(row["id"]))


def test_events_of_one_kind(read):
    frames = read("/v1/events?kind=loss").frames(2)
    assert {frame["event"] for frame in frames} == {"loss"}


def test_a_reconnected_reader_gets_the_missed_events(read):
    first = read("/v1/events?since=0").frames(4)
    assert first[0]["id"].startswith("1@")
    again = read("/v1/events", **{"Last-Event-ID": first[1]["id"]}).frames(2)
    assert [frame["id"] for frame in again] == [first[2]["id"], first[3]["id"]]
    # A number of an earlier controller, also if this one has as many events.
    of_another_life = read("/v1/events", **{"Last-Event-ID": "2@decaf"}).frames(1)
    assert of_another_life[0]["id"] == first[0]["id"]


def test_the_state_is_sent_periodically(read):
    frames = read("/v1/live").frames(8)
    states = [json.loads(frame["data"]) for frame in frames if frame["event"] == "state"]
    assert len(states) >= 2 and {"event"} == {frame["event"] for frame in frames} - {"state"}
    for state in states:
        Live.model_validate(state)
    assert 0.3 < states[1]["time"] - states[0]["time"] < 30
    for frame in frames:
        if frame["event"] == "event":
            EventRow.model_validate(json.loads(frame["data"]))


def test_the_number_of_streams_is_limited(address, read):
    readers = [read("/v1/live" if number % 2 else "/v1/events") for number in range(STREAMS)]
    assert {reader.status for reader in readers} == {200}
    refused = read("/v1/live")
    assert refused.status == 429
    document = json.loads(refused.answer.read())
    assert f"{STREAMS} streams" in document["detail"] and refused.answer.headers["Retry-After"]
    assert described(address, head(HOST)).startswith(b"HTTP/1.1 200 OK")
    readers[0].close()
    settle_one = time.monotonic() + 5
    while read("/v1/events").status != 200:
        assert time.monotonic() < settle_one, "a stream of a reader that has gone stays open"
        time.sleep(0.05)


def test_a_reader_that_does_not_read_delays_no_other(address, read):
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(address)
        lazy.sendall(head(HOST, path="/v1/live"))
        assert len(read("/v1/live").frames(3)) == 3
        assert described(address, head(HOST)).startswith(b"HTTP/1.1 200 OK")


def test_many_at_once(address):
    counts: list[int] = []

    def ask() -> None:
        connection = http.client.HTTPConnection(*address, timeout=10)
        fine = 0
        for _ in range(50):
            connection.request("GET", "/v1/ports")
            with connection.getresponse() as answer:
                fine += answer.status == 200 and bool(json.loads(answer.read())["ports"])
        connection.close()
        counts.append(fine)

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [50] * 10


def test_the_headers_of_a_stream_are_sent_at_once(address):
    """The headers come at once, before anything happens."""
    with socket.create_connection(address, 3) as connection:
        connection.sendall(head(HOST, "Accept: text/event-stream", path="/v1/events?kind=policy"))
        assert select.select([connection], [], [], 3)[0]
        assert connection.recv(15) == b"HTTP/1.1 200 OK"

"""The audit asks a service for every release, and tells what is explained, new, or unknown."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from packages import audit, known_faults, lock

# As the service answers: ids for each query, and advisories by id.
RYU = {"id": "GHSA-59p2-v62x-gxj8", "aliases": ["CVE-2024-34489"], "summary": "OFPHello loops"}
RYU_AGAIN = {
    "id": "PYSEC-2026-1877",
    "aliases": ["CVE-2024-34489", "GHSA-59p2-v62x-gxj8"],
    "details": "loops",
}
FIXED = {"id": "GHSA-hw6f-rjfj-j7j7", "aliases": ["CVE-2025-58068"], "summary": "trailers"}
OTHER = {"id": "GHSA-aaaa-bbbb-cccc", "details": "Something new.\nMore of it."}
WITHDRAWN = {"id": "GHSA-dddd-eeee-ffff", "withdrawn": "2026-01-01T00:00:00Z", "summary": "a mistake"}
ADVISORIES = {each["id"]: each for each in (RYU, RYU_AGAIN, FIXED, OTHER, WITHDRAWN)}


class Service:
    """A service that has these advisories about packages, in pages of one."""

    def __init__(self, about):
        self.about, self.queries = about, []

    def __call__(self, path, question):
        if question is None:
            return ADVISORIES[path.removeprefix("/v1/vulns/")]
        assert path == "/v1/querybatch"
        self.queries += question["queries"]
        results = []
        for query in question["queries"]:
            assert query["package"]["ecosystem"] == "PyPI"
            page = int(query.get("page_token", "0"))
            ids = self.about.get((query["package"]["name"], query["version"]), [])
            result = {"vulns": [{"id": each} for each in ids[page : page + 1]]} if ids else {}
            results.append(result | ({"next_page_token": str(page + 1)} if page + 1 < len(ids) else {}))
        return {"results": results}


@pytest.fixture
def served():
    """Starts a service; returns its address."""
    started = []

    def start(service):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(None)

            def do_POST(self):
                self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def answer(self, question):
                body = json.dumps(service(self.path, question)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def test_every_release_of_every_lock_is_asked_for_and_ryu_by_its_own_name(served, capsys):
    service = Service({})
    assert audit.main(["--url", served(service)]) == audit.FINE
    asked = {(query["package"]["name"], query["version"]) for query in service.queries}
    locked = {
        (pin.key, pin.version)
        for name in lock.LOCKS.values()
        for pin in lock.locked((lock.ROOT / name).read_text(encoding="utf-8"))
    }
    assert asked == locked | {("ryu", "4.34")} and len(service.queries) == len(asked)
    assert f"{len(asked)} releases: 0 published faults" in capsys.readouterr().out


def test_a_fault_that_is_explained_is_told_once_under_all_its_names(served, capsys):
    service = Service({("ryu", "4.34"): [RYU["id"], RYU_AGAIN["id"], WITHDRAWN["id"]]})
    assert audit.main(["--url", served(service)]) == audit.FINE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "known ryu 4.34, as c65ryu 5.0.0: GHSA-59p2-v62x-gxj8, CVE-2024-34489: OFPHello loops"
    assert len(lines) == 2


def test_a_fault_that_is_not_explained_ends_with_a_code_of_its_own(served, capsys):
    (six,) = [each for each in audit.releases(lock.ROOT) if each.name == "six"]
    service = Service({(six.name, six.version): [OTHER["id"]], ("ryu", "4.34"): [RYU["id"]]})
    assert audit.main(["--url", served(service)]) == audit.NEW
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == f"NEW   {six.as_pinned}: GHSA-aaaa-bbbb-cccc: Something new."


def test_a_fault_that_is_said_to_be_fixed_but_is_not_is_new():
    release = audit.Release("eventlet", "0.40.3", "eventlet 0.40.3")
    (found,) = audit.audit([release], known_faults.read(), Service({("eventlet", "0.40.3"): [FIXED["id"]]}))
    assert found.explained is None


def test_a_service_that_does_not_answer_is_no_audit(capsys):
    assert audit.main(["--url", "http://127.0.0.1:1"]) == audit.NO_ANSWER
    said = capsys.readouterr()
    assert said.out == "" and "nothing is known: http://127.0.0.1:1 does not answer" in said.err


@pytest.mark.parametrize("answer", [{}, {"results": []}, {"results": [None]}, []])
def test_an_answer_of_another_form_is_no_audit(served, answer, capsys):
    assert audit.main(["--url", served(lambda *_: answer)]) == audit.UNREADABLE
    assert "answers in another form" in capsys.readouterr().err


def test_locks_that_cannot_be_read_are_no_audit(tmp_path, capsys):
    assert audit.main([], tmp_path) == audit.UNREADABLE
    assert "make lock" in capsys.readouterr().err

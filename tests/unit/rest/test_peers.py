"""Answers for the whole fabric, from those of its controllers."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.rest import peers as module
from fairq_ryu.rest.peers import OWN, SCOPE, Peer, Peers, Said, rows, whole, whole_page
from fairq_ryu.rest.reply import RequestRefused, encode
from fairq_ryu.rest.tenants import joined

URL = "http://10.0.0.{}:8080"


class Fabric:
    """Controllers by number, and what they answer; an exception is raised."""

    def __init__(self, monkeypatch, answers, silent=()):
        self.answers, self.asked = answers, []
        listed = [Peer(f"c{n}", URL.format(n), n in silent) for n in answers]
        self.peers = Peers(lambda: listed)
        monkeypatch.setattr(module, "request", self.request)

    def request(self, address, method, target, headers, body=None):
        number = int(address.split(":")[1].rpartition(".")[2])
        self.asked.append((number, method, target, dict(headers), body))
        found = self.answers[number]
        found = found(target) if callable(found) else found
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Said) else Said(200, encode(found), False)


def test_lists_are_joined_in_the_order_of_names_and_who_is_missing_is_named(monkeypatch):
    answers = {3: {"hosts": [3]}, 1: {"hosts": [1]}, 2: OSError("no way"), 4: {}, 5: Said(503, b"", False)}
    fabric = Fabric(monkeypatch, answers, silent={4})
    found = whole(fabric.peers, "/v1/hosts", {"hosts": [0]}, rows("hosts"))
    assert found == {
        "hosts": [0, 1, 3],
        "missing": [
            {"controller": "c2", "reason": "http://10.0.0.2:8080: no way"},
            {"controller": "c4", "reason": "it is silent"},
            {"controller": "c5", "reason": "it has answered with status 503"},
        ],
    }
    assert sorted(number for number, *_ in fabric.asked) == [1, 2, 3, 5]


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff"])
def test_an_answer_that_makes_no_sense_is_missing(monkeypatch, body):
    fabric = Fabric(monkeypatch, {1: Said(200, body, False)})
    found = whole(fabric.peers, "/v1/hosts", {"hosts": []}, rows("hosts"))
    assert [each["controller"] for each in found["missing"]] == ["c1"]


sizes = st.lists(st.integers(0, 6), min_size=1, max_size=4)


@given(sizes, st.integers(1, 12), st.integers(0, 20))
def test_pages_are_parts_of_one_list(sizes, limit, offset):
    lists = [[f"{number}-{row}" for row in range(size)] for number, size in enumerate(sizes)]

    def part(number: int, limit: int, offset: int) -> dict:
        return {"flows": lists[number][offset : offset + limit], "total": len(lists[number])}

    def answer(number):
        def answered(target):
            query = dict(word.split("=") for word in target.partition("?")[2].split("&"))
            assert set(query) == {"limit", "offset", "src"}  # what is None is left out
            return part(number, int(query["limit"]), int(query["offset"]))

        return answered

    with pytest.MonkeyPatch.context() as patch:
        fabric = Fabric(patch, {number: answer(number) for number in range(1, len(sizes))})
        query = {"limit": limit, "offset": offset, "src": "10.0.0.1", "state": None}
        found = whole_page(fabric.peers, "/v1/flows", query, "flows", lambda *where: part(0, *where))
    flat: Iterable[str] = [row for each in lists for row in each]
    assert found["flows"] == flat[offset : offset + limit]
    assert (found["total"], found["limit"], found["offset"]) == (len(flat), limit, offset)
    assert found["missing"] == []


def test_a_change_goes_to_the_one_that_knows_the_port(monkeypatch):
    elsewhere = Said(422, b"{}", True)
    fabric = Fabric(monkeypatch, {1: elsewhere, 2: Said(200, b'{"done": 1}', False), 3: elsewhere})
    environ = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/v1/far-queues/a b/eth0",
        "HTTP_AUTHORIZATION": "Bearer secret",
    }
    refused = RequestRefused(422, "there is no bridge 'a b' here")
    reply = fabric.peers.pass_on(environ, b'{"rate": 1}', refused)
    assert (reply.status, reply.body) == (200, b'{"done": 1}')
    (_, *first), (_, *second) = fabric.asked
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
    assert first == second == ["PUT", "/v1/far-queues/a%20b/eth0", headers, b'{"rate": 1}']


def test_what_nobody_knows_is_refused_and_who_was_not_asked_is_named(monkeypatch):
    refused = RequestRefused(422, "there is no bridge 'x' here")
    fabric = Fabric(monkeypatch, {1: Said(422, b"{}", True)})
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/v1/disable"}
    with pytest.raises(RequestRefused) as raised:
        fabric.peers.pass_on(environ, b"{}", refused)
    assert raised.value is refused
    fabric = Fabric(monkeypatch, {1: Said(422, b"{}", True), 2: OSError("gone"), 3: {}}, silent={3})
    with pytest.raises(RequestRefused, match=r"'x' here; not asked: c2 \(gone\), c3 \(it is silent\)"):
        fabric.peers.pass_on(environ, b"{}", refused)


def test_the_real_request_says_its_scope(monkeypatch):
    sent = {}

    class Connection:
        def __init__(self, host, port, timeout):
            sent["to"] = host, port

        def request(self, method, target, body, headers):
            sent["headers"] = headers

        def getresponse(self):
            raise OSError("no answer")

        def close(self):
            sent["closed"] = True

    monkeypatch.setattr(module.http.client, "HTTPConnection", Connection)
    with pytest.raises(OSError, match="no answer"):
        module.request("http://[fd00::1]:8080", "GET", "/v1/ports", {"A": "b"})
    assert sent == {"to": ("fd00::1", 8080), "headers": {"A": "b", SCOPE: OWN}, "closed": True}


def test_a_tenant_has_what_it_has_at_all_controllers():
    def row(name, flows, ports):
        return {
            "name": name,
            "hosts": [],
            "weight": 1,
            "flows": flows,
            "ports": ports,
            "goodput_bps": 10 * flows,
            "bytes": 100 * flows,
            "floor_broken": flows,
        }

    found = joined(
        [
            {"tenants": [row("red", 1, ["a"]), row("others", 2, [])]},
            {"tenants": [row("blue", 1, ["b"]), row("red", 4, ["c"]), row("others", 3, ["d"])]},
        ]
    )
    assert found["tenants"] == [row("blue", 1, ["b"]), row("red", 5, ["a", "c"]), row("others", 5, ["d"])]

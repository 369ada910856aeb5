"""Answers for the whole fabric, from those of its controllers."""

from collections.abc import Iterable
from http.client import BadStatusLine

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.lib import hub

from fairq_ryu import client
from fairq_ryu.control.operations import far_control
from fairq_ryu.control.ownership import owners
from fairq_ryu.rest import cached_reply
from fairq_ryu.rest import peers as module
from fairq_ryu.rest.peers import OWN, SCOPE, Peer, Peers, Said, Unanswered, rows, whole, whole_page
from fairq_ryu.rest.reply import RequestRefused, encode
from fairq_ryu.rest.tenants import joined
from tests.support.restsite import RestSite

URL = "http://10.0.0.{}:8080"


class Fabric:
    """Controllers by number, and what they answer; an exception is raised."""

    def __init__(self, monkeypatch, answers, silent=()):
        self.answers, self.asked, self.timeouts = answers, [], set()
        listed = [Peer(f"c{n}", URL.format(n), n in silent) for n in answers]
        self.peers = Peers(lambda: listed)
        monkeypatch.setattr(module, "request", self.request)

    def request(self, address, method, target, headers, body=None, timeout=None):
        self.timeouts.add(timeout)
        number = int(address.split(":")[1].rpartition(".")[2])
        self.asked.append((number, method, target, dict(headers), body))
        found = self.answers[number]
        found = found(target) if callable(found) else found
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Said) else Said(200, encode(found), False)


def test_ports_are_joined_once_for_requests_within_a_short_time(monkeypatch):
    monkeypatch.setattr(cached_reply, "KEEP", 60.0)
    fabric, site = Fabric(monkeypatch, {1: {"ports": ["another's"]}}), RestSite()
    site.service.peers = fabric.peers
    first, second = (site.ask("/v1/ports").json for _ in range(2))
    assert first == second and first["ports"][-1] == "another's" and len(first["ports"]) > 1
    assert len(fabric.asked) == 1


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


def test_as_many_are_asked_at_once_as_there_are_turns(monkeypatch):
    under_way, most = 0, 0

    def slow(_):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        hub.sleep(0)
        under_way -= 1
        return {"hosts": [1]}

    numbers = range(1, 3 * module.AT_ONCE)
    fabric = Fabric(monkeypatch, dict.fromkeys(numbers, slow))
    questions = [hub.spawn(whole, fabric.peers, "/v1/hosts", {"hosts": []}, rows("hosts")) for _ in range(3)]
    for each in questions:
        found = each.wait()
        assert found["missing"] == [] and len(found["hosts"]) == len(numbers)
    assert most == module.AT_ONCE and len(fabric.asked) == 3 * len(numbers)


def test_a_question_whose_turn_does_not_come_is_missing_and_does_not_keep_a_turn(monkeypatch):
    monkeypatch.setattr(module, "_TURN", 0.01)
    never = hub.Event()

    def stands(_):
        never.wait()
        return {"hosts": [1]}

    fabric = Fabric(monkeypatch, {1: stands})
    (peer,) = fabric.peers.listed()
    asked = [hub.spawn(fabric.peers.ask, peer, "/v1/hosts") for _ in range(module.AT_ONCE)]
    hub.sleep(0)
    for _ in range(2):
        found = whole(fabric.peers, "/v1/hosts", {"hosts": [0]}, rows("hosts"))
        assert found["hosts"] == [0]
        assert found["missing"][0]["reason"].startswith("not asked: 8 questions to controllers take longer")
    never.set()
    for each in asked:
        assert each.wait() == {"hosts": [1]}
    fabric.answers[1] = ValueError("x")  # what fails gives its turn back, too
    for _ in range(2 * module.AT_ONCE):
        assert fabric.peers.ask(peer, "/v1/hosts") == "http://10.0.0.1:8080: x"


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
    assert fabric.timeouts == {module._CHANGE_TIMEOUT}
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


def test_who_may_have_the_change_is_named_and_nobody_else_is_asked(monkeypatch):
    elsewhere, done = Said(422, b"{}", True), Said(200, b"{}", False)
    fabric = Fabric(monkeypatch, {1: elsewhere, 2: Unanswered("timed out"), 3: done})
    environ = {"REQUEST_METHOD": "PUT", "PATH_INFO": "/v1/far-queues/br1/eth0"}
    with pytest.raises(RequestRefused, match=r"c2 was asked, and has not answered \(timed out\)") as raised:
        fabric.peers.pass_on(environ, b"{}", RequestRefused(422, "there is no bridge 'br1' here"))
    assert raised.value.status == 504 and raised.value.headers == {}
    assert [number for number, *_ in fabric.asked] == [1, 2]


def test_whoever_waits_for_a_change_waits_longer_than_it_may_take():
    longest = far_control._ANSWER_S + 2 * owners._STORING
    assert longest < module._CHANGE_TIMEOUT
    assert module._TIMEOUT + module._CHANGE_TIMEOUT < client.CHANGE_TIMEOUT


class Connection:
    """In place of a connection; ``fails`` are the exceptions of its steps."""

    def __init__(self, fails):
        self.fails, self.did, self.sock = fails, [], self

    def __call__(self, host, port, timeout):
        self.did.append((host, port, timeout))
        return self

    def settimeout(self, timeout):
        self.did.append(timeout)

    def connect(self):
        self._step("connect")

    def request(self, method, target, body, headers):
        self._step("request", headers)

    def getresponse(self):
        self._step("getresponse")

    def close(self):
        self._step("close")

    def _step(self, *step):
        self.did.append(step)
        if step[0] in self.fails:
            raise self.fails[step[0]]


@pytest.mark.parametrize(
    ("step", "error", "kind", "words"),
    [
        ("connect", TimeoutError("timed out"), TimeoutError, "timed out"),
        ("connect", ConnectionRefusedError("refused"), ConnectionRefusedError, "refused"),
        ("request", ConnectionResetError("reset"), Unanswered, "reset"),
        ("getresponse", TimeoutError("timed out"), Unanswered, "timed out"),
        ("getresponse", BadStatusLine("?"), Unanswered, r"\?"),
        ("getresponse", TimeoutError(), Unanswered, "TimeoutError"),
    ],
)
def test_the_real_request_says_its_scope_and_whether_it_was_sent(monkeypatch, step, error, kind, words):
    connection = Connection({step: error})
    monkeypatch.setattr(module.http.client, "HTTPConnection", connection)
    with pytest.raises(OSError, match=words) as raised:
        module.request("http://[fd00::1]:8080", "GET", "/v1/ports", {"A": "b"}, timeout=7.0)
    assert type(raised.value) is kind
    all_steps = [
        ("fd00::1", 8080, module._TIMEOUT),
        ("connect",),
        7.0,
        ("request", {"A": "b", SCOPE: OWN}),
        ("getresponse",),
    ]
    failed = next(at for at, each in enumerate(all_steps) if isinstance(each, tuple) and each[0] == step)
    assert connection.did == [*all_steps[: failed + 1], ("close",)]


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

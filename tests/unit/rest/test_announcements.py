"""Announcing flows over REST, called as a WSGI application: which requests are accepted, which are refused,
and from which clients.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import webob
from hypothesis import example, given
from hypothesis import strategies as st
from ryu.app.wsgi import WSGIApplication

from fairq_ryu.fabric.deadlines.announcements import Announcements
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.rest import announcement_rows, guard, handler
from fairq_ryu.rest.guard import RequestGuard
from fairq_ryu.rest.operations import RestService
from fairq_ryu.rest.schema.requests import AnnouncementRequest, PageQuery
from fairq_ryu.rest.schema.responses import Announcements as AnnouncementsAnswer
from fairq_ryu.rest.views import Declined

ROOT = Path(__file__).resolve().parents[3]
FLOW = {"src": "10.0.0.2", "dst": "10.0.0.1", "dport": 5001, "size": 12_000_000, "deadline": 0.8}
PAGE = {"total": 0, "limit": 100, "offset": 0}
KEY = FlowKey("10.0.0.2", "10.0.0.1", 40002, 5001)


class Controller:
    """The part of the controller that the interface uses: a table, and a clock that stands still."""

    def __init__(self, capacity: int = 3) -> None:
        self.table = Announcements(capacity=capacity)
        self.declines = ""

    def announce(self, wanted: Request) -> dict[str, Any]:
        if self.declines:
            raise Declined(self.declines)
        return announcement_rows.announcement_row(self.table.add(wanted, 0.0)[0], 0.0)

    def announcements(self, wanted: PageQuery) -> tuple[list[dict[str, Any]], int]:
        found = self.table.listed(0.0)
        chosen = found[wanted.offset : wanted.offset + wanted.limit]
        return [announcement_rows.announcement_row(entry, 0.0) for entry in chosen], len(found)

    def announcement(self, number: int) -> dict[str, Any] | None:
        try:
            return announcement_rows.announcement_row(self.table.get(number, 0.0), 0.0)
        except KeyError:
            return None

    def withdraw(self, number: int) -> bool:
        try:
            self.table.withdraw(number, 0.0)
        except KeyError:
            return False
        return True

    def gif(self, wanted: PageQuery) -> tuple[list[dict[str, Any]], int]:
        return list(announcement_rows.gif_rows(PortKey(1, 3), [gif_row()], 10.0)), 1


def gif_row(**fields: Any) -> Any:
    row = {
        "flow": KEY,
        "start": 9.0,
        "deadline": 11.5,
        "size": 1000,
        "remaining_time": 1.5,
        "remaining_size": 400,
        "priority": 1,
    }
    return SimpleNamespace(**{**row, **fields})


TOKEN = "0123456789abcdef"


def serve(controller: Any, token: str = TOKEN, **more: Any) -> handler.Rest:
    return handler.register(
        WSGIApplication(), RestService(SimpleNamespace(), controller), RequestGuard(token, **more)
    )  # type: ignore[arg-type]


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
def app(controller: Controller) -> handler.Rest:
    return serve(controller)


def ask(app: handler.Rest, path: str, method: str = "GET", body: bytes | None = None, **environ: Any) -> Any:
    asked = webob.Request.blank("/", method=method, base_url="http://127.0.0.1:8080")
    asked.environ["PATH_INFO"] = path
    asked.environ["HTTP_AUTHORIZATION"] = f"Bearer {TOKEN}"
    if body is not None:
        asked.environ["wsgi.input"] = io.BytesIO(body)
        asked.environ["CONTENT_LENGTH"] = str(len(body))
        asked.environ["CONTENT_TYPE"] = "application/json"
    asked.environ.update(environ)
    given = {name: value for name, value in asked.environ.items() if value is not None}
    return webob.Request(given).get_response(app)


def post(app: handler.Rest, sent: Any, **environ: Any) -> Any:
    body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    return ask(app, "/v1/announcements", "POST", body, **environ)


def problem(response: Any, status: int) -> str:
    assert response.status_code == status, response.body
    assert response.headers["Content-Type"] == "application/problem+json"
    document = json.loads(response.body)
    assert document.keys() == {"type", "title", "status", "detail"}
    assert document["status"] == status
    return str(document["detail"])


# Accepted requests


def test_announce_list_withdraw(app):
    made = post(app, FLOW)
    assert made.status_code == 201
    row = made.json
    assert row == {
        **FLOW,
        "id": 1,
        "sport": None,
        "priority": None,
        "left": 1,
        "expires_s": 60.0,
        "vlan": None,
        "flows": [],
    }
    assert made.headers["Location"] == "/v1/announcements/1"
    assert made.headers["Cache-Control"] == "no-store"
    assert ask(app, "/v1/announcements").json == {"announcements": [row], **PAGE, "total": 1}
    assert ask(app, "/v1/announcements/1").json == row
    gone = ask(app, "/v1/announcements/1", "DELETE")
    assert (gone.status_code, gone.body) == (204, b"")
    assert "Content-Type" not in gone.headers
    for method in ("GET", "DELETE"):
        assert problem(ask(app, "/v1/announcements/1", method), 404) == "there is no announcement 1"
    assert ask(app, "/v1/announcements").json == {"announcements": [], **PAGE}


def test_all_options_and_fields_are_passed(app, controller):
    sent = {**FLOW, "sport": 40002, "ttl": 5, "count": 1, "vlan": 10}
    assert post(app, sent).status_code == 201
    (entry,) = controller.table.listed(0.0)
    assert entry.request == Request(**sent)


def test_a_number_is_whole_whatever_its_form(app, controller):
    assert post(app, {**FLOW, "dport": 5001.0, "size": 1e6}).status_code == 201
    (entry,) = controller.table.listed(0.0)
    assert repr((entry.request.dport, entry.request.size)) == "(5001, 1000000)"


def test_null_is_nothing(app, controller):
    assert post(app, {**FLOW, "sport": None, "deadline": None, "ttl": None}).status_code == 201
    (entry,) = controller.table.listed(0.0)
    assert (entry.request.deadline, entry.request.ttl) == (None, 60.0)


def test_the_flow_of_an_announcement_is_shown(app, controller):
    controller.table.flow_started(KEY, KEY, 0.0, 0.0)
    row = post(app, FLOW).json
    assert (row["flows"], row["left"], row["expires_s"]) == ([40002], 0, None)


def test_the_table_of_flows(app):
    assert ask(app, "/v1/gif").json == {
        "gif": [
            {
                "dpid": f"{1:016x}",
                "port": 3,
                "priority": 1,
                "src": "10.0.0.2",
                "dst": "10.0.0.1",
                "sport": 40002,
                "dport": 5001,
                "age_s": 1.0,
                "size_bytes": 1000,
                "remaining_bytes": 400,
                "deadline_s": 2.5,
                "remaining_s": 1.5,
                "state": "open",
            }
        ],
        **PAGE,
        "total": 1,
    }


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "open"),
        ({"remaining_size": 0}, "met"),
        ({"remaining_time": 0.0}, "missed"),
        ({"remaining_time": -1.0, "remaining_size": None, "size": None}, "missed"),
        ({"remaining_time": -1.0, "remaining_size": 0}, "ended"),
        ({"remaining_time": None, "deadline": None}, None),
    ],
)
def test_met_and_missed(fields, state):
    (row,) = announcement_rows.gif_rows(PortKey(1, 3), [gif_row(**fields)], 10.0)
    assert row["state"] == state


def test_without_a_table_announcements_are_refused():
    app = serve(None)
    for kind in ("announcements", "gif"):
        assert ask(app, f"/v1/{kind}").json == {kind: [], **PAGE}
    assert "takes no announcements" in problem(post(app, FLOW), 409)
    assert problem(ask(app, "/v1/announcements/1", "DELETE"), 404)


def test_a_declined_announcement_has_a_reason(app, controller):
    controller.declines = "policy fairq knows no deadlines"
    assert problem(post(app, FLOW), 409) == "policy fairq knows no deadlines"


def test_too_many(app):
    for _ in range(3):
        assert post(app, FLOW).status_code == 201
    assert problem(post(app, FLOW), 429) == "there are 3 announcements already: wait, or withdraw some"


# Refused requests


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON in UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[" * 60000, "not JSON"),
        (b"1" * 5000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "src is missing"),
        (b'{"src": "10.0.0.1"}', "dst is missing"),
        (b'{"src": "10.0.0.1", "src": "10.0.0.2"}', "more than once"),
        (b'{"deadline": NaN}', "NaN is not a number in JSON"),
        (b'{"deadline": -Infinity}', "-Infinity is not a number"),
        ({**FLOW, "deadlin": 1}, "unknown field 'deadlin': known are src, dst, sport, dport, size"),
        ({**FLOW, "x" * 500: 1}, "unknown field 'xxx"),
        ({**FLOW, "src": None}, "src: None is not an IP address"),
        ({**FLOW, "src": ["10.0.0.1"]}, "src: ['10.0.0.1'] is not"),
        ({**FLOW, "dport": "5001"}, "dport: '5001' is not a whole number"),
        ({**FLOW, "dport": 5001.5}, "dport: 5001.5 is not a whole number"),
        ({**FLOW, "dport": True}, "dport: True is not a whole number"),
        ({**FLOW, "dport": 10**400}, "... is more than 65,535"),
        ({**FLOW, "size": 1e400}, "Infinity is not a number"),
        (b'{"src": "10.0.0.1", "dst": "10.0.0.2", "dport": 1, "deadline": 1e999}', "deadline: inf is"),
        ({**FLOW, "deadline": -1}, "deadline: -1 is not more than 0"),
        ({**FLOW, "size": {}}, "size: {} is not a whole number"),
        ({**FLOW, "priority": 1001}, "priority: 1001 is more than 1,000"),
    ],
)
def test_invalid_requests_are_refused_and_change_nothing(app, controller, sent, why):
    detail = problem(post(app, sent), 400)
    assert why in detail
    assert len(detail) < 200
    assert len(controller.table) == 0


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"size": None, "deadline": None}, "nothing to announce"),
        ({"src": "10.0.0.1"}, "src and dst are the same"),
        ({"src": "fe80::1"}, "not of the same IP version"),
        ({"src": "fe80::1%1", "dst": "fe80::2"}, "src: 'fe80::1%1' is not an IP address"),
        ({"sport": 1, "count": 2}, "count is for announcements without sport"),
    ],
)
def test_contradictory_requests_are_refused(app, controller, sent, why):
    assert why in problem(post(app, {**FLOW, **sent}), 422)
    assert len(controller.table) == 0


@pytest.mark.parametrize(
    ("environ", "status", "why"),
    [
        ({"CONTENT_TYPE": None}, 415, "must be application/json"),
        ({"CONTENT_TYPE": "text/plain"}, 415, "must be application/json"),
        ({"CONTENT_TYPE": "application/x-www-form-urlencoded"}, 415, "must be"),
        ({"CONTENT_TYPE": "text/plain; application/json"}, 415, "must be"),
        ({"CONTENT_LENGTH": None}, 411, "Content-Length is needed"),
        ({"CONTENT_LENGTH": ""}, 411, "Content-Length is needed"),
        ({"HTTP_TRANSFER_ENCODING": "chunked"}, 411, "Content-Length is needed"),
        ({"CONTENT_LENGTH": "-1"}, 400, "'-1' is not a number"),
        ({"CONTENT_LENGTH": "1x"}, 400, "'1x' is not a number"),
        ({"CONTENT_LENGTH": "65537"}, 413, "larger than 65536 bytes"),
        ({"CONTENT_LENGTH": "9" * 5000}, 413, "larger than 65536 bytes"),
        ({"CONTENT_LENGTH": "1000"}, 400, "is shorter than Content-Length"),
        ({"QUERY_STRING": "dry=1"}, 400, "unknown parameter 'dry'"),
    ],
)
def test_malformed_requests(app, controller, environ, status, why):
    assert why in problem(post(app, FLOW, **environ), status)
    assert len(controller.table) == 0


def test_the_largest_body(app):
    body = json.dumps(FLOW).encode().ljust(guard.MAX_BODY)
    assert post(app, body).status_code == 201
    assert problem(post(app, body + b" "), 413)


def test_a_body_that_does_not_arrive(app, monkeypatch):
    class Silent:
        def read(self, _: int) -> bytes:
            guard.hub.sleep(5)
            return b""

    monkeypatch.setattr(guard, "BODY_TIMEOUT", 0.01)
    detail = problem(post(app, FLOW, **{"wsgi.input": Silent()}), 408)
    assert detail == "the body was not received in time"


def test_a_connection_that_breaks(app):
    class Broken:
        def read(self, _: int) -> bytes:
            raise ConnectionResetError

    assert (
        problem(post(app, FLOW, **{"wsgi.input": Broken()}), 400) == "the body is shorter than Content-Length"
    )


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/json ;x"]
)
def test_json_by_any_of_its_names(app, kind):
    assert post(app, FLOW, CONTENT_TYPE=kind).status_code == 201


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [
        ("/v1/announcements", "DELETE", "GET, HEAD, POST"),
        ("/v1/announcements", "PUT", "GET, HEAD, POST"),
        ("/v1/announcements", "OPTIONS", "GET, HEAD, POST"),
        ("/v1/announcements/1", "POST", "GET, HEAD, DELETE"),
        ("/v1/announcements/1", "PATCH", "GET, HEAD, DELETE"),
        ("/v1/gif", "POST", "GET, HEAD"),
    ],
)
def test_methods_that_are_not_allowed(app, path, method, allow):
    response = ask(app, path, method, b"{}")
    problem(response, 405)
    assert response.headers["Allow"] == allow


@pytest.mark.parametrize("name", ["0", "x", "-1", "1.0", "٣", "9" * 30, "1%20"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_unknown_announcements(app, name, method):
    post(app, FLOW)
    path = f"/v1/announcements/{name}".encode().decode("latin-1")
    assert "there is no" in problem(ask(app, path, method), 404)


# Authorisation

HERE = [{"HTTP_HOST": "localhost:8080"}, {"HTTP_HOST": "[::1]:8080"}, {"REMOTE_ADDR": "10.0.0.9"}]
HERE += [{"HTTP_HOST": None}, {"HTTP_ORIGIN": "http://127.0.0.1:8080"}, {"HTTP_HOST": "LOCALHOST"}]
HERE += [{"HTTP_AUTHORIZATION": f"bearer  {TOKEN}"}, {"HTTP_X_FORWARDED_FOR": "10.0.0.9"}]
FOREIGN = [
    {"HTTP_HOST": "evil.example:8080"},
    {"HTTP_HOST": "127.0.0.1.evil.example"},
    {"HTTP_ORIGIN": "http://evil.example"},
    {"HTTP_ORIGIN": "http://127.0.0.1:9090"},
    {"HTTP_ORIGIN": "null"},
    {"HTTP_ORIGIN": ""},
]
NO_TOKEN = [
    None,
    "",
    "Bearer",
    f"Basic {TOKEN}",
    TOKEN,
    f"Bearer {TOKEN}x",
    "Bearer \xff",
    f"Bearer {TOKEN[1:]}",
]


@pytest.mark.parametrize("environ", HERE, ids=str)
def test_authorised_requests_may_announce(app, environ):
    assert post(app, FLOW, **environ).status_code == 201
    assert ask(app, "/v1/announcements/1", "DELETE", **environ).status_code == 204


def refused(app, controller, status, **environ):
    problem(post(app, FLOW, **environ), status)
    assert len(controller.table) == 0
    assert post(app, FLOW).status_code == 201
    problem(ask(app, "/v1/announcements/1", "DELETE", **environ), status)
    assert len(controller.table) == 1


@pytest.mark.parametrize("environ", FOREIGN, ids=str)
def test_pages_of_others_may_not_announce(app, controller, environ):
    refused(app, controller, 403, **environ)


@pytest.mark.parametrize("sent", NO_TOKEN)
def test_requests_without_the_token_change_nothing(app, controller, sent):
    refused(app, controller, 401, HTTP_AUTHORIZATION=sent)
    response = post(app, FLOW, HTTP_AUTHORIZATION=sent)
    assert response.headers["WWW-Authenticate"].startswith('Bearer realm="fairq_ryu"')
    assert ask(app, "/v1/announcements", HTTP_AUTHORIZATION=sent).status_code == 200


def test_the_token_is_checked_before_the_body(app):
    detail = problem(post(app, b"", HTTP_AUTHORIZATION=None, CONTENT_TYPE="text/plain"), 401)
    assert detail == "a token is needed: Authorization: Bearer TOKEN"


@pytest.mark.parametrize("sent", ["Bearer ", "Bearer", f"Bearer {TOKEN}", None])
def test_without_a_configured_token_all_writes_are_refused(controller, sent):
    app = serve(controller, token="")
    why = problem(post(app, FLOW, HTTP_AUTHORIZATION=sent), 403)
    assert "token_file" in why and "FAIRQ_TOKEN" in why
    assert len(controller.table) == 0


def test_the_name_that_the_server_listens_on_is_its_own(controller):
    environ = {"HTTP_HOST": "controller.lab:8080"}
    assert post(serve(controller, names=["Controller.lab"]), FLOW, **environ).status_code == 201
    problem(post(serve(controller, names=["127.0.0.1", ""]), FLOW, **environ), 403)


# Garbage

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.ip_addresses().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from(["src", "dst", "dport", "sport", "size", "deadline", "ttl", "count", "vlan", "more"])
bodies = st.binary(max_size=100) | st.dictionaries(fields, json_values).map(lambda sent: {**FLOW, **sent})


@given(
    sent=bodies, kind=st.sampled_from(["application/json", "text/plain", "", "é"]), length=st.integers(-2, 2)
)
@example(sent={**FLOW, "size": 10**5000}, kind="application/json", length=0)
def test_garbage_is_never_a_server_error(sent, kind, length):
    controller = Controller()
    try:
        body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    except ValueError:
        body = b'{"size": ' + b"9" * 5000 + b"}"
    response = post(serve(controller), body, CONTENT_TYPE=kind, CONTENT_LENGTH=str(len(body) + length))
    if response.status_code == 201:
        assert len(controller.table) == 1
    else:
        assert 400 <= response.status_code < 500
        assert problem(response, response.status_code)
        assert len(controller.table) == 0


# The page


def test_the_page_s_example(app, controller):
    text = (ROOT / "docs/rest.md").read_text(encoding="utf-8")
    sent = re.search(r"-d '(\{.*\})'", text)
    assert sent is not None
    answer = post(app, sent[1].encode())
    assert answer.body.decode() in text
    AnnouncementsAnswer.model_validate(ask(app, "/v1/announcements").json)
    assert set(json.loads(sent[1])) <= set(AnnouncementRequest.model_fields)

"""The REST interface, called as a WSGI application: no sockets, no controller."""

from __future__ import annotations

import itertools
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlencode

import pytest
import webob
from hypothesis import example, given
from hypothesis import strategies as st
from ryu import cfg
from ryu.app.wsgi import ControllerBase, WSGIApplication, route

from fairq_ryu.apps import rest, rest_answer
from fairq_ryu.errors import UserError
from fairq_ryu.fabric.flows import FlowState

ROOT = Path(__file__).resolve().parents[2]
S1, S2 = f"{1:016x}", f"{0xA2B4C6D8E0F1:016x}"


def port(dpid: str, number: int, **fields: Any) -> dict[str, Any]:
    row = {
        "dpid": dpid,
        "port": number,
        "name": f"eth{number}",
        "role": "host",
        "flows": 2,
        "active": None,
        "queue_bytes": 30466,
        "peak_bytes": 48448,
        "limit_bytes": 125000,
        "rate_bps": 50_000_000,
        "drops": 0,
        "pool_bytes": 38747,
        "window_bytes": None,
        "flow_windows": 0,
        "policy": "fairq",
        "tx_bytes": 1000,
        "rx_bytes": 2000,
        "tx_bps": 8000,
        "rx_bps": None,
    }
    return {**row, **fields}


def flow(number: int, **fields: Any) -> dict[str, Any]:
    row = {
        "src": f"10.0.{number // 250}.{number % 250 + 1}",
        "dst": "10.1.0.1",
        "sport": 40000 + number % 20000,
        "dport": 5001,
        "state": "established",
        "ports": [[S2, 3], [S1, 1]],
        "back_ports": [[S1, 9], [S2, 4]],
        "wscale": 9,
        "back_wscale": None,
        "mss": 1460,
        "bytes": 1_000_000,
        "back_bytes": 500,
        "age_s": 12.5,
        "idle_s": 0.25,
        "pinned": False,
    }
    return {**row, **fields}


class FakeView:
    def __init__(self, flows: Any = ()) -> None:
        self.all_flows = flows

    def ports(self) -> list[dict[str, Any]]:
        return [port(S1, 1), port(S1, 2, name='"ü', active=3)]

    def flows(self) -> Any:
        return self.all_flows

    def switches(self) -> list[dict[str, Any]]:
        return [{"dpid": S1, "connected": True, "agent": False, "ports": 2}]

    def hosts(self) -> list[dict[str, Any]]:
        return [{"mac": "02:00:00:00:00:01", "at": [S1, 1], "addresses": ["10.0.0.1"]}]

    def links(self) -> list[dict[str, Any]]:
        return [{"a": [S1, 9], "b": [S2, 3]}]


def serve(view: Any) -> WSGIApplication:
    application = WSGIApplication()
    rest.register(application, view)
    return application


def ask(application: WSGIApplication, path: str, method: str = "GET", query: str | None = None) -> Any:
    request = webob.Request.blank("/", method=method)
    path, _, own = path.partition("?")
    request.environ["PATH_INFO"] = path
    request.environ["QUERY_STRING"] = own if query is None else query
    return request.get_response(application)


def get(application: WSGIApplication, path: str) -> Any:
    response = ask(application, path)
    assert response.status_code == 200, response.body
    assert response.headers["Content-Type"] == "application/json"
    return response.json


def problem(response: Any, status: int) -> str:
    """The detail of a problem document that is as RFC 9457 wants it."""
    assert response.status_code == status, response.body
    assert response.headers["Content-Type"] == "application/problem+json"
    document = json.loads(response.body)
    assert document.keys() == {"type", "title", "status", "detail"}
    assert (document["type"], document["status"]) == ("about:blank", status)
    assert response.status == f"{status} {document['title']}"
    return str(document["detail"])


FLOWS = [
    flow(0),
    flow(1, state="syn-seen", dport=80),
    flow(2, dst="fe80::1", ports=[[S1, 7]], back_ports=[]),
    flow(3, sport=80, ports=[[S1, 5001]]),
]


@pytest.fixture
def app() -> WSGIApplication:
    return serve(FakeView(FLOWS))


# What can be read


def test_lists_are_the_view_s(app):
    view = FakeView()
    assert get(app, "/v1/ports") == {"ports": view.ports()}
    assert get(app, "/v1/switches") == {"switches": view.switches()}
    assert get(app, "/v1/links") == {"links": view.links()}
    assert get(app, "/v1/flows") == {"flows": FLOWS, "total": 4, "limit": 100, "offset": 0}


def test_lists_may_be_empty():
    app = serve(SimpleNamespace(ports=list, flows=lambda: iter(()), switches=list, hosts=list, links=list))
    for name in ("ports", "flows", "switches", "hosts", "links"):
        assert get(app, f"/v1/{name}")[name] == []


def test_a_view_may_be_false_in_itself():
    class Hollow(FakeView):
        def __len__(self) -> int:
            return 0

    assert get(serve(Hollow()), "/v1/links")["links"]


def test_head_is_get_without_the_body(app):
    full, head = ask(app, "/v1/flows"), ask(app, "/v1/flows", "HEAD")
    assert head.status_code == 200
    assert head.body == b""
    assert head.headers["Content-Length"] == str(len(full.body))


def test_answers_are_not_to_be_kept_or_guessed_about(app):
    for path in ("/v1/ports", "/v1/nothing"):
        headers = ask(app, path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"


# Pages of flows


@pytest.mark.parametrize("make", [list, iter], ids=["sized", "unsized"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", range(100)),
        ("limit=1", range(1)),
        ("limit=1000", range(1000)),
        ("limit=7&offset=1195", range(1195, 1200)),
        ("offset=1200", range(0)),
        ("offset=1000000000", range(0)),
    ],
)
def test_a_page_of_flows(make, query, found):
    flows = [flow(number) for number in range(1200)]
    answer = get(serve(FakeView(make(flows))), f"/v1/flows?{query}")
    assert answer["flows"] == [flows[number] for number in found]
    assert answer["total"] == 1200


def test_a_lazy_collection_gives_no_more_than_the_page():
    class Lazy:
        given = 0

        def __len__(self) -> int:
            return 1_000_000

        def __iter__(self) -> Any:
            for number in itertools.count():
                self.given += 1
                yield flow(number)

    flows = Lazy()
    answer = get(serve(FakeView(flows)), "/v1/flows?limit=3&offset=20")
    assert [row["src"] for row in answer["flows"]] == ["10.0.0.21", "10.0.0.22", "10.0.0.23"]
    assert answer["total"] == 1_000_000
    assert flows.given == 23


def test_a_long_listing_lets_the_controller_go_on(monkeypatch):
    """Not more than 50 rows, or so many to encode, without a turn for the control loop."""
    turns = []
    monkeypatch.setattr(rest_answer.hub, "sleep", turns.append)
    flows = (flow(number) for number in range(1000))
    get(serve(FakeView(flows)), "/v1/flows?limit=1000")
    assert turns == [0] * 40


# Filters


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("src=10.0.0.2", [1]),
        ("src=10.0.0.99", []),
        ("dst=fe80::1", [2]),
        ("dst=FE80:0:0::0001", [2]),
        ("state=syn-seen", [1]),
        ("port=80", [1, 3]),
        ("port=5001", [0, 2, 3]),
        ("port=1:7", [2]),
        (f"port={S1}:9", [0, 1, 3]),
        ("port=A2B4C6D8E0F1:3", [0, 1]),
        ("port=1:5001", [3]),
        ("port=1:4294967040", []),
        ("dst=10.1.0.1&state=established&port=40000", [0]),
        ("dst=10.1.0.1&limit=1&offset=1", [1]),
    ],
)
def test_filters(app, query, found):
    answer = get(app, f"/v1/flows?{query}")
    assert answer["flows"] == [FLOWS[number] for number in found]
    if "offset" not in query:
        assert answer["total"] == len(found)


def test_totals_count_what_fits_the_filter(app):
    answer = get(app, "/v1/flows?dst=10.1.0.1&limit=1")
    assert (len(answer["flows"]), answer["total"], answer["limit"]) == (1, 3, 1)


@pytest.mark.parametrize("state", list(FlowState))
def test_every_state_can_be_asked_for(app, state):
    found = get(app, f"/v1/flows?state={state}")["flows"]
    assert found == [row for row in FLOWS if row["state"] == state]


# What is refused


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit: 0 is less than 1"),
        ("limit=1001", "limit: 1001 is more than 1000"),
        ("limit=", "limit: '' is not a whole number"),
        ("limit=-1", "limit: '-1' is not"),
        ("limit=+1", "limit: ' 1' is not"),
        ("limit=1.0", "limit: '1.0' is not"),
        ("limit=1_0", "limit: '1_0' is not"),
        ("limit=%D9%A3", "limit: '٣' is not"),
        ("limit=99999999999999999999", "limit: '99999999999999999999' is not"),
        ("offset=-1", "offset: '-1' is not"),
        ("offset=1000000001", "offset: 1000000001 is more than 1000000000"),
        ("src=10.0.0", "src: '10.0.0' is not an IP address"),
        ("dst=10.0.0.0/8", "dst: '10.0.0.0/8' is not an IP address"),
        ("port=", "port: '' is neither"),
        ("port=65536", "port: 65536 is more than 65535"),
        ("port=1:", "port: '1:' is neither"),
        ("port=x:1", "port: 'x:1' is neither"),
        ("port=11111111111111111:1", "is neither"),
        ("state=open", "state: 'open' is none of syn-seen, established, "),
        ("limit=1&limit=1", "limit: given more than once"),
        ("sort=bytes", "unknown parameter 'sort': known are limit, offset, src, dst, port, state"),
        ("limit", "limit: '' is not"),
        ("=", "unknown parameter ''"),
        ("src=%FF", "the query is not UTF-8"),
        ("&".join(f"a{n}" for n in range(100)), "too many parameters"),
        (f"src={'x' * 4000}", f"src: '{'x' * 60}...' is not"),
    ],
)
def test_a_query_that_is_wrong_is_told_why(app, query, said):
    detail = problem(ask(app, "/v1/flows", query=query), 400)
    assert said in detail
    assert len(detail) < 200


@pytest.mark.parametrize("path", ["/v1/ports", "/v1/switches", "/v1/links"])
def test_lists_without_parameters_take_none(app, path):
    detail = problem(ask(app, f"{path}?limit=1"), 400)
    assert detail == f"unknown parameter 'limit': {path} takes none"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE", "get"])
@pytest.mark.parametrize("path", ["/v1/ports", "/v1/flows"])
def test_nothing_can_be_written(app, path, method):
    response = ask(app, path, method)
    assert "can only be read" in problem(response, 405)
    assert response.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/port", "/v1/ports/", "/v1/ports/1", "/v1//ports", "/v1/a\nb", "/v1/\xff"]
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_path_names_those_there_are(app, path, method):
    detail = problem(ask(app, path, method), 404)
    assert all(resource.path in detail for resource in rest.RESOURCES)


@pytest.mark.parametrize("path", ["/", "/v2/ports", "/v1x", "/metrics"])
def test_paths_of_others_are_left_to_others(app, path):
    response = ask(app, path)
    assert response.status_code == 404
    assert "json" not in response.headers["Content-Type"]


def test_another_application_s_routes_stand_beside_ours(app):
    class Other(ControllerBase):
        @route("other", "/other")
        def other(self, req: Any, **_: Any) -> Any:
            return webob.Response(text="here")

    app.register(Other)
    assert ask(app, "/other").text == "here"
    assert get(app, "/v1/links")


@pytest.mark.parametrize(
    "broken",
    [
        lambda: 1 / 0,
        lambda: [{"rate_bps": float("nan")}],
        lambda: [{"name": b"bytes"}],
    ],
)
def test_a_fault_of_ours_is_logged_and_says_nothing_of_it(broken, caplog):
    view = FakeView()
    view.links = broken
    detail = problem(ask(serve(view), "/v1/links"), 500)
    assert detail == "see the controller's log"
    assert "Traceback" in caplog.text


# Garbage


anything = st.text(max_size=30)
names = st.sampled_from([parameter.name for each in rest.RESOURCES for parameter in each.parameters])
values = st.one_of(
    anything,
    st.integers().map(str),
    st.ip_addresses().map(str),
    st.tuples(st.text("0123456789abcdefABCDEF:", max_size=20), st.integers(0, 2**33)).map(
        "{0[0]}:{0[1]}".format
    ),
    st.sampled_from(list(FlowState)).map(str),
)
queries = st.one_of(
    # As the server hands it over: what was not escaped comes as Latin-1.
    st.text(st.characters(max_codepoint=255), max_size=60),
    st.binary(max_size=40).map(quote_from_bytes),
    st.lists(st.tuples(st.one_of(names, anything), values), max_size=6).map(
        lambda pairs: urlencode(pairs, errors="replace")
    ),
)
paths = st.one_of(
    st.sampled_from([each.path for each in rest.RESOURCES]),
    st.text(st.characters(max_codepoint=255), max_size=20).map(lambda text: f"/v1/{text}"),
)
GARBAGE = serve(FakeView(FLOWS))


@given(path=paths, query=queries, method=st.sampled_from(["GET", "HEAD", "POST", "DELETE"]))
@example(path="/v1/flows", query="port=:1", method="GET")
@example(path="/v1/flows", query="src=%00", method="GET")
@example(path="/v1/flows", query=f"src={quote('fe80::1%')}", method="GET")
def test_garbage_is_refused_and_never_a_fault(path, query, method):
    response = ask(GARBAGE, path, method, query)
    assert response.status_code in {200, 400, 403, 404, 405}
    if method == "HEAD":
        return
    if response.status_code == 200:
        assert method == "GET"
        assert isinstance(json.loads(response.body)[path.removeprefix("/v1/")], list)
    else:
        assert problem(response, response.status_code)


@given(
    limit=st.integers(1, 1000),
    offset=st.integers(0, 60),
    dport=st.none() | st.integers(1, 3),
    flows=st.lists(st.integers(1, 3), max_size=60),
)
def test_pages_are_slices_of_what_fits(limit, offset, dport, flows):
    rows = [flow(number, dport=dport_of) for number, dport_of in enumerate(flows)]
    fitting = [row for row in rows if dport is None or row["dport"] == dport]
    query = f"limit={limit}&offset={offset}" + (f"&port={dport}" if dport else "")
    answer = get(serve(FakeView(rows)), f"/v1/flows?{query}")
    assert answer == {
        "flows": fitting[offset : offset + limit],
        "total": len(fitting),
        "limit": limit,
        "offset": offset,
    }


# Where it listens


def test_the_default_is_this_machine_and_the_user_s_word_goes_before_it(tmp_path):
    """In a process of its own, because the configuration of Ryu is one for the whole process."""
    path = tmp_path / "ryu.conf"
    path.write_text("[DEFAULT]\nwsapi_host = 10.0.0.2\n")
    program = f"""
import importlib, sys
import ryu.cmd.manager  # the program; all of its options are known before it reads any
from ryu import cfg
from ryu.app import wsgi
given = [], ["--wsapi-host", "10.0.0.1"], ["--wsapi-host", "0.0.0.0"], ["--config-file", {str(path)!r}]
for arguments in given:
    cfg.CONF.clear()
    cfg.CONF(args=arguments, project="ryu", default_config_files=[])
    before = cfg.CONF.wsapi_host
    sys.modules.pop("fairq_ryu.apps.rest", None)
    importlib.import_module("fairq_ryu.apps.rest")
    print(before, cfg.CONF.wsapi_host, cfg.CONF.wsapi_port)
    cfg.CONF.set_default("wsapi_host", wsgi.DEFAULT_WSGI_HOST)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "0.0.0.0 127.0.0.1 8080",
        "10.0.0.1 10.0.0.1 8080",
        "0.0.0.0 0.0.0.0 8080",
        "10.0.0.2 10.0.0.2 8080",
    ]


@pytest.fixture
def listen_on():
    """Makes the configuration name an address and a port."""

    def listen_on(host: str, port: int) -> None:
        cfg.CONF.set_override("wsapi_host", host)
        cfg.CONF.set_override("wsapi_port", port)

    yield listen_on
    cfg.CONF.clear_override("wsapi_host")
    cfg.CONF.clear_override("wsapi_port")


def test_a_port_that_is_free(listen_on):
    listen_on("127.0.0.1", 0)
    rest.check_port()


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_that_is_taken(listen_on, shared):
    """Also by another Ryu, which shares its port with whoever wants it."""
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        listen_on("127.0.0.1", number)
        with pytest.raises(UserError, match=f"port {number} of 127.0.0.1, .* is taken") as refused:
            rest.check_port()
    assert "--wsapi-port" in refused.value.remedy
    rest.check_port()


@pytest.mark.parametrize(
    ("host", "number", "said"),
    [
        ("127.0.0.1", 70000, "there is no port 70000"),
        ("127.0.0.1", -1, "there is no port -1"),
        ("192.0.2.1", 0, "cannot serve REST on 192.0.2.1 port 0: "),
        ("2001:db8::1", 0, "cannot serve REST on 2001:db8::1 port 0: "),
        ("nonsense.invalid", 0, "cannot serve REST on nonsense.invalid"),
        ("", 6653, "port 6653 is OpenFlow's"),
    ],
)
def test_an_address_that_cannot_be_had(listen_on, host, number, said):
    listen_on(host, number)
    with pytest.raises(UserError, match=said):
        rest.check_port()


# The page


def page_tables() -> dict[str, list[list[str]]]:
    """Heading -> cells of the table rows below it, without the first."""
    text = (ROOT / "docs/rest.md").read_text(encoding="utf-8")
    found = {}
    for section in re.split(r"^##+ ", text, flags=re.M)[1:]:
        heading, _, rest_of = section.partition("\n")
        lines = [line for line in rest_of.splitlines() if line.startswith("|")]
        found[heading] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


def test_the_page_lists_every_resource_and_parameter():
    tables = page_tables()
    assert tables["Requests"] == [[f"`{each.path}`", each.summary] for each in rest.RESOURCES]
    for each in rest.RESOURCES:
        listed = tables.get(f"Parameters of {each.path}", [])
        assert listed == [
            [f"`{one.name}`", "" if one.default is None else str(one.default), one.help]
            for one in each.parameters
        ]


def test_the_page_and_the_protocol_list_every_field():
    view, tables = FakeView(FLOWS), page_tables()
    for name in ("ports", "flows", "switches", "hosts", "links"):
        (row, *_) = getattr(view, name)()
        assert [cells[0].strip("`") for cells in tables[f"Fields of {name}"]] == list(row)
        described = re.findall(r"``(\w+)``", str(getattr(rest.View, name).__doc__))
        assert described == list(row)


def test_the_page_has_the_code_s_numbers():
    text = (ROOT / "docs/rest.md").read_text(encoding="utf-8")
    assert f"`limit` is {rest.MOST_LIMIT} at most" in text
    assert f"after every {rest_answer.ROWS_AT_ONCE} rows" in text
    assert f"{rest.DEFAULT_HOST}, port 8080" in text

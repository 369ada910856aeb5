"""The REST interface, called as a WSGI application over a controller without switches: no sockets."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlencode

import pytest
import webob
from hypothesis import example, given
from hypothesis import strategies as st
from ryu.app.wsgi import ControllerBase, WSGIApplication, route

from fairq_ryu.channel.window_law import LawState, RefusedLaw
from fairq_ryu.control import yielding
from fairq_ryu.control.agents.agent_port import AgentPort, PortLaw
from fairq_ryu.control.reports.events import Kind
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.flows.table import FlowState
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import Congestion, WindowKind, WindowPlan, WindowRule
from fairq_ryu.rest import flow_rows, reply, setup
from fairq_ryu.rest.resources import RESOURCES
from fairq_ryu.rest.schema.base import Row
from fairq_ryu.rest.schema.responses import (
    Announcements,
    Events,
    Flows,
    Gif,
    Hosts,
    Links,
    Paths,
    Ports,
    Switches,
)
from fairq_ryu.rest.schema.rows import AnnouncementRow, FlowRow
from fairq_ryu.rest.schema.state import Health, Live, Policy, Ready
from tests.support.restsite import KEY, RestSite

S1, S2 = f"{1:016x}", f"{2:016x}"


def problem(response: Any, status: int) -> str:
    """The detail of a problem document that conforms to RFC 9457."""
    assert response.status_code == status, response.body
    assert response.headers["Content-Type"] == "application/problem+json"
    document = json.loads(response.body)
    assert document.keys() == {"type", "title", "status", "detail"}
    assert (document["type"], document["status"]) == ("about:blank", status)
    assert response.status == f"{status} {document['title']}"
    return str(document["detail"])


def get(site: RestSite, path: str, **environ: Any) -> Any:
    response = site.ask(path, **environ)
    assert response.status_code == 200, response.body
    assert response.headers["Content-Type"] == "application/json"
    return response.json


@pytest.fixture(scope="module")
def site() -> RestSite:
    """The tests change nothing."""
    return RestSite()


# Reading

PAPERS = ["fairq-paper", "iqm-paper", "sed-paper", "rsed-paper"]


@pytest.fixture(scope="module", params=["droptail", "fairq", "fairswitch", "iqm", "sed", "rsed", *PAPERS])
def full(request: Any) -> RestSite:
    """A site whose tables all have entries."""
    site = RestSite(request.param)
    # Not over REST, where policies that ignore announcements would decline.
    wanted = Request("10.0.0.1", "10.0.0.2", 80, size=9000, deadline=60)
    site.windows.announce(wanted, time.monotonic())
    site.congestion(Congestion.CNG)
    site.sample(backlog=120_000, drops=5)
    site.open(40, 40000)
    site.sample(backlog=120_000, drops=9)
    for late in (0.001,) * 200:
        site.counts.loop_delay.observe(late)
    return site


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1/health", Health),
        ("/v1/ports", Ports),
        ("/v1/flows", Flows),
        ("/v1/paths", Paths),
        ("/v1/switches", Switches),
        ("/v1/hosts", Hosts),
        ("/v1/links", Links),
        ("/v1/policy", Policy),
        ("/v1/announcements", Announcements),
        ("/v1/announcements/1", AnnouncementRow),
        ("/v1/events", Events),
    ],
)
def test_rows_match_their_models(full, path, model: type[Row]):
    """Answers are not validated at run time: here they are."""
    answer = get(full, path)
    may_be_empty = {"/v1/policy": ("ports", "parameters"), "/v1/health": ("failing",)}.get(path, ())
    assert all(value or not isinstance(value, list) or name in may_be_empty for name, value in answer.items())
    model.model_validate(answer)


def test_the_gif_table_matches_its_model(full):
    answer = get(full, "/v1/gif")
    assert bool(answer["gif"]) == (
        full.windows.engine.policy.name in ("sed", "rsed", "sed-paper", "rsed-paper")
    )
    Gif.model_validate(answer)


def test_the_live_state_matches_its_model(full):
    answer = setup.page_state(full.service.view, full.service.announcing, full.streams)
    Live.model_validate(json.loads(reply.encode(answer)))


def test_a_port_has_the_fields_of_its_policy(full):
    (row,) = [row for row in get(full, "/v1/ports")["ports"] if (row["dpid"], row["port"]) == (S2, 1)]
    policy = full.windows.engine.policy.name
    assert row["policy"] == policy
    assert (row["target_bytes"] is not None) == (policy not in ("droptail", "iqm", "iqm-paper"))
    assert row["state"] == ("CNG" if "sed" in policy else None)
    assert row["incast"] == ({"iqm": False, "iqm-paper": True}.get(policy))  # the switch has reported nothing


def test_a_flow_has_its_window_and_counters(full):
    rows = get(full, "/v1/flows?limit=1")["flows"]
    row, policy = rows[0], full.windows.engine.policy.name
    assert (row["sport"], row["rtt_s"], row["bytes"], row["rewritten"]) == (KEY.sport, 0.00125, 5000, 7)
    kinds = {"fairq-paper": "port", "iqm-paper": "port"}
    # What a law of the switch grants is known when the switch has reported it.
    assert row["window_kind"] == kinds.get(policy, row["window_kind"])
    assert (row["window_bytes"] is None) == (policy in ("droptail", "fairq", "fairswitch", "iqm"))


def test_the_smallest_window_of_the_path_counts(site):
    engine = site.windows.engine
    connection = site.flows.get(KEY)
    ports = engine.view()
    near, far = connection.directions[KEY].ports
    both = {near: ports[far]._replace(plan=ports[far].plan), far: ports[far]}
    for window, own, wanted in ((500, {}, (500, "port")), (500, {KEY: 300}, (300, "flow"))):
        plan = type(ports[far].plan)(window=window, flows=own)
        both[near] = ports[far]._replace(plan=plan)
        rows = flow_rows.FlowRows(site.fabric.paths, both, site.windows.links, 0.0)
        row = rows.row(connection)
        assert (row["window_bytes"], row["window_kind"]) == wanted


@pytest.mark.parametrize("kind", [kind for kind in WindowKind if kind.table == 0])
def test_a_port_s_rule_of_every_kind_is_shown(site, kind):
    connection = site.flows.get(KEY)
    (port,) = connection.directions[KEY].ports[-1:]
    view = site.windows.engine.view()[port]._replace(plan=WindowPlan(rule=WindowRule(kind, 5000)))
    links = {}
    if kind is WindowKind.LAW:  # a rule of this kind has a number; the switch reports the window
        law = SimpleNamespace(window=5000, pool=0, flows=0)
        links[port.dpid] = SimpleNamespace(ports={port.port: AgentPort(window_law=PortLaw(state=law))})
    row = flow_rows.FlowRows(site.fabric.paths, {port: view}, links, 0.0).row(connection)
    assert (row["window_bytes"], row["window_kind"]) == (5000, kind.scope)
    FlowRow.model_validate(row)


LAW_STATE = LawState(1, 1, 0, 0, 20_000, 31_250, 3, 1, 0, 1460, 0, 0, FairQLaw.kind, 5, 0)


@pytest.mark.parametrize(
    ("policy", "reported", "port_windows", "flow_window", "incast"),
    [
        ("fairq", {}, (None, None), None, None),
        ("fairq", {"pool": 30_000}, (30_000, None), 10_000, None),
        ("fairswitch", {"pool": 30_000}, (30_000, None), 10_000, None),
        ("las", {"pool": 30_000, "mode": 2}, (30_000, None), 10_000, None),
        ("iqm", {}, (None, None), None, False),
        ("iqm", {"window": 2920, "mode": 1}, (None, 2920), 2920, True),
        ("iqm", {"window": 4000, "mode": 0}, (None, 4000), 4000, False),
        ("acdc", {"updates": 7}, (None, None), None, None),
        ("sed", {}, (None, None), None, None),
        ("sed", {"window": 1460, "mode": 1}, (None, 1460), 1460, None),
    ],
)
def test_a_law_in_the_switch_is_shown_as_reported(
    monkeypatch, policy, reported, port_windows, flow_window, incast
):
    # All at one time: under SED the controller gives a flow its share some milliseconds after it has begun.
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    site = RestSite(policy)
    site.windows.laws_reported(site.link, [LAW_STATE._replace(**reported)], time.monotonic())
    (row,) = [row for row in get(site, "/v1/ports")["ports"] if (row["dpid"], row["port"]) == (S2, 1)]
    assert (row["pool_bytes"], row["window_bytes"]) == port_windows
    assert (row["law"], row["law_missing"], row["incast"]) == ("switch", None, incast)
    flow = get(site, "/v1/flows?limit=1")["flows"][0]
    assert (flow["window_bytes"], flow["window_kind"]) == (flow_window, "law" if flow_window else None)
    kinds = [event.kind for event in site.streams.history.since(kind=Kind.INCAST)]
    assert len(kinds) == bool(incast)


def test_turns_of_new_connections_are_shown_where_they_are_taken():
    counts = {"waiting": 12, "held": 256, "released": 240, "overdue": 3, "overflowed": 1}
    for setting, wanted in (("on", counts), ("off", dict.fromkeys(counts))):
        site = RestSite("fairq", turns=setting)
        site.windows.laws_reported(site.link, [LAW_STATE._replace(**counts)], time.monotonic())
        (row,) = [row for row in get(site, "/v1/ports")["ports"] if (row["dpid"], row["port"]) == (S2, 1)]
        assert {name: row[f"turns_{name}"] for name in counts} == wanted


def test_a_law_that_the_switch_refuses_says_so():
    site = RestSite()
    site.windows.law_refused(site.link, RefusedLaw(1, "no queue"), time.monotonic())
    rows = get(site, "/v1/ports")["ports"]
    found = {(row["dpid"], row["port"]): (row["law"], row["law_missing"]) for row in rows}
    assert found[S2, 1] == (None, "no queue")
    assert set(found.values()) - {("switch", None)} == {(None, "no queue"), (None, None)}
    row = next(row for row in rows if row["law_missing"])
    assert row["pool_bytes"] is row["window_bytes"] is None


def test_hosts_and_links(site):
    assert get(site, "/v1/hosts")["hosts"][0] == {
        "mac": "02:00:00:00:00:01",
        "vlan": 0,
        "at": [S1, 1],
        "addresses": ["10.0.0.1"],
    }
    assert get(site, "/v1/links") == {"links": [{"a": [S1, 2], "b": [S2, 2]}]}


def test_a_path(site):
    answer = get(site, "/v1/paths?limit=1&offset=1")
    assert (answer["total"], answer["limit"], answer["offset"], len(answer["paths"])) == (3, 1, 1, 1)
    row = answer["paths"][0]
    assert row["ports"] == [[S1, 2], [S2, 1]]
    assert row["back_ports"] == [[S2, 2], [S1, 1]]
    assert row["pinned"] is False  # there is a single path


def test_lists_may_be_empty():
    site = RestSite(flows=0)
    assert get(site, "/v1/flows") == {"flows": [], "total": 0, "limit": 100, "offset": 0}


def test_head_is_get_without_the_body(site):
    full, head = site.ask("/v1/flows"), site.ask("/v1/flows", "HEAD")
    assert (head.status_code, head.body) == (200, b"")
    assert abs(int(head.headers["Content-Length"]) - len(full.body)) < 20


def test_answers_forbid_caching_and_sniffing(site):
    for path in ("/v1/ports", "/v1/nothing"):
        headers = site.ask(path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in headers if name.lower().startswith("access-control")]


# Readiness


def test_ready_when_every_bridge_has_its_agent(site):
    assert "bridges without an agent: 1" in problem(site.ask("/v1/ready"), 503)
    ready = RestSite()
    ready.windows.links[1] = ready.link
    Ready.model_validate(get(ready, "/v1/ready"))
    ready.fabric.bridges.clear()
    Ready.model_validate(get(ready, "/v1/ready"))  # agents govern their bridges without them
    ready.windows.links.clear()
    assert "no bridge and no agent is connected yet" in problem(ready.ask("/v1/ready"), 503)


def test_one_of_several_controllers_is_ready_when_it_has_reached_the_database():
    site = RestSite()
    site.fabric.bridges.clear()
    site.service.cluster = SimpleNamespace(is_known=False)
    assert "has not been reached yet" in problem(site.ask("/v1/ready"), 503)
    site.service.cluster.is_known = True
    Ready.model_validate(get(site, "/v1/ready"))


# Pages of flows


@pytest.fixture(scope="module")
def many() -> RestSite:
    return RestSite(flows=1200)


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
@pytest.mark.parametrize("filtered", ["", "&src=10.0.0.1"])
def test_a_page_of_flows(many, query, found, filtered):
    answer = get(many, f"/v1/flows?{query}{filtered}")
    assert [row["sport"] for row in answer["flows"]] == [33000 + number for number in found]
    assert answer["total"] == 1200


def test_rows_are_made_for_the_page_only(many, monkeypatch):
    made = []
    real = flow_rows.FlowRows.row
    monkeypatch.setattr(flow_rows.FlowRows, "row", lambda self, each: made.append(1) or real(self, each))
    for query in ("limit=3&offset=20", "limit=3&offset=20&port=80", "limit=3&state=established"):
        made.clear()
        assert len(get(many, f"/v1/flows?{query}")["flows"]) == 3
        assert len(made) == 3


def test_a_long_listing_yields_to_the_controller(many, monkeypatch):
    """At most 50 rows are made or encoded without a turn for the control loop."""
    taken = []
    monkeypatch.setattr(yielding.hub, "sleep", taken.append)
    get(many, "/v1/flows?limit=1000")
    assert taken == [0] * 40
    taken.clear()
    get(many, "/v1/flows?limit=1&port=80")
    assert taken == [0] * 3


# Filters


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("src=10.0.0.1", 3),
        ("src=10.0.0.99", 0),
        ("dst=10.0.0.2", 3),
        ("dst=::FFFF:10.0.0.2", 0),
        ("state=syn-seen", 0),
        ("state=established", 3),
        ("port=80", 3),
        ("port=33001", 1),
        ("port=1:2", 3),
        (f"port={S1}:1", 3),
        ("port=2:1", 1),
        ("port=1:33001", 0),
        ("port=1:4294967040", 0),
        ("dst=10.0.0.2&state=established&port=33002", 1),
    ],
)
def test_filters(site, query, found):
    answer = get(site, f"/v1/flows?{query}")
    assert (len(answer["flows"]), answer["total"]) == (found, found)


@pytest.mark.parametrize("state", list(FlowState))
def test_every_state_can_be_selected(site, state):
    assert all(row["state"] == state for row in get(site, f"/v1/flows?state={state}")["flows"])


# Refused requests


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("limit=0", "limit: 0 is less than 1"),
        ("limit=1001", "limit: 1001 is more than 1,000"),
        ("limit=", "limit: '' is not a whole number"),
        ("limit=-1", "limit: '-1' is not"),
        ("limit=+1", "limit: ' 1' is not"),
        ("limit=1.0", "limit: '1.0' is not"),
        ("limit=1_0", "limit: '1_0' is not"),
        ("limit=%D9%A3", "limit: '٣' is not"),
        ("limit=99999999999999999999", "limit: '99999999999999999999' is not"),
        ("offset=-1", "offset: '-1' is not"),
        ("offset=1000000001", "offset: 1000000001 is more than 1,000,000,000"),
        ("src=10.0.0", "src: '10.0.0' is not an IP address"),
        ("dst=10.0.0.0/8", "dst: '10.0.0.0/8' is not an IP address"),
        ("port=", "port: '' is neither"),
        ("port=65536", "port: '65536' is neither"),
        ("port=80%0A", "port: '80\\n' is neither"),
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
def test_a_wrong_query_is_refused_with_the_reason(site, query, reason):
    detail = problem(site.ask(f"/v1/flows?{query}"), 400)
    assert reason in detail
    assert len(detail) < 200


def test_a_field_whose_name_is_no_unicode_is_refused(site):
    detail = problem(site.ask("/v1/policy", "PATCH", b'{"\\ud800": 1}'), 400)
    assert detail.startswith("the body: ")


@pytest.mark.parametrize("path", ["/v1/ports", "/v1/switches", "/v1/links", "/v1/live", "/openapi.json"])
def test_lists_without_parameters_take_none(site, path):
    detail = problem(site.ask(f"{path}?limit=1"), 400)
    assert detail == f"unknown parameter 'limit': {path} takes none"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE", "get"])
@pytest.mark.parametrize("path", ["/v1/ports", "/v1/flows", "/openapi.json", "/", "/metrics"])
def test_writes_to_read_only_paths(site, path, method):
    response = site.ask(path, method)
    assert "can only be read" in problem(response, 405)
    assert response.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/port", "/v1/ports/", "/v1/ports/1", "/v1//ports", "/v1/a\nb", "/v1/\xff"]
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_path_lists_the_known_ones(site, path, method):
    detail = problem(site.ask(path, method), 404)
    assert all(resource.path in detail for resource in RESOURCES)


@pytest.mark.parametrize("path", ["/v2/ports", "/v1x", "/metric", "/pages"])
def test_paths_of_other_applications_are_not_handled(site, path):
    response = site.ask(path)
    assert response.status_code == 404
    assert "json" not in response.headers["Content-Type"]


def test_routes_of_another_application_coexist():
    class Other(ControllerBase):
        @route("other", "/other")
        def other(self, req: Any, **_: Any) -> Any:
            return webob.Response(text="here")

    wsgi = WSGIApplication()
    wsgi.register(Other)
    site = RestSite()
    app = site.register(wsgi, "")
    assert webob.Request.blank("/other").get_response(app).text == "here"


@pytest.mark.parametrize(
    "broken",
    [
        lambda: 1 / 0,
        lambda: [{"rate_bps": float("nan")}],
        lambda: [{"name": b"bytes"}],
    ],
)
def test_an_internal_error_is_logged_and_not_shown(broken, caplog):
    site = RestSite()
    site.service.view.links = broken
    detail = problem(site.ask("/v1/links"), 500)
    assert detail == "see the controller's log"
    assert "Traceback" in caplog.text


# Host names

OWN = ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "LOCALHOST", "10.0.0.9", None]
FOREIGN = ["evil.example:8080", "127.0.0.1.evil.example", "[::1", "2130706433:8080", "controller.lab"]


@pytest.mark.parametrize("host", OWN)
def test_names_that_are_ours(site, host):
    assert site.ask("/v1/ports", HTTP_HOST=host).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/v1/ports", "/openapi.json", "/v1/events"])
def test_names_that_are_not(site, host, path):
    """A page that uses the address under its own name may read nothing."""
    assert "the controller is not called" in problem(site.ask(path, HTTP_HOST=host), 403)


def test_a_setting_gives_it_more_names():
    site = RestSite(rest_names="controller.lab Other")
    for host in ("controller.lab:8080", "OTHER"):
        assert site.ask("/v1/ports", HTTP_HOST=host).status_code == 200
    problem(site.ask("/v1/ports", HTTP_HOST="lab"), 403)


# Garbage

anything = st.text(max_size=30)
NAMES = [name for each in RESOURCES for one in each.operations.values() for name in one.query.model_fields]
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
    # As the server passes it on: unescaped characters arrive as Latin-1.
    st.text(st.characters(max_codepoint=255), max_size=60),
    st.binary(max_size=40).map(quote_from_bytes),
    st.lists(st.tuples(st.one_of(st.sampled_from(NAMES), anything), values), max_size=6).map(
        lambda pairs: urlencode(pairs, errors="replace")
    ),
)
paths = st.one_of(
    st.sampled_from([each.path for each in RESOURCES if each.path != "/v1/live"]),
    st.text(st.characters(max_codepoint=255), max_size=20).map(lambda text: f"/v1/{text}"),
)
GARBAGE = RestSite()


@given(path=paths, query=queries, method=st.sampled_from(["GET", "HEAD", "POST", "DELETE", "PATCH"]))
@example(path="/v1/flows", query="port=:1", method="GET")
@example(path="/v1/flows", query="src=%00", method="GET")
@example(path="/v1/flows", query=f"src={quote('fe80::1%')}", method="GET")
def test_garbage_is_refused_and_never_a_server_error(path, query, method):
    response = GARBAGE.ask(path.partition("?")[0], method, QUERY_STRING=query)
    assert response.status_code in {200, 400, 403, 404, 405, 411, 415, 503}
    if method != "HEAD" and response.status_code != 200:
        assert problem(response, response.status_code)


# Ten thousand flows


def test_the_cost_of_a_page_depends_on_its_size_only(monkeypatch):
    """Filters check every flow, but rows are made for one page only: their number is counted, and their time
    is measured by ``python -m bench rest``.
    """
    made: list[Any] = []
    plain = flow_rows.FlowRows.row
    monkeypatch.setattr(flow_rows.FlowRows, "row", lambda self, each: made.append(each) or plain(self, each))
    many = RestSite(flows=10_000)
    for query in ("", "src=10.0.0.1&state=established&port=1:2", "offset=9900"):
        made.clear()
        assert len(get(many, f"/v1/flows?{query}")["flows"]) == len(made) == 100
    assert get(many, "/v1/flows?port=1:2")["total"] == 10_000

"""Tenants over REST: listed, added, changed and removed, each request as a whole or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
import webob

from fairq_ryu.channel.tenants import TenantState
from fairq_ryu.cli import columns
from fairq_ryu.cli.show_tables import table
from fairq_ryu.control.reports.events import Kind
from fairq_ryu.rest.schema.responses import Tenants
from tests.support.restsite import TOKEN, RestSite

BLUE = {"hosts": ["10.0.1.0/24", "fd00::7"], "weight": 2}


@pytest.fixture
def site() -> RestSite:
    return RestSite("tenants")


def ask(site: RestSite, method: str, name: str = "", body: Any = None, token: str = TOKEN) -> Any:
    path = f"/v1/tenants/{name}" if name else "/v1/tenants"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = webob.Request.blank(path, method=method, headers=headers)
    if body is not None:
        request.body = json.dumps(body).encode()
    return request.get_response(site.app)


def listed(site: RestSite) -> dict[str, Any]:
    answer = ask(site, "GET")
    Tenants.model_validate(answer.json)
    return {row["name"]: row for row in answer.json["tenants"]}


def test_a_tenant_is_added_changed_and_removed(site: RestSite) -> None:
    assert list(listed(site)) == ["others"]
    added = ask(site, "PUT", "blue", BLUE)
    assert added.status_int == 201
    assert (added.json["hosts"], added.json["weight"]) == (["10.0.1.0/24", "fd00::7/128"], 2)
    changed = ask(site, "PUT", "blue", {"hosts": ["10.0.1.0/24"]})
    assert changed.status_int == 200 and changed.json == ask(site, "GET", "blue").json
    assert (changed.json["hosts"], changed.json["weight"]) == (["10.0.1.0/24"], 1)
    assert list(listed(site)) == ["blue", "others"]
    assert ask(site, "DELETE", "blue").status_int == 204
    assert list(listed(site)) == ["others"]


def test_changes_are_events(site: RestSite) -> None:
    site.streams.history.gap = 0
    for method, body in (("PUT", BLUE), ("PUT", BLUE | {"weight": 3}), ("DELETE", None)):
        ask(site, method, "blue", body)
    assert [event.message for event in site.streams.history.since(0, Kind.POLICY)] == [
        "tenant blue: added, weight 2, hosts 10.0.1.0/24 fd00::7/128",
        "tenant blue: changed, weight 3, hosts 10.0.1.0/24 fd00::7/128",
        "tenant blue: removed",
    ]


@pytest.mark.parametrize(
    ("name", "body", "status", "why"),
    [
        ("others", BLUE, 422, "'others' is not a name"),
        ("a%20b", BLUE, 422, "'a b' is not a name"),
        ("red", {"hosts": ["10.0.1.0/24"]}, 422, "tenants blue and red both have 10.0.1.0/24"),
        ("red", {"hosts": ["nowhere"]}, 422, "'nowhere'"),
        ("red", {"hosts": []}, 400, "hosts"),
        ("red", {"weight": 1}, 400, "hosts"),
        ("red", {"hosts": ["10.0.3.1"], "weight": 0}, 400, "weight"),
        ("red", {"hosts": ["10.0.3.1"], "weight": 1001}, 400, "weight"),
        ("red", {"hosts": ["10.0.3.1"], "more": 1}, 400, "more"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(site, name, body, status, why) -> None:
    ask(site, "PUT", "blue", BLUE)
    before = listed(site)
    refused = ask(site, "PUT", name, body)
    assert refused.status_int == status and why in refused.json["detail"]
    assert listed(site) == before


def test_a_change_needs_the_token(site: RestSite) -> None:
    for method, body in (("PUT", BLUE), ("DELETE", None)):
        assert ask(site, method, "blue", body, token="wrong" * 5).status_int == 401


def test_a_tenant_that_is_not_there(site: RestSite) -> None:
    for method in ("GET", "DELETE"):
        answer = ask(site, method, "red")
        assert answer.status_int == 404 and "'red'" in answer.json["detail"]


def shared(site: RestSite) -> None:
    """Tenant blue has sent through port 1 of bridge 2."""
    ask(site, "PUT", "blue", BLUE)
    control, link = site.windows.tenants, site.windows.links[2]
    list(control.due(100.0))
    for now, size in ((100.0, 1000), (101.0, 1_251_000)):
        state = TenantState(1, 1, 1, 4, 50, size, 3, 43690, 40_000)
        control.reported(link, [state], now)


def test_what_a_tenant_has_is_shown(site: RestSite) -> None:
    shared(site)
    row = listed(site)["blue"]
    assert (row["flows"], row["goodput_bps"], row["floor_broken"]) == (4, 10_000_000, 3)
    (port,) = row["ports"]
    assert (port["dpid"], port["port"], port["name"]) == ("0" * 15 + "2", 1, "s2-eth1")
    assert (port["share"], port["pool_bytes"]) == (0.6667, 40_000)


def test_fairq_show_tenants(site: RestSite, capsys: pytest.CaptureFixture[str]) -> None:
    console = columns.console()
    console.print(table("tenants", ask(site, "GET").json, ""))
    assert "no tenants" in capsys.readouterr().out
    shared(site)
    ask(site, "PUT", "red", {"hosts": ["10.0.2.0/24"]})
    console.print(table("tenants", ask(site, "GET").json, ""))
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [
        "blue",
        "2:1",
        "10.0Mbit/s",
        "66.7%",
        "2",
        "4",
        "40.0k",
        "3",
        "10.0.1.0/24",
        "fd00::7/128",
    ] in shown
    assert ["red", "-", "-", "-", "1", "-", "-", "-", "10.0.2.0/24"] in shown


def test_metrics(site: RestSite) -> None:
    shared(site)
    text = site.metrics.render("")[0].decode()
    labels = 'dpid="0000000000000002",name="s2-eth1",port="1",tenant="blue"'
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if "tenant" in line and line[0] != "#")
    assert found['fairq_tenant_weight{tenant="blue"}'] == "2.0"
    assert float(found[f"fairq_tenant_goodput_bytes_per_second{{{labels}}}"]) == 1_250_000
    assert float(found[f"fairq_tenant_floor_broken_acks_total{{{labels}}}"]) == 3

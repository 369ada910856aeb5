"""Long answers of the REST interface: pages, and the turns of other greenlets meanwhile."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import eventlet
import pytest
from ryu.lib import hub

from fairq_ryu.control.yielding import ROWS_PER_STEP
from fairq_ryu.model import PortKey
from fairq_ryu.policies.parts.deadline_table import GifTable
from fairq_ryu.rest import flow_rows, setup, views
from tests.support.restsite import RestSite


def get(site: RestSite, path: str) -> Any:
    response = site.ask(path)
    assert response.status_code == 200, response.body
    return response.json


# One after the other


def test_long_answers_are_made_one_after_the_other(monkeypatch):
    """Otherwise each of them would make 50 rows between two turns of the control loop."""
    site = RestSite(flows=300)
    making: list[Any] = []
    real = flow_rows.FlowRows.row

    def row(self: Any, each: Any) -> Any:
        making.append(eventlet.getcurrent())
        return real(self, each)

    monkeypatch.setattr(flow_rows.FlowRows, "row", row)
    askers = [eventlet.spawn(get, site, "/v1/flows?limit=200") for _ in range(4)]
    askers += [eventlet.spawn(site.ask, path) for path in ("/metrics", "/v1/paths?limit=200")]
    for asker in askers:
        asker.wait()
    assert len(making) == 800
    assert sum(one is not other for one, other in pairwise(making)) == 3


def test_an_answer_that_fails_does_not_block_the_next():
    site = RestSite()
    site.service.view.flows = lambda _: 1 / 0
    for _ in range(2):
        assert site.ask("/v1/flows").status_code == 500
    get(site, "/v1/paths")


def test_the_live_state_yields_to_the_controller(monkeypatch):
    site = RestSite("sed", flows=200)
    turns: list[float] = []
    monkeypatch.setattr(hub, "sleep", turns.append)
    answer = setup.page_state(site.service.view, site.service.announcing, site.streams)
    assert len(answer["gif"]) == setup.MAX_GIF_ROWS
    assert len(turns) >= setup.MAX_GIF_ROWS // ROWS_PER_STEP


# Tables of flows by deadline


@pytest.fixture(scope="module")
def tables() -> RestSite:
    """Flows in the tables of two ports at least."""
    return RestSite("sed", flows=120)


@pytest.mark.parametrize(("limit", "offset"), [(1000, 0), (7, 0), (7, 118), (200, 119), (5, 120), (5, 9999)])
def test_a_page_of_the_tables(tables, limit, offset):
    whole = get(tables, "/v1/gif?limit=1000")
    assert whole["total"] == len(whole["gif"]) > 120
    assert len({(row["dpid"], row["port"]) for row in whole["gif"]}) > 1
    answer = get(tables, f"/v1/gif?limit={limit}&offset={offset}")

    def names(rows: list[dict[str, Any]]) -> list[Any]:
        return [[row[name] for name in ("dpid", "port", "priority", "sport")] for row in rows]

    assert names(answer["gif"]) == names(whole["gif"][offset : offset + limit])
    assert (answer["total"], answer["limit"], answer["offset"]) == (whole["total"], limit, offset)


def test_rows_of_tables_are_made_for_the_page_only(tables, monkeypatch):
    made: list[int] = []
    real = GifTable.rows

    def rows(self: Any, *asked: Any) -> Any:
        found = real(self, *asked)
        made.append(len(found))
        return found

    monkeypatch.setattr(GifTable, "rows", rows)
    get(tables, "/v1/gif?limit=3&offset=20")
    assert made == [3]


# Announcements


def test_a_page_of_announcements():
    site = RestSite("sed")
    for number in range(5):
        announcement = {"src": "10.0.0.1", "dst": "10.0.0.2", "sport": 100 + number, "dport": 81, "size": 1}
        assert site.ask("/v1/announcements", "POST", json.dumps(announcement).encode()).status_code == 201
    answer = get(site, "/v1/announcements?limit=2&offset=1")
    assert [row["id"] for row in answer["announcements"]] == [2, 3]
    assert (answer["total"], answer["limit"], answer["offset"]) == (5, 2, 1)
    site.service.announcing.announcements = None  # a single one is found without a list of all
    assert get(site, "/v1/announcements/4")["sport"] == 103


# Hosts and links


def test_hosts_and_links_are_computed_only_after_changes(monkeypatch):
    site = RestSite()
    made: list[int] = []
    real = views.with_hosts

    def with_hosts(*asked: Any) -> Any:
        made.append(1)
        return real(*asked)

    monkeypatch.setattr(views, "with_hosts", with_hosts)
    for _ in range(3):
        assert len(get(site, "/v1/hosts")["hosts"]) == 2
        assert len(get(site, "/v1/links")["links"]) == 1
    assert len(made) == 1
    hosts, mac, there = site.fabric.hosts, "02:00:00:00:00:09", PortKey(2, 1)

    def row() -> Any:
        return get(site, "/v1/hosts")["hosts"][2]

    hosts.seen(mac, PortKey(1, 1), "10.0.0.9")
    assert row() == {"mac": mac, "vlan": 0, "at": [f"{1:016x}", 1], "addresses": ["10.0.0.9"]}
    hosts.seen(mac, there, "10.0.0.9")
    assert row()["at"] == [f"{2:016x}", 1]
    hosts.seen(mac, there, "10.0.0.8")
    assert row()["addresses"] == ["10.0.0.8", "10.0.0.9"]
    hosts.seen("02:00:00:00:00:01", PortKey(1, 1), "10.0.0.9")
    assert row()["addresses"] == ["10.0.0.8"]
    hosts.forget(mac)
    assert len(get(site, "/v1/hosts")["hosts"]) == 2
    site.fabric.topology.link_lost(PortKey(1, 2), PortKey(2, 2))
    assert get(site, "/v1/links") == {"links": []}

"""Disabling and enabling ports over REST: what is named, what has changed, and when it ends."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from fairq_ryu.control.reports.events import Kind
from fairq_ryu.control.windows.disables import LIMIT, Scope
from fairq_ryu.model import PortKey
from tests.support.restsite import RestSite

PORT = PortKey(2, 1)  # of the second host; bridge 2 has the agent


def ask(site: RestSite, operation: str, body: Any = None, **environ: Any) -> Any:
    return site.ask(f"/v1/{operation}", "POST", json.dumps(body or {}).encode(), **environ)


def events(site: RestSite) -> list[str]:
    return [event.message for event in site.streams.history.since(0, Kind.MODE)]


def modes(site: RestSite) -> dict[tuple[str, int], str]:
    site.service.ports._until = 0
    return {(row["dpid"][-1], row["port"]): row["mode"] for row in site.ask("/v1/ports").json["ports"]}


@pytest.fixture
def site() -> RestSite:
    made = RestSite("fairq")
    assert made.windows.engine.installed(PORT) == 1
    return made


def test_one_port_is_disabled_and_enabled(site):
    answer = ask(site, "disable", {"bridge": "br2", "port": "s2-eth1"}).json
    row = {"dpid": f"{2:016x}", "port": 1, "name": "s2-eth1"}
    assert answer == {
        "what": "s2-eth1 (2:1)",
        "ports": [row | {"before": "act", "after": "disabled", "rules_before": 1, "rules_after": 0}],
    }
    assert modes(site) == {("1", 1): "act", ("1", 2): "act", ("2", 1): "disabled", ("2", 2): "act"}
    site.sample()
    assert site.windows.engine.installed(PORT) == 0
    answer = ask(site, "enable", {"port": "2:1"}).json
    assert answer["ports"] == [
        row | {"before": "disabled", "after": "act", "rules_before": 0, "rules_after": 1}
    ]
    assert set(modes(site).values()) == {"act"}


@pytest.mark.parametrize(
    ("body", "what", "count"),
    [
        ({}, "all ports", 4),
        ({"bridge": "br2"}, "bridge br2 (2)", 2),
        ({"bridge": "2"}, "bridge br2 (2)", 2),
        ({"bridge": "0000000000000001"}, "bridge 1", 2),
        ({"bridge": "1", "port": "2"}, "s1-eth2 (1:2)", 1),
        ({"port": "s1-eth2"}, "s1-eth2 (1:2)", 1),
    ],
)
def test_what_can_be_named(site, body, what, count):
    answer = ask(site, "disable", body).json
    assert (answer["what"], len(answer["ports"])) == (what, count)
    assert list(modes(site).values()).count("disabled") == count
    assert len(ask(site, "enable", body).json["ports"]) == count


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"bridge": "br3"}, "there is no bridge 'br3' here; known are bridge (1), br2 (2)"),
        ({"bridge": ""}, "there is no bridge '' here"),
        ({"port": "tap9"}, "there is no port 'tap9' here; known are s1-eth1 (1:1), s1-eth2 (1:2),"),
        ({"bridge": "1", "port": "s2-eth1"}, "there is no port 's2-eth1' at bridge 1; known are s1-eth1"),
        ({"port": "1"}, "there is more than one port '1': 1:1, 2:1; name the bridge as well"),
    ],
)
@pytest.mark.parametrize("operation", ["disable", "enable"])
def test_an_unknown_name_changes_nothing(site, operation, body, why):
    answer = ask(site, operation, body)
    assert answer.status_code == 422 and answer.json["detail"].startswith(why)
    assert set(modes(site).values()) == {"act"} and events(site) == []


@pytest.mark.parametrize(
    "body",
    [{"seconds": 0}, {"seconds": -1}, {"seconds": "60s"}, {"port": 3}, {"bridge": 1}, {"ports": "1"}],
)
def test_a_wrong_field_changes_nothing(site, body):
    assert ask(site, "disable", body).status_code == 400
    assert set(modes(site).values()) == {"act"}


def test_the_token_is_needed(site):
    assert ask(site, "disable", HTTP_AUTHORIZATION=None).status_code == 401
    assert site.ask("/v1/disable").status_code == 405
    assert set(modes(site).values()) == {"act"}


def test_it_ends_by_itself_and_is_an_event(site):
    now = time.monotonic()
    site.modes.disable("br2", None, 60.0, now)
    (left,) = {row["disabled_s"] for row in site.ask("/v1/ports").json["ports"] if row["mode"] == "disabled"}
    assert 0 < left <= 60
    site.modes.tick(now + 59.9)
    assert site.windows.engine.installed(PORT) == 0
    site.modes.tick(now + 60.0)
    assert site.windows.engine.installed(PORT) == 1
    assert set(modes(site).values()) == {"act"}
    site.streams.history.due(time.time() + 9)  # repeated events of a place are joined within a second
    assert events(site) == [
        "bridge br2 (2): disabled for 60 s; the mode of 2 ports has changed",
        "bridge br2 (2): the time of a disable is over; the mode of 2 ports has changed",
    ]


def test_a_longer_disable_goes_on(site):
    now = time.monotonic()
    site.modes.disable(None, None, None, now)
    assert site.modes.disable("br2", "1", 5.0, now)["ports"] == []
    site.modes.tick(now + 5)
    assert set(modes(site).values()) == {"disabled"}
    assert len(site.modes.enable(None, "2:1", now)["ports"]) == 1
    assert modes(site)["2", 1] == "act" and modes(site)["2", 2] == "disabled"


def test_bounded(site):
    now = time.monotonic()
    for number in range(LIMIT):
        site.windows.modes.disables.disable(Scope(9, number), now + 60)
    answer = ask(site, "disable")
    assert answer.status_code == 429 and "enable all ports first" in answer.json["detail"]
    assert ask(site, "enable").status_code == 200 and not site.windows.modes.disables


def test_syns_are_not_held_while_a_port_is_disabled():
    site = RestSite("fairq", syn="hold")
    held = site.fabric._hold_rules
    bridges = len(site.fabric.bridges)

    def flow_mods() -> list[Any]:
        return [each for _, each in site.log if type(each).__name__ == "OFPFlowMod" and each.table_id == 0]

    site.log.clear()
    now = time.monotonic()
    site.modes.disable("2", "1", 60.0, now)
    assert len([each for each in flow_mods() if each.command == 3]) == bridges
    site.log.clear()
    assert list(held.renew(now + 30)) == []
    site.modes.tick(now + 60)
    assert len(list(held.renew(now + 61))) == 2 * bridges


def test_syns_are_never_held_where_a_port_may_be_observed():
    site = RestSite("fairq", syn="hold", mode="observe")
    assert list(site.fabric._hold_rules.renew(time.monotonic() + 99)) == []

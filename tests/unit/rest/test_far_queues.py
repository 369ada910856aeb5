"""/v1/far-queues: far queues are listed, added, changed and removed, or all stays as it is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.channel import oxm
from fairq_ryu.channel.description import Description
from fairq_ryu.control.reports.events import Kind
from fairq_ryu.control.windows.uplink_shares import UplinkShares
from fairq_ryu.far_queue import FAR, FarQueue
from fairq_ryu.rest.schema.responses import FarQueues
from fairq_ryu.rest.schema.rows import FarQueueRow
from fairq_ryu.uplink import Member, Uplink
from tests.support.fakes import FakeSwitch
from tests.support.far_agent import FarAgent
from tests.support.restsite import RestSite

AT = "/v1/far-queues/br2/s2-eth2"
CONFIGURED = FarQueue("s2-eth1", 125_000_000)
ROW = {
    "dpid": f"{2:016x}",
    "bridge": "br2",
    "port": 2,
    "far_port": FAR | 2,
    "name": "s2-eth2",
    "rate_bps": 10_000_000_000,
    "buffer_bytes": 1 << 20,
    "share": 0.95,
    "origin": "request",
    "uplink": None,
    "leased_bps": None,
}
PORTS = {"s2-eth1": 1, "s2-eth2": 2}
WORDS = {"rate": "10gbit", "buffer": "1mb", "share": 0.95}
TOLD_VALUE = {"rate": 10**10 // 8, "buffer": 1 << 20, "share": 0.95}
TOLD = ("s2-eth2", *TOLD_VALUE.values())


@pytest.fixture
def site() -> RestSite:
    return RestSite("fairq")


@pytest.fixture
def agent(site: RestSite) -> FarAgent:
    return FarAgent(site.link, PORTS, FarTable([CONFIGURED]))


def put(site: RestSite, body: Any, path: str = AT, **environ: Any) -> Any:
    return site.ask(path, "PUT", json.dumps(body).encode(), **environ)


def listed(site: RestSite) -> list[dict[str, Any]]:
    answer = site.ask("/v1/far-queues").json
    FarQueues.model_validate(answer)
    return answer["far_queues"]


def events(site: RestSite) -> list[str]:
    return [event.message for event in site.streams.history.since(0, Kind.FAR)]


def test_a_far_queue_is_added_changed_and_removed(site: RestSite, agent: FarAgent) -> None:
    (first,) = listed(site)
    assert (first["name"], first["origin"], first["rate_bps"]) == ("s2-eth1", "configuration", 10**9)
    answer = put(site, WORDS)
    FarQueueRow.model_validate(answer.json)
    assert (answer.status_int, answer.json) == (200, ROW)
    assert listed(site) == [first, ROW]
    assert put(site, {"rate": 50_000_000}).json == ROW | {
        "rate_bps": 50_000_000,
        "buffer_bytes": None,
        "share": 0.98,
    }
    assert agent.table.queues["s2-eth2"] == FarQueue("s2-eth2", 6_250_000)
    gone = site.ask(AT, "DELETE")
    assert (gone.status_int, gone.json["rate_bps"]) == (200, 50_000_000)
    assert listed(site) == [first]
    # Those that follow at once are one event, later.
    assert events(site) == ["s2-eth2 (2:2): far queue rate 10000000000bit buffer 1048576 share 0.95"]


def test_one_that_is_configured_can_be_changed_and_removed(site: RestSite, agent: FarAgent) -> None:
    path = "/v1/far-queues/0000000000000002/1"
    assert put(site, {"rate": "25gbit"}, path).json["origin"] == "request"
    assert agent.table.queues == {"s2-eth1": FarQueue("s2-eth1", 3_125_000_000)}
    # By the far queue itself, too.
    site.link.ports[FAR | 1].name = "s2-eth1@far"
    assert site.ask("/v1/far-queues/2/s2-eth1@far", "DELETE").status_int == 200
    assert agent.table.queues == {} and listed(site) == []


def test_of_one_that_was_added_and_removed_nothing_is_kept(site: RestSite, agent: FarAgent) -> None:
    for _ in range(2):
        put(site, WORDS)
        assert site.ask(AT, "DELETE").status_int == 200
        assert agent.table.told == site.windows.far_orders.of(2) == {}
        assert site.requests.of("far_queue") == {}


def test_one_that_is_configured_stays_removed(site: RestSite, agent: FarAgent) -> None:
    path = "/v1/far-queues/br2/s2-eth1"
    put(site, WORDS, path)
    for _ in range(2):
        assert site.ask(path, "DELETE").status_int == 200
        assert listed(site) == []
        assert agent.table.told == site.windows.far_orders.of(2) == {"s2-eth1": None}
        assert site.requests.of("far_queue") == {f"{2:016x} s2-eth1": {}}
        put(site, WORDS, path)


def test_an_agent_that_does_not_answer_to_a_removal(site: RestSite, agent: FarAgent) -> None:
    put(site, WORDS)
    agent.silent = True
    assert site.ask(AT, "DELETE").status_int == 504
    # Its configuration may have one.
    assert site.windows.far_orders.of(2) == {"s2-eth2": None}
    assert site.requests.of("far_queue") == {f"{2:016x} s2-eth2": {}}


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        (AT, {"rate": "fast"}, "far queue of s2-eth2: rate fast: it is not a rate; write it as tc does"),
        (AT, {"rate": 5}, "far queue of s2-eth2: rate 5: it is too little; write it as tc does"),
        (AT, {"rate": "1gbit", "buffer": "1 mb"}, "far queue of s2-eth2: buffer 1 mb: it is not a size"),
        ("/v1/far-queues/br9/eth0", WORDS, "there is no bridge 'br9' here; known are bridge (1), br2 (2)"),
        ("/v1/far-queues/br9/ethü", WORDS, "there is no bridge 'br9' here; known are bridge (1), br2 (2)"),
        ("/v1/far-queues/br2/ethü", WORDS, "there is no port 'ethü' at bridge 2; known are s2-eth1"),
        ("/v1/far-queues/br2/eth0", WORDS, "there is no port 'eth0' at bridge 2; known are s2-eth1"),
        ("/v1/far-queues/1/s1-eth1", WORDS, "the agent of bridge 1 is not connected; start it"),
    ],
)
def test_what_is_wrong_is_refused_whole(
    site: RestSite, agent: FarAgent, path: str, body: Any, why: str
) -> None:
    answer = put(site, body, path)
    assert answer.status_int == 422 and answer.json["detail"].startswith(why)
    assert agent.table.told == {} and not events(site)


@pytest.mark.parametrize(
    "body", [{"share": 2}, {"share": "x"}, {"speed": 1}, [], {"rate": -1}, {"rate": True}]
)
def test_a_body_that_is_none(site: RestSite, agent: FarAgent, body: Any) -> None:
    assert put(site, body).status_int == 400
    assert agent.table.told == {}


def test_it_needs_the_token(site: RestSite, agent: FarAgent) -> None:
    assert put(site, WORDS, HTTP_AUTHORIZATION=None).status_int == 401
    assert site.ask(AT, "DELETE", HTTP_AUTHORIZATION="Bearer 1").status_int == 401
    assert agent.table.told == {}


def test_what_the_agent_refuses_is_not_told_again(site: RestSite, agent: FarAgent) -> None:
    put(site, WORDS)
    agent.table._configured["enp131s0f0np0"] = FarQueue("enp131s0f0np0")
    site.link.ports[4].name = "enp131s1f0np0"
    answer = put(site, WORDS, "/v1/far-queues/br2/enp131s1f0np0")
    assert answer.status_int == 422
    assert answer.json["detail"].startswith("the agent refuses it: the far queues of enp131s0f0np0 and")
    assert agent.table.told == {"s2-eth2": FarQueue(*TOLD)}
    assert site.windows.far_orders.of(2) == agent.table.told
    assert put(site, {}).status_int == 200, "the next one works"


def test_there_is_nothing_to_remove(site: RestSite, agent: FarAgent) -> None:
    answer = site.ask(AT, "DELETE")
    assert answer.status_int == 422 and answer.json["detail"].startswith("s2-eth2 has no far queue")


def test_an_agent_that_does_not_answer(site: RestSite, agent: FarAgent) -> None:
    agent.silent = True
    answer = put(site, WORDS)
    assert answer.status_int == 504
    assert "has not answered within 0.01 s; it is told again when it connects" in answer.json["detail"]
    assert "s2-eth2" in site.windows.far_orders.of(2) and not events(site)
    agent.silent = False
    assert put(site, WORDS, "/v1/far-queues/br2/s2-eth1").status_int == 200
    assert set(agent.table.told) == {"s2-eth1", "s2-eth2"}, "the next change keeps it"


LONG = "/v1/far-queues/br2/enp131s1f0np0"


@pytest.fixture
def refusing(site: RestSite, agent: FarAgent) -> FarAgent:
    """An agent that has one change, refuses another, and has not said so in time."""
    assert put(site, WORDS).status_int == 200
    agent.table._configured["enp131s0f0np0"] = FarQueue("enp131s0f0np0")
    site.link.ports[4].name = "enp131s1f0np0"
    agent.silent = True
    assert put(site, WORDS, LONG).status_int == 504
    site.far.take_back()
    assert len(site.requests.of("far_queue")) == 2, "it may have it"
    return agent


def test_what_the_agent_refuses_late_is_taken_back(site: RestSite, refusing: FarAgent, caplog: Any) -> None:
    assert put(site, {"rate": "1gbit"}).status_int == 504
    assert site.ask("/v1/far-queues/br2/s2-eth1", "DELETE").status_int == 504
    refusing.speak()
    site.far.take_back()
    assert site.windows.far_orders.of(2) == refusing.table.told == {"s2-eth2": FarQueue(*TOLD)}
    assert site.requests.of("far_queue") == {f"{2:016x} s2-eth2": TOLD_VALUE}
    why = "the agent refuses it: the far queues of enp131s0f0np0 and enp131s1f0np0 would both be"
    assert f"enp131s1f0np0: the request is taken back, because {why}" in caplog.text
    assert any(why in message for message in events(site))
    caplog.clear()
    site.far.take_back()
    assert not caplog.text, "once"
    assert put(site, {"rate": "1gbit"}).status_int == 200


def test_a_late_answer_that_is_no_refusal_takes_nothing_back(site: RestSite, agent: FarAgent) -> None:
    agent.silent = True
    assert put(site, WORDS).status_int == 504
    agent.speak()
    site.far.take_back()
    assert site.windows.far_orders.of(2) == agent.table.told == {"s2-eth2": FarQueue(*TOLD)}
    assert site.requests.of("far_queue") == {f"{2:016x} s2-eth2": TOLD_VALUE}


def test_what_is_refused_at_the_next_connection_is_taken_back(site: RestSite, refusing: FarAgent) -> None:
    site.windows.agent_disconnected(site.link)
    link = site.windows.agent_connected(FakeSwitch(oxm.agent_dpid(2)), Description("br2"))
    table = FarTable([CONFIGURED, FarQueue("enp131s0f0np0")])
    again = FarAgent(link, PORTS, table)
    assert table.told == {}
    site.far.take_back()
    assert again.table.told == site.windows.far_orders.of(2) == {"s2-eth2": FarQueue(*TOLD)}
    assert list(site.requests.of("far_queue")) == [f"{2:016x} s2-eth2"]


def test_a_refused_change_that_could_not_be_stored_is_forgotten(site: RestSite, refusing: FarAgent) -> None:
    """The database may not have answered."""
    site.requests._values["far_queue"].pop(f"{2:016x} enp131s1f0np0")
    refusing.speak()
    site.far.take_back()
    assert site.windows.far_orders.of(2) == {"s2-eth2": FarQueue(*TOLD)}


def test_an_agent_that_connects_again_is_told_all_of_it(site: RestSite, agent: FarAgent) -> None:
    put(site, WORDS)
    site.ask("/v1/far-queues/br2/s2-eth1", "DELETE")
    told = agent.table.told
    assert set(told) == {"s2-eth1", "s2-eth2"}
    site.windows.agent_disconnected(site.link)
    assert listed(site) == []
    # Restarted: it has its configuration only.
    datapath = FakeSwitch(oxm.agent_dpid(2), site.log)
    site.log.clear()
    link = site.windows.agent_connected(datapath, Description("br2"))
    again = FarAgent(link, PORTS, FarTable([CONFIGURED]))
    assert again.table.told == told and [row["name"] for row in listed(site)] == ["s2-eth2"]


def test_a_new_controller_lets_the_configuration_hold(agent: FarAgent, site: RestSite) -> None:
    put(site, WORDS)
    other = RestSite("fairq")
    other.windows.agent_disconnected(other.link)
    link = other.windows.agent_connected(FakeSwitch(oxm.agent_dpid(2)), Description("br2"))
    FarAgent(link, PORTS, agent.table)
    assert agent.table.queues == {"s2-eth1": CONFIGURED}


def test_a_port_behind_an_uplink_is_divided_and_not_changed(site: RestSite, agent: FarAgent) -> None:
    members = Member("br2", "s2-eth1"), Member("br3", "eth0")
    uplinks = [Uplink("rack1", members, 250_000_000)]
    site.windows.uplinks = UplinkShares(uplinks, site.windows.links, 2)
    for answer in (
        put(site, WORDS, "/v1/far-queues/br2/s2-eth1"),
        site.ask("/v1/far-queues/br2/1", "DELETE"),
    ):
        assert answer.status_int == 422
        assert answer.json["detail"].startswith(
            "s2-eth1 is behind uplink rack1, whose rate is divided; change"
        )
    site.link.ports[FAR | 1].depth = site.link.ports[1].depth
    site.windows.uplinks.tick(time.monotonic())
    (row,) = listed(site)
    assert (row["uplink"], row["leased_bps"]) == ("rack1", 1_000_000_000)

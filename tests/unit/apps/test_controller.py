"""Every application builds a whole controller, all parts of which know each other."""

from __future__ import annotations

import gc
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ryu.lib.packet import arp, ethernet
from ryu.ofproto import ofproto_v1_3 as ofp

import fairq_ryu.apps
from fairq_ryu.channel import port_settings
from fairq_ryu.openflow import pipeline
from fairq_ryu.policies.base import app_of, available
from fairq_ryu.port_settings import PortSettings, VlanMode
from fairq_ryu.rest.resources import RESOURCES
from tests.fuzz import messages
from tests.support import rest_answers
from tests.support.whole_controller import BACKLOG, BUFFER, CLIENT, SERVER, Errors, WholeController

FOLDER = Path(fairq_ryu.apps.__file__).parent


def module_of(policy: str) -> str:
    """The module of a policy's application, in :mod:`fairq_ryu.apps`."""
    return app_of(policy).rpartition(".")[2]


OURS = [name for name in available() if (FOLDER / f"{module_of(name)}.py").exists()]
EVERY_WAY = [
    *((module_of(name), "", name) for name in OURS),
    *(("policy", f"[fairq_ryu]\npolicy = {name}\n", name) for name in available()),
]

Make = Callable[[str, str], WholeController]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Builds controllers. What one of them logs as an error fails the test."""
    made: list[WholeController] = []
    errors, thresholds = Errors(), gc.get_threshold()
    logging.getLogger().addHandler(errors)

    def make(application: str, configuration: str) -> WholeController:
        file = tmp_path / "fairq.conf"
        file.write_text(configuration)
        made.append(WholeController(application, file, monkeypatch))
        return made[-1]

    yield make
    for each in made:
        each.end()
    logging.getLogger().removeHandler(errors)
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    assert errors.lines == []


def test_what_renews_leases_is_a_job_of_its_own(make: Make) -> None:
    """A fault in another one does not end them."""
    names = [each.name for each in make("fairq", "").app._jobs()]
    assert {"fabric", "copies", "tenants", "modes", "uplinks"} <= set(names) and len(names) == len(set(names))


def test_every_policy_of_the_project_has_an_application():
    modules = {path.stem for path in FOLDER.glob("*.py") if "policy_name" in path.read_text()}
    assert modules - {"controller"} == {module_of(each) for each in OURS}
    assert set(OURS) == set(available())


def test_the_answers_are_those_of_the_schema(make):
    """Also that of the stream, and the metrics."""
    whole = make("fairq", "")
    whole.join()
    whole.open_flow()
    whole.until(lambda: whole.ask("/v1/flows").json["total"] == 1)
    paths = [each.path for each in RESOURCES if "GET" in each.operations and each.operations["GET"].answers]
    assert {"/v1/health", "/v1/ports", "/v1/flows", "/v1/policy", "/v1/events"} <= set(paths)
    # It is alone.
    paths.remove("/v1/cluster")
    assert whole.ask("/v1/cluster").status_int == 404
    for path in (each for each in paths if "{" not in each):
        answer = whole.ask(path)
        assert (answer.status_int, rest_answers.fault(path, answer.json)) == (200, "")
    assert rest_answers.unlike(rest_answers.STREAMED["state"], whole.app.streams.state()) == ""
    metrics = whole.ask("/metrics").text
    assert re.search(rf"^fairq_port_queue_bytes{{.*s1-eth2.*}} {BACKLOG}", metrics, re.M), metrics


def test_requests_change_what_they_name(make):
    whole = make("sed", "")
    whole.join()
    answer = whole.ask("/v1/disable", "POST", b'{"port": "s1-eth2"}')
    assert [row["after"] for row in answer.json["ports"]] == ["disabled"]
    flow = {"src": "10.0.0.1", "dst": "10.0.0.2", "dport": 80, "size": 9000}
    assert whole.ask("/v1/announcements", "POST", json.dumps(flow).encode()).status_int == 201
    assert whole.ask("/v1/policy", "PATCH", b'{"policy": "fairq"}').json["policy"] == "fairq"
    kinds = [event["kind"] for event in whole.ask("/v1/events").json["events"]]
    assert {"mode", "policy"} <= set(kinds)


def test_a_port_with_a_policy_of_its_own(make):
    whole = make("fairq", "[ports]\ns1-eth2 = las\n")
    whole.join()
    rows = whole.ask("/v1/ports").json["ports"]
    assert {row["name"]: row["policy"] for row in rows} == {"s1-eth1": "fairq", "s1-eth2": "las"}


def rules(whole: WholeController) -> set[str]:
    """The rules that the agent was sent, by their match; those of laws, which are packed once, as one."""
    sent = whole.agent.sent
    kinds = ("OFPFlowMod", "PackedOnce")
    return {str(getattr(each, "match", None)) for each in sent if type(each).__name__ in kinds}


@pytest.mark.parametrize("policy", ["fairq", "rsed", "afq", "fixed"])
def test_what_a_policy_wants_reaches_the_agent(make, policy):
    """Beside the rules for copies of segments, which it has under DropTail, too."""
    sent = []
    for each in ("droptail", policy):  # one after the other: replies are for the last that was built
        whole = make(each, "")
        whole.join()
        whole.open_flow()
        whole.until(lambda whole=whole: whole.ask("/v1/flows").json["total"] == 1)
        sent.append(rules(whole))
    without, found = sent
    assert without < found and len(found) == len(without) + 1


def test_a_bridge_that_is_governed_by_paths(make):
    """Hosts are known from their frames, with the VLAN of the port that the agent has told; the copy of a
    segment is taken at once.
    """
    whole = make("fairq", "[fairq_ryu]\nway = paths\n")
    whole.connect(whole.bridge)
    whole.receive(whole.bridge, messages.reply(ofp.OFPMP_FLOW))
    whole.join_agent()
    access = PortSettings(VlanMode.ACCESS, 10)
    for each in port_settings.messages({CLIENT: access, SERVER: access}):
        whole.receive(whole.agent, each)
    # Until then, the ports may lead to other switches.
    whole.until(lambda: {row["role"] for row in whole.ask("/v1/ports").json["ports"]} == {"host"})
    for port, mac, address in (
        (CLIENT, messages.MACS[0], "10.0.0.1"),
        (SERVER, messages.MACS[1], "10.0.0.2"),
    ):
        asks = arp.arp(src_mac=mac, src_ip=address, dst_ip="10.0.0.9")
        frame = messages.frame(ethernet.ethernet("ff:ff:ff:ff:ff:ff", mac, 0x0806), asks)
        assert not whole.receive(whole.bridge, messages.packet_in(frame, pipeline.COOKIE_ARP, in_port=port))
    hosts = {row["mac"]: (row["at"][1], row["vlan"]) for row in whole.ask("/v1/hosts").json["hosts"]}
    assert hosts == {messages.MACS[0]: (CLIENT, 10), messages.MACS[1]: (SERVER, 10)}
    syn = messages.packet_in(messages.frames()["syn"], pipeline.COOKIE_TCP, in_port=CLIENT)
    assert whole.receive(whole.bridge, syn)
    whole.until(lambda: whole.ask("/v1/flows").json["total"] == 1)
    (flow,) = whole.ask("/v1/flows").json["flows"]
    assert (flow["vlan"], [port for _, port in flow["ports"]]) == (10, [SERVER])


BY_BRIDGES = ("desc", "flows-none", "aggregate", "port-status", "flow-removed", "barrier", "error")
BY_BRIDGES += ("meter-stats", "port-stats", "packet-in-arp", "packet-in-syn")
BY_AGENTS = ("desc", "port-status", "error", "depths", "records", "changes", "segments", "laws", "queue-laws")
BY_AGENTS += ("segment-counts", "port-settings", "congestion", "packet-in-dropped", "packet-in-copy")


@pytest.mark.parametrize("direct", [True, False])
def test_every_message_of_a_switch_has_a_handler(make, direct):
    """``direct``: some are taken at once, if no other application wants them."""
    whole, sent = make("rsed", ""), messages.from_switch()
    whole.join()
    for datapath, names in ((whole.bridge, BY_BRIDGES), (whole.agent, BY_AGENTS)):
        datapath.ofp_brick = datapath.ofp_brick if direct else None
        for name in names:
            assert not whole.receive(datapath, sent[name]) or direct
    whole.until(lambda: whole.ask("/v1/ports").json["ports"])


@pytest.mark.parametrize(("application", "configuration", "policy"), EVERY_WAY)
def test_a_controller_with_a_bridge_and_an_agent(make, application, configuration, policy):
    """From the copy of a SYN and the reading of a queue to the answers of the REST interface."""
    whole = make(application, configuration)
    whole.join()
    whole.open_flow()
    whole.until(lambda: whole.ask("/v1/flows").json["total"] == 1)
    ports = {row["port"]: row for row in whole.ask("/v1/ports").json["ports"]}
    there = ports[SERVER]
    assert (there["policy"], there["queue_bytes"], there["limit_bytes"]) == (policy, BACKLOG, BUFFER)
    assert (there["name"], there["flows"]) == ("s1-eth2", 1)
    health = whole.ask("/v1/health").json
    assert (health["policy"], health["bridges"], health["agents"]) == (policy, 1, 1)
    kinds = [event["kind"] for event in whole.ask("/v1/events").json["events"]]
    assert {"bridge", "agent"} <= set(kinds)

    whole.disconnect(whole.agent)
    whole.disconnect(whole.bridge)
    health = whole.ask("/v1/health").json
    assert (health["bridges"], health["agents"]) == (0, 0)

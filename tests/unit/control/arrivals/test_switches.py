"""Switches that connect, change and disconnect, as Ryu's messages report it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import oxm
from fairq_ryu.channel.description import ALL, Capability, datapath, hardware
from fairq_ryu.control.arrivals.bridge_connections import BridgeConnections
from fairq_ryu.control.arrivals.rerouting import Rerouting
from fairq_ryu.control.arrivals.switches import Switches
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.events import Kind
from fairq_ryu.control.reports.port_traffic import PortTrafficTable
from fairq_ryu.control.windows.inventory import Beside
from fairq_ryu.fabric.ways import Way
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet.parse import Frame
from tests.support.fakes import FakeSwitch
from tests.support.flownet import KEY
from tests.support.site import CLIENT_MAC, Site

PORT = PortKey(7, 3)
RESERVED = ofp.OFPP_LOCAL


def description(number: int, up: bool = True) -> Any:
    """A port as Ryu decodes it."""
    state = 0 if up else ofp.OFPPS_LINK_DOWN
    return SimpleNamespace(port_no=number, config=0, state=state, name=f"s7-eth{number}".encode() + b"\0")


class Made:
    """Bridge 1 of a site; bridge 7 may connect. Events and polled agents are recorded."""

    def __init__(self) -> None:
        self.site = site = Site()
        self.events: list[tuple[Kind, str]] = []
        self.polled: list[Any] = []
        self.warned: list[str] = []
        reporter = EventReporter(lambda occurrence: self.events.append(occurrence[:2]), lambda _: "")
        log = logging.getLogger(__name__)
        tracker = FlowTracker(site.fabric, site.flows, site.windows, log)
        self.rerouting = Rerouting(site.fabric, site.windows, tracker, reporter)
        self.bridges = BridgeConnections(Way.PATHS, site.fabric, site.windows, self.rerouting, reporter, log)
        self.switches = Switches(
            site.fabric,
            site.windows,
            tracker,
            PortTrafficTable(),
            self.rerouting,
            self.bridges,
            self.polled.append,
            log,
            lambda who, line: self.warned.append(line),
        )
        self.bridge: Any = FakeSwitch(7)
        self.bridge.ports = {each.port_no: each for each in (description(3), description(RESERVED))}

    @property
    def fabric(self) -> Any:
        return self.site.fabric

    def list_rules(self, bridge: Any) -> None:
        self.bridges.rules_listed(SimpleNamespace(datapath=bridge, body=[], flags=0))

    def join(self) -> None:
        self.switches.connected(self.bridge)
        self.list_rules(self.bridge)

    def describe(self, agent: Any, hw_desc: bytes = hardware(ALL)) -> None:
        body = SimpleNamespace(hw_desc=hw_desc, dp_desc=datapath("s7"))
        self.switches.described(SimpleNamespace(datapath=agent, body=body))

    def port_status(self, reason: int, desc: Any, datapath: Any = None) -> None:
        message = SimpleNamespace(datapath=datapath or self.bridge, reason=reason, desc=desc)
        self.switches.port_status(message)


@pytest.fixture
def made() -> Made:
    return Made()


def test_a_bridge_is_connected_when_its_rules_are_known(made):
    made.switches.connected(made.bridge)
    assert 7 not in made.fabric.bridges and not made.events
    made.list_rules(made.bridge)
    assert made.fabric.bridges[7] is made.bridge
    assert made.fabric.names[PORT] == "s7-eth3"
    assert list(made.fabric.topology.ports(7)) == [PORT]  # reserved ports do not count
    assert made.events == [(Kind.BRIDGE, "bridge 7 has connected")]


def test_a_bridge_that_disconnects_is_reported_once(made):
    made.join()
    made.switches.disconnected(FakeSwitch(7))  # an earlier connection
    assert 7 in made.fabric.bridges
    made.switches.disconnected(made.bridge)
    made.switches.disconnected(made.bridge)
    assert 7 not in made.fabric.bridges
    assert [text for _, text in made.events] == ["bridge 7 has connected", "bridge 7 has gone"]


def test_a_bridge_that_disconnects_while_it_joins_is_forgotten(made):
    made.switches.connected(made.bridge)
    made.switches.disconnected(made.bridge)
    made.list_rules(made.bridge)
    assert 7 not in made.fabric.bridges and not made.events


def test_an_agent_is_connected_and_polled_when_it_has_described_itself(made, caplog):
    caplog.set_level("INFO")
    agent = FakeSwitch(oxm.agent_dpid(7))
    made.switches.connected(agent)
    assert [type(each).__name__ for each in agent.sent] == ["OFPDescStatsRequest"]
    assert 7 not in made.site.windows.links and not made.polled
    made.describe(agent, hardware(Capability.INGRESS_QDISCS))
    link = made.site.windows.links[7]
    assert link.datapath is agent and made.polled == [link] and link.modes.bridge == "s7"
    (lack,) = [line for line in caplog.messages if "its kernel" in line]
    assert lack.endswith("its kernel does not report dropped packets: none are recovered")
    made.describe(agent)
    assert made.site.windows.links[7] is link and made.polled == [link] and not made.warned
    made.switches.disconnected(FakeSwitch(oxm.agent_dpid(7)))  # an earlier connection
    assert 7 in made.site.windows.links
    made.switches.disconnected(agent)
    assert 7 not in made.site.windows.links


@pytest.mark.parametrize(
    ("setting", "unifies", "noticed"),
    [
        (Way.PATHS, True, False),
        (Way.WINDOWS, True, True),
        (Way.WINDOWS, False, False),
        (None, True, False),  # the bridge has not said yet which way it wants
    ],
)
def test_an_agent_that_unifies_scales_without_pinned_paths_is_noticed(
    made, caplog, setting, unifies, noticed
):
    made.bridges.setting = setting
    agent = FakeSwitch(oxm.agent_dpid(7))
    made.switches.connected(agent)
    made.describe(agent, hardware(ALL | Capability.UNIFIES_SCALES if unifies else ALL))
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert [line for line in warnings if "take unify_scale out" in line] == warnings
    assert len(warnings) == noticed


def test_scales_that_are_unified_are_a_limit_of_a_bridge_without_pinned_paths(made, caplog):
    caplog.set_level("INFO")
    agent = FakeSwitch(oxm.agent_dpid(7))
    made.switches.connected(agent)
    made.describe(agent, hardware(ALL | Capability.UNIFIES_SCALES))
    inventory = made.site.windows.inventory
    assert any("unify_scale" in line for line in inventory.limits(7, False))  # the bridge is not here
    made.join()
    assert inventory.limits(7, False) == []  # paths
    made.switches.disconnected(made.bridge)
    made.bridges.setting = Way.WINDOWS
    made.switches.connected(made.bridge)
    (line,) = [line for line in inventory.limits(7, False) if "unify_scale" in line]
    assert line.endswith("this controller leaves the bridge alone")
    assert any(line in message for message in caplog.messages)


def test_an_agent_of_another_version_is_refused_and_told_why(made):
    agent = FakeSwitch(oxm.agent_dpid(7))
    made.switches.connected(agent)
    made.describe(agent, b"window channel 7777 capabilities 00000000")
    assert 7 not in made.site.windows.links and not made.polled and agent.closed
    refusal = agent.sent[-1]
    assert (refusal.type, refusal.code) == (ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
    (line,) = made.warned
    assert line == f"agent of bridge 0000000000000007: refused: {refusal.data.decode()}"
    assert "speaks version 30583 of the window channel" in line
    made.switches.disconnected(agent)


def test_ports_are_added_changed_and_removed(made):
    made.join()
    made.port_status(ofp.OFPPR_ADD, description(4))
    assert set(made.fabric.topology.ports(7)) == {PORT, PortKey(7, 4)}
    made.port_status(ofp.OFPPR_DELETE, description(4))
    assert list(made.fabric.topology.ports(7)) == [PORT] and PortKey(7, 4) not in made.fabric.names
    made.port_status(ofp.OFPPR_ADD, description(RESERVED))
    made.port_status(ofp.OFPPR_ADD, description(5), FakeSwitch(9))  # not connected
    assert list(made.fabric.topology.ports(7)) == [PORT] and not list(made.fabric.topology.ports(9))


def test_a_port_removed_by_an_agent_stays_a_port_of_the_bridge(made):
    made.site.sample(PortKey(1, 2), 0.0)
    made.port_status(ofp.OFPPR_DELETE, description(2), made.site.agent)
    assert 2 not in made.site.link.ports
    assert PortKey(1, 2) in made.fabric.names


def removed(reason: int, cookie: int, **match: Any) -> Any:
    return SimpleNamespace(
        datapath=FakeSwitch(1), reason=reason, cookie=cookie, match=parser.OFPMatch(**match)
    )


@pytest.mark.parametrize(("reason", "known"), [(ofp.OFPRR_IDLE_TIMEOUT, False), (ofp.OFPRR_DELETE, True)])
def test_a_host_whose_rule_times_out_is_forgotten(made, reason, known):
    frame = Frame(CLIENT_MAC, "ff:ff:ff:ff:ff:ff", ())
    made.fabric.host_seen(made.site.bridge, frame, PortKey(1, 1), 0.1)
    made.switches.rule_removed(removed(reason, pipeline.COOKIE_SOURCE, in_port=1, eth_src=CLIENT_MAC))
    assert (made.fabric.hosts.by_mac(CLIENT_MAC) is not None) is known


def test_a_connection_whose_pinned_rules_time_out_is_over(made):
    made.site.open(KEY)
    for key in (KEY, KEY.reversed):
        assert made.site.flows.get(KEY) is not None
        made.switches.rule_removed(removed(ofp.OFPRR_IDLE_TIMEOUT, pipeline.COOKIE_PATH, **ryu_match(key)))
    assert made.site.flows.get(KEY) is None


def ryu_match(key: Any) -> dict[str, Any]:
    return {
        "eth_type": 0x0800,
        "ip_proto": 6,
        "ipv4_src": key.src,
        "ipv4_dst": key.dst,
        "tcp_src": key.sport,
        "tcp_dst": key.dport,
    }


def test_the_ports_of_an_agent_without_its_bridge_have_the_names_that_it_lists(made):
    agent: Any = FakeSwitch(oxm.agent_dpid(7))
    agent.ports = {3: description(3), RESERVED: description(RESERVED)}
    made.switches.connected(agent)
    made.describe(agent)
    inventory = made.site.windows.inventory
    assert inventory.ports(7) == [PORT] and inventory.name(PORT) == "s7-eth3"
    made.port_status(ofp.OFPPR_ADD, description(4), agent)
    assert inventory.ports(7) == [PORT, PortKey(7, 4)] and inventory.name(PortKey(7, 4)) == "s7-eth4"
    made.port_status(ofp.OFPPR_DELETE, description(4), agent)
    assert inventory.ports(7) == [PORT] and inventory.name(PortKey(7, 4)) == ""


def test_ports_of_a_bridge_beside_the_fabric_are_added_and_removed(made):
    made.site.windows.inventory.add(Beside(made.bridge, Way.NORMAL, 0, {3: "s7-eth3"}))
    made.port_status(ofp.OFPPR_ADD, description(4))
    assert made.site.windows.inventory.name(PortKey(7, 4)) == "s7-eth4"
    made.port_status(ofp.OFPPR_DELETE, description(3))
    assert made.site.windows.inventory.ports(7) == [PortKey(7, 4)]
    assert not made.fabric.topology.ports(7)

"""In which way a bridge is governed, and that no rule of others is touched unless paths were asked for."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.arrivals import bridge_joining
from fairq_ryu.control.arrivals.bridge_connections import BridgeConnections, port_state
from fairq_ryu.control.arrivals.rerouting import Rerouting
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.fabric.ways import RuleCount, Way
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import beside, pipeline
from fairq_ryu.packet.parse import Frame
from tests.support.fakes import FakeSwitch
from tests.support.site import CLIENT_MAC, Site

EMPTY, FOREIGN, FORWARDS = RuleCount(0, 0, 0), RuleCount(7, 0, 0), RuleCount(1, 0, 1)
ONLY_PATHS, MIXED = RuleCount(40, 40, 0), RuleCount(47, 40, 0)
CHANGES = ("OFPFlowMod", "OFPMeterMod", "OFPPacketOut", "OFPGroupMod")


class Made:
    """Bridge 7 with port 3, beside a site; it answers what it is asked."""

    def __init__(self, setting: Way | None = None) -> None:
        self.site = site = Site()
        self.events: list[str] = []
        reporter = EventReporter(lambda occurrence: self.events.append(occurrence[1]), lambda _: "")
        log = logging.getLogger(__name__)
        tracker = FlowTracker(site.fabric, site.flows, site.windows, log)
        rerouting = Rerouting(site.fabric, site.windows, tracker, reporter)
        self.connections = BridgeConnections(setting, site.fabric, site.windows, rerouting, reporter, log)
        self.bridge = self.another()

    @staticmethod
    def another() -> Any:
        """A connection of bridge 7."""
        bridge = FakeSwitch(7)
        port = SimpleNamespace(port_no=3, config=0, state=0, name=b"eth3\0")
        bridge.ports = {3: port}
        return bridge

    def describe(self, words: str) -> None:
        body = SimpleNamespace(dp_desc=words.encode())
        self.connections.described(SimpleNamespace(datapath=self.bridge, body=body))

    def count(self, found: RuleCount) -> None:
        """Answer the last questions, if there were any."""
        requests = [each for each in self.bridge.sent if type(each).__name__ == "OFPAggregateStatsRequest"]
        for request, number in zip(requests[-4:], (*found, 0), strict=False):
            body = SimpleNamespace(flow_count=number)
            self.connections.rules_counted(SimpleNamespace(datapath=self.bridge, xid=request.xid, body=body))

    def list_rules(self, *rules: Any) -> None:
        message = SimpleNamespace(datapath=self.bridge, body=list(rules), flags=0)
        self.connections.rules_listed(message)

    def list_too_many(self, number: int) -> None:
        body = [None] * (number + 1)
        self.connections.rules_listed(SimpleNamespace(datapath=self.bridge, body=body, flags=0))

    def join(self, words: str = "", found: RuleCount = EMPTY, *rules: Any) -> None:
        """Connect a bridge without a setting."""
        self.connections.connected(self.bridge)
        self.describe(words)
        self.count(found)
        self.list_rules(*rules)

    def again(self) -> None:
        self.bridge = self.another()

    @property
    def changes(self) -> list[Any]:
        """What was sent that changes something in the bridge, without the rule for discovery frames."""
        found = [each for each in self.bridge.sent if type(each).__name__ in CHANGES]
        return [each for each in found if getattr(each, "cookie", None) != beside.COOKIE_DISCOVERY]

    @property
    def discovers(self) -> bool | None:
        """What was sent last about the rule for discovery frames: that it is there, or not; None: nothing."""
        found = [each for each in self.bridge.sent if getattr(each, "cookie", 0) == beside.COOKIE_DISCOVERY]
        return found[-1].command == ofp.OFPFC_ADD if found else None

    @property
    def forwards(self) -> bool:
        """Whether the only change is the rule that forwards."""
        return [getattr(each, "cookie", None) for each in self.changes] == [beside.COOKIE_NORMAL]

    def clear(self) -> None:
        self.bridge.log.clear()

    @property
    def way(self) -> Way | None:
        """Of the bridge, if it has joined."""
        connected = self.site.windows.inventory.is_connected(7)
        return self.site.windows.inventory.way(7) if connected else None


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def alone(made: Made) -> Made:
    """No other bridge is connected."""
    made.site.fabric.bridges.clear()
    return made


# Decided by what connects


def test_the_name_of_a_port_has_no_control_characters():
    """It stands in the log, in /metrics and on terminals."""
    port = SimpleNamespace(port_no=3, config=0, state=0, name=b"x\x1b[2J\0")
    assert port_state(port).name == "x\N{REPLACEMENT CHARACTER}[2J"


def test_a_bridge_that_asks_for_paths_gets_them(made):
    made.join("s7, fairq_ryu: paths")
    assert made.way is Way.PATHS and made.site.fabric.bridges[7] is made.bridge
    assert any(each.cookie == pipeline.COOKIE_TCP for each in made.changes if hasattr(each, "cookie"))


def test_rules_of_others_are_cleared_only_for_paths(made):
    foreign = SimpleNamespace(match={}, cookie=1)
    made.connections.connected(made.bridge)
    made.describe("fairq_ryu: paths")
    made.list_rules(foreign)
    clear = made.changes[0]
    assert (clear.command, clear.cookie_mask, clear.table_id) == (ofp.OFPFC_DELETE, 0, ofp.OFPTT_ALL)


@pytest.mark.parametrize("words", ["", "None", "rack 7", "fairq_ryu: normal"])
def test_a_bridge_keeps_its_rules_unless_it_asks_for_paths(made, words):
    made.join(words, FOREIGN)
    assert made.way is Way.NORMAL and made.changes == []
    assert 7 not in made.site.fabric.bridges
    assert "7 rules of others" in made.site.windows.inventory.limits(7, False)[-1]


def test_a_bridge_without_rules_gets_one_that_forwards(alone):
    alone.join()
    assert alone.way is Way.NORMAL and alone.forwards
    assert len(alone.site.windows.inventory.limits(7, False)) == 1


def test_the_rule_that_forwards_is_not_installed_twice(alone):
    alone.join("", FORWARDS)
    assert alone.way is Way.NORMAL and alone.changes == []


# Loops


def test_a_bridge_that_is_not_the_first_waits_for_its_links(made):
    made.join()
    assert made.way is Way.NORMAL and made.changes == [] and made.discovers
    limit, _ = made.site.windows.inventory.limits(7, False)
    assert limit.startswith("nothing is forwarded yet")
    made.clear()
    assert not made.connections._decided(made.bridge, False, False)
    assert made.changes == []
    made.count(EMPTY)
    assert made.forwards and len(made.site.windows.inventory.limits(7, False)) == 1


def test_the_first_bridge_forwards_at_once_and_is_looked_at(alone):
    """A cable may lead from it to itself."""
    alone.join()
    assert alone.forwards and alone.discovers and 7 in alone.site.fabric.loops.bridges
    alone.clear()
    assert alone.connections._decided(alone.bridge, True, True)
    assert alone.changes[0].command == ofp.OFPFC_DELETE and alone.changes[0].cookie == beside.COOKIE_NORMAL


def test_a_bridge_that_others_have_given_rules_while_it_waited_gets_none(made):
    made.join()
    made.connections._decided(made.bridge, False, False)
    made.count(FOREIGN)
    made.connections._decided(made.bridge, False, False)
    assert made.changes == [] and made.discovers is False
    assert "7 rules of others" in made.site.windows.inventory.limits(7, False)[-1]
    assert 7 not in made.site.fabric.loops.bridges


def test_a_loop_that_closes_while_the_rules_are_counted_keeps_the_rule_out(made):
    made.join("fairq_ryu: normal")
    made.connections._decided(made.bridge, False, False)
    made.connections._decided(made.bridge, True, True)
    made.count(EMPTY)
    assert not any(each.command == ofp.OFPFC_ADD for each in made.changes)


@pytest.mark.parametrize(("words", "waits"), [("", True), ("fairq_ryu: normal", False)])
def test_a_bridge_that_hangs_on_a_loop_forwards_if_it_asks_for_that(made, words, waits):
    made.join(words)
    assert made.connections._decided(made.bridge, True, False) is waits


def test_a_bridge_that_joins_the_fabric_starts_a_search(made):
    searches: list[float] = []
    made.site.fabric.loops.search = searches.append
    made.join("fairq_ryu: paths")
    assert len(searches) == 1


def test_in_a_loop_a_bridge_that_nobody_asks_about_is_governed_by_paths(made, caplog):
    made.join()
    made.connections._decided(made.bridge, True, True)
    made.list_rules(rule(beside.COOKIE_DISCOVERY))
    assert made.way is Way.PATHS and made.site.fabric.bridges[7] is made.bridge
    assert 7 not in made.site.fabric.loops.bridges
    assert not any(getattr(each, "cookie", None) == beside.COOKIE_NORMAL for each in made.changes)
    assert "is part of a loop, so it is governed by paths" in caplog.text and "dp-desc" in caplog.text
    assert made.events[-2:] == ["bridge 7 has gone", "bridge 7 has connected"]
    made.connections.ask_descriptions()
    made.describe("rack 7")  # nobody asks, still
    assert made.way is Way.PATHS


def test_rules_that_others_have_installed_meanwhile_stay(made):
    made.join()
    made.connections._decided(made.bridge, True, True)
    made.list_rules(THEIRS)
    assert made.way is Way.NORMAL and made.changes == [] and made.discovers is False


def test_in_a_loop_a_bridge_that_asks_for_normal_forwards_nothing_and_says_so(made, caplog):
    made.join("fairq_ryu: normal")
    made.connections._decided(made.bridge, False, False)
    made.count(EMPTY)
    made.clear()
    assert made.connections._decided(made.bridge, True, True)  # another has closed a loop
    assert made.connections._decided(made.bridge, True, True)
    (removal,) = made.changes
    assert (removal.command, removal.cookie) == (ofp.OFPFC_DELETE, beside.COOKIE_NORMAL)
    limit, _ = made.site.windows.inventory.limits(7, False)
    assert "part of a loop; ask for paths" in limit and "Ask for paths" in caplog.text
    made.clear()
    made.connections._decided(made.bridge, False, False)  # it has gone
    made.count(EMPTY)
    assert made.forwards


def test_a_bridge_that_leaves_paths_with_several_links_waits(made):
    made.join("fairq_ryu: paths")
    topology = made.site.fabric.topology
    topology.add_port(PortKey(7, 4), True, 0.0)
    for number in (3, 4):
        topology.assume_link(PortKey(7, number), 100.0)
    made.clear()
    made.describe("fairq_ryu: normal")
    made.count(ONLY_PATHS)
    assert made.way is Way.NORMAL and made.site.fabric.loops.waiting == [7]
    assert not any(getattr(each, "cookie", None) == beside.COOKIE_NORMAL for each in made.changes)


def rule(cookie: int, **match: Any) -> Any:
    """A listed rule of another layout of our tables, or of others."""
    return SimpleNamespace(cookie=cookie, match=match)


OLD, THEIRS = rule(0xFA17_0002_0000_0001), rule(0x5ADC15C0)
RYUS = rule(0, eth_type=pipeline.ETH_TYPE_LLDP)


@pytest.mark.parametrize("rules", [(OLD,), (OLD, RYUS)])
def test_a_bridge_of_an_earlier_controller_that_nobody_asks_about_stays_as_it_was(made, caplog, rules):
    """To forward by itself could make a loop; no rule of others can be lost."""
    made.join("", RuleCount(2, 1, 0), *rules)
    assert made.way is Way.PATHS
    assert "dp-desc" in caplog.text


def test_rules_of_an_earlier_controller_are_replaced_by_the_one_that_forwards(alone):
    alone.join("fairq_ryu: normal", ONLY_PATHS)
    assert alone.way is Way.NORMAL
    first, removal, *_ = alone.changes
    assert first.cookie == beside.COOKIE_NORMAL and not first.flags  # first: traffic does not stop
    assert (removal.command, removal.cookie, removal.cookie_mask) == (ofp.OFPFC_DELETE, *beside.OF_PIPELINE)


@pytest.mark.parametrize(("words", "rules"), [("fairq_ryu: normal", ()), ("", (OLD, THEIRS))])
def test_beside_rules_of_others_the_one_that_forwards_replaces_none(alone, words, rules):
    alone.join(words, MIXED, *rules)
    assert alone.way is Way.NORMAL
    removal, last, *meters = alone.changes
    assert {each.command for each in meters} == {ofp.OFPMC_DELETE}
    assert (removal.command, removal.cookie, removal.cookie_mask) == (ofp.OFPFC_DELETE, *beside.OF_PIPELINE)
    assert last.cookie == beside.COOKIE_NORMAL and last.flags == ofp.OFPFF_CHECK_OVERLAP


def test_a_bridge_that_asks_to_be_left_alone_gets_nothing(made, caplog):
    made.connections.connected(made.bridge)
    made.describe("fairq_ryu: windows")
    assert made.way is Way.WINDOWS and made.changes == []
    assert [type(each).__name__ for each in made.bridge.sent] == ["OFPDescStatsRequest"]
    assert caplog.text.count("left alone") == 1


def test_names_and_counters_of_a_normal_bridge_are_known(made):
    made.join("", FOREIGN)
    inventory = made.site.windows.inventory
    assert inventory.ports(7) == [PortKey(7, 3)] and inventory.name(PortKey(7, 3)) == "eth3"
    assert inventory.role(PortKey(7, 3)) == "unknown"
    assert inventory.counted[7] is made.bridge and inventory.counted[1] is made.site.bridge


# By the setting


def test_with_way_windows_a_bridge_gets_no_message_at_all(caplog):
    made = Made(Way.WINDOWS)
    made.connections.connected(made.bridge)
    made.connections.ask_descriptions()
    assert made.way is Way.WINDOWS and made.bridge.sent == []
    assert caplog.text.count("left alone") == 1


@pytest.mark.parametrize("found", [FOREIGN, ONLY_PATHS, EMPTY])
def test_way_normal_never_clears(found):
    made = Made(Way.NORMAL)
    made.connections.connected(made.bridge)
    made.count(found)
    assert made.way is Way.NORMAL
    deletes = [each for each in made.changes if getattr(each, "command", None) == ofp.OFPFC_DELETE]
    assert all(each.cookie_mask for each in deletes if type(each).__name__ == "OFPFlowMod")


def test_way_paths_asks_no_bridge():
    made = Made(Way.PATHS)
    made.connections.connected(made.bridge)
    assert [type(each).__name__ for each in made.bridge.sent] == ["OFPFlowStatsRequest"]
    made.list_rules()
    assert made.way is Way.PATHS


# Changes


def test_a_bridge_that_asks_for_paths_later_joins_the_fabric(made):
    made.join("", FOREIGN)
    made.connections.ask_descriptions()
    made.describe("fairq_ryu: paths")
    made.list_rules()
    assert made.way is Way.PATHS and made.site.windows.inventory.beside(7) is None
    assert made.events[-2:] == ["bridge 7 has gone", "bridge 7 has connected"]


def test_a_bridge_that_does_not_ask_for_paths_any_more_leaves_the_fabric(made):
    made.join("fairq_ryu: paths")
    made.site.fabric.host_seen(made.bridge, Frame(CLIENT_MAC, "ff:ff:ff:ff:ff:ff", ()), PortKey(7, 3), 0.1)
    made.clear()
    made.describe("")
    made.count(ONLY_PATHS)
    assert made.way is Way.NORMAL and 7 not in made.site.fabric.bridges
    assert made.changes[0].cookie == beside.COOKIE_NORMAL  # traffic does not stop
    assert made.site.fabric.hosts.by_mac(CLIENT_MAC) is None and not made.site.fabric.topology.knows(7)


@pytest.mark.parametrize(("found", "stays"), [(FORWARDS, True), (RuleCount(8, 0, 1), False)])
def test_a_bridge_that_is_left_alone_later_loses_our_rules_if_it_has_others(alone, found, stays):
    alone.join("", EMPTY)
    alone.clear()
    alone.describe("fairq_ryu: windows")
    alone.count(found)
    assert alone.way is Way.WINDOWS
    assert [(each.cookie, each.cookie_mask) for each in alone.changes] == (
        [] if stays else [beside.OF_NORMAL]
    )


def test_the_same_description_changes_nothing(made):
    made.join("", FOREIGN)
    made.clear()
    for _ in range(3):
        made.describe("")
    made.describe("rack 8")
    assert made.way is Way.NORMAL and made.bridge.sent == []


def test_a_bridge_that_connects_again_is_decided_anew(made):
    made.join("fairq_ryu: paths")
    former = made.bridge
    made.again()
    made.join("", FOREIGN)
    assert made.way is Way.NORMAL and made.changes == []
    made.connections.disconnected(former)
    assert made.way is Way.NORMAL and 7 not in made.site.fabric.bridges
    made.connections.disconnected(made.bridge)
    assert made.way is None and made.events[-1] == "bridge 7 has gone"


@pytest.mark.parametrize("reached", range(3))
def test_a_bridge_that_disconnects_while_it_joins_is_forgotten(made, reached):
    steps = [lambda: made.describe(""), lambda: made.count(FOREIGN)]
    made.connections.connected(made.bridge)
    for step in steps[:reached]:
        step()
    made.connections.disconnected(made.bridge)
    made.describe("")
    assert made.way is None
    made.again()
    made.join("", FOREIGN)
    assert made.way is Way.NORMAL


def test_a_bridge_that_lists_rules_without_end_is_disconnected(monkeypatch, caplog):
    monkeypatch.setattr(bridge_joining, "MOST_RULES", 3)
    made = Made()
    made.connections.connected(made.bridge)
    made.list_too_many(3)
    assert not made.bridge.closed, "it was not asked"
    made.describe("fairq_ryu: paths")
    made.count(EMPTY)
    made.list_too_many(3)
    assert made.bridge.closed and "more than 3 rules" in caplog.text

"""Announcements of applications and services: which flow they match, and how long they are valid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.fabric.deadlines.announcements import AnnouncementChange, Announcements, Full
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import Announcement, FlowKey

A, B = "10.0.0.1", "10.0.0.2"
FLOW = FlowKey(A, B, 33000, 5001)


def flow(sport: int, dport: int = 5001) -> FlowKey:
    return FlowKey(A, B, sport, dport)


def wants(**more: Any) -> Request:
    return Request(**{"src": A, "dst": B, "dport": 5001, "size": 1000, "deadline": 0.5, **more})


@dataclass(frozen=True)
class Service:
    port: int
    size: int | None = None
    deadline: float | None = None
    to_server: bool = False

    def covers(self, key: FlowKey) -> bool:
        return self.port == (key.dport if self.to_server else key.sport)

    def announcement(self, start: float) -> Announcement:
        return Announcement(self.size, None if self.deadline is None else start + self.deadline)


def start(table: Announcements, key: FlowKey, now: float = 0.0, **more: Any) -> Announcement | None:
    return table.flow_started(key, more.get("opener", key), more.get("since", now), now)


# Before the flow and after


def test_before_the_flow_by_source_port():
    table = Announcements()
    _, changes = table.add(wants(sport=33000), 10.0)
    assert changes == []
    assert start(table, flow(33001), 11.0) is None
    assert start(table, FLOW, 11.0) == Announcement(1000, 11.5)
    assert start(table, FLOW, 12.0) == Announcement(1000, 11.5)  # reported twice, used once


def test_a_priority_alone_is_announced():
    table = Announcements()
    table.add(Request(A, B, 5001, priority=400), 10.0)
    assert start(table, FLOW, 11.0) == Announcement(None, None, 400)


def test_before_the_flow_without_source_port():
    table = Announcements()
    table.add(wants(size=1), 0.0)
    table.add(wants(size=2), 0.0)
    assert start(table, flow(1, 80), 1.0) is None
    assert start(table, FLOW.reversed, 1.0) is None
    found = [start(table, flow(port), 1.0) for port in (1, 2, 3)]
    assert found == [Announcement(1, 1.5), Announcement(2, 1.5), None]


@pytest.mark.parametrize("sport", [33000, None])
def test_an_announcement_without_a_vlan_is_for_a_flow_of_any(sport):
    table = Announcements()
    table.add(wants(sport=sport), 0.0)
    assert start(table, FLOW._replace(vlan=20), 1.0) == Announcement(1000, 1.5)
    assert start(table, FLOW._replace(vlan=10), 1.0) is None
    # After the flow, the one that started last; when that has ended, the other.
    later = Announcements()
    for at, vlan in enumerate((0, 10, 20), 1):
        start(later, FLOW._replace(vlan=vlan), at)
    later.flow_ended(FLOW._replace(vlan=20))
    _, (change,) = later.add(wants(sport=sport), 5.0)
    assert change == AnnouncementChange(FLOW._replace(vlan=10), Announcement(1000, 2.5))


@pytest.mark.parametrize("sport", [33000, None])
@pytest.mark.parametrize("vlan", [0, 10])
def test_an_announcement_with_a_vlan_is_for_flows_of_it_only(sport, vlan):
    here, other = FLOW._replace(vlan=vlan), FLOW._replace(vlan=20)
    table = Announcements()
    table.add(wants(sport=sport, vlan=vlan), 0.0)
    assert start(table, other, 1.0) is None and start(table, here, 1.0) == Announcement(1000, 1.5)
    table = Announcements()
    start(table, here, 1.0)
    start(table, other, 2.0)
    _, changes = table.add(wants(sport=sport, vlan=vlan), 3.0)
    assert changes == [AnnouncementChange(here, Announcement(1000, 1.5))]
    assert table.of(other) is None


@pytest.mark.parametrize("sport", [33000, None])
def test_an_announcement_with_the_vlan_has_priority_over_one_without(sport):
    table = Announcements()
    table.add(wants(sport=sport, size=1), 0.0)
    table.add(wants(sport=sport, size=2, vlan=10), 0.0)
    assert start(table, FLOW._replace(vlan=10), 1.0).size == 2
    assert start(table, FLOW, 1.0).size == 1
    # The source port is more than the VLAN.
    table.add(wants(size=3, vlan=10), 2.0)
    table.add(wants(sport=33001, size=4), 2.0)
    assert start(table, flow(33001)._replace(vlan=10), 3.0).size == 4


def test_one_announcement_for_each_vlan():
    table = Announcements()
    for vlan in (10, 20, None):
        table.add(wants(sport=33000, size=1, vlan=vlan), 0.0)
    assert len(table) == 3
    table.add(wants(sport=33000, size=2, vlan=20), 0.0)
    assert [(entry.request.vlan, entry.request.size) for entry in table.listed(1.0)] == [
        (10, 1),
        (None, 1),
        (20, 2),
    ]


def test_a_count_of_flows():
    table = Announcements()
    table.add(wants(count=2), 0.0)
    assert [start(table, flow(port), 1.0) is not None for port in (1, 2, 3)] == [True, True, False]


def test_after_the_flow_by_source_port():
    table = Announcements()
    start(table, FLOW, 1.0)
    entry, changes = table.add(wants(sport=33000, ttl=1), 100.0)
    assert changes == [AnnouncementChange(FLOW, Announcement(1000, 1.5))]  # from the start of the flow
    assert list(entry.flows) == [FLOW]
    assert table.of(FLOW) == Announcement(1000, 1.5)


def test_after_the_flow_without_source_port_the_last_that_started():
    table = Announcements()
    for port, since in [(1, 1.0), (2, 3.0), (3, 2.0), (4, 9.0)]:
        start(table, flow(port), since)
    table.add(wants(sport=4), 10.0)
    assert table.add(wants(), 10.0)[1] == [AnnouncementChange(flow(2), Announcement(1000, 3.5))]
    assert table.add(wants(), 10.0)[1] == [AnnouncementChange(flow(3), Announcement(1000, 2.5))]


def test_an_old_flow_does_not_match():
    table = Announcements()
    start(table, flow(1), 0.0)
    assert table.add(wants(ttl=5), 6.0)[1] == []
    assert start(table, flow(2), 7.0) is not None


def test_an_ended_flow_does_not_match():
    table = Announcements()
    start(table, FLOW, 0.0)
    table.flow_ended(FLOW)
    table.flow_ended(FLOW)
    assert table.add(wants(), 0.1)[1] == []
    assert table.of(FLOW) is None


# Priorities


def test_a_source_port_has_priority_over_others_and_all_over_services():
    table = Announcements([Service(5001, size=7, to_server=True)])
    assert start(table, flow(3)) == Announcement(7, None)
    table.flow_ended(flow(3))
    table.add(wants(size=1), 0.0)
    table.add(wants(size=2, sport=33000), 0.0)
    assert start(table, FLOW) == Announcement(2, 0.5)
    assert start(table, flow(2)) == Announcement(1, 0.5)
    assert start(table, flow(3)) == Announcement(7, None)


def test_an_announcement_replaces_the_service_of_a_running_flow():
    table = Announcements([Service(5001, size=7, to_server=True)])
    start(table, FLOW)
    entry, changes = table.add(wants(), 1.0)
    assert changes == [AnnouncementChange(FLOW, Announcement(1000, 0.5))]
    assert table.withdraw(entry.id, 2.0) == [AnnouncementChange(FLOW, Announcement(7, None))]


def test_the_last_announcement_of_a_flow_counts():
    table = Announcements()
    table.add(wants(sport=33000, size=1), 0.0)
    table.add(wants(sport=33000, size=2), 0.0)
    assert len(table) == 1
    assert start(table, FLOW) == Announcement(2, 0.5)
    assert table.add(wants(sport=33000, size=3), 1.0)[1] == [AnnouncementChange(FLOW, Announcement(3, 0.5))]
    assert len(table) == 1


def test_services_by_direction():
    up, down = Service(5001, size=1, to_server=True), Service(5001, size=2)
    table = Announcements([up, down])
    assert start(table, FLOW) == Announcement(1, None)
    assert table.flow_started(FLOW.reversed, FLOW, 0.0, 0.0) == Announcement(2, None)


def test_a_client_port_that_equals_a_service_port():
    table = Announcements([Service(33000, deadline=0.1)])
    assert start(table, FLOW) is None
    # The initiator of old connections is not known.
    assert start(table, flow(33000, 6), opener=None) == Announcement(None, 0.1)


# Their end


def test_an_announcement_without_a_flow_expires():
    table = Announcements()
    table.add(wants(ttl=5), 0.0)
    table.add(wants(ttl=50, sport=1), 0.0)
    assert start(table, FLOW, 5.0) is None
    assert [entry.request.sport for entry in table.listed(5.0)] == [1]
    assert table.listed(50.0) == []


def test_a_flow_keeps_its_announcement():
    table = Announcements()
    entry, _ = table.add(wants(ttl=5, count=2), 0.0)
    start(table, FLOW, 1.0)
    assert table.listed(100.0) == [entry]
    assert start(table, flow(2), 100.0) is None
    assert table.of(FLOW) == Announcement(1000, 1.5)
    table.flow_ended(FLOW)
    assert len(table) == 0


def test_an_announcement_for_more_flows_is_kept_when_its_first_flow_ends():
    table = Announcements()
    table.add(wants(count=2), 0.0)
    start(table, flow(1))
    table.flow_ended(flow(1))
    assert start(table, flow(2)) is not None
    table.flow_ended(flow(2))
    assert len(table) == 0


def test_an_announcement_of_many_flows_is_kept_until_the_last_ends():
    table = Announcements()
    table.add(wants(count=2), 0.0)
    for port in (1, 2):
        start(table, flow(port))
    table.flow_ended(flow(1))
    assert len(table) == 1
    table.flow_ended(flow(2))
    assert len(table) == 0


def test_withdrawn_before_the_flow():
    table = Announcements()
    entry, _ = table.add(wants(), 0.0)
    assert table.get(entry.id, 0.0) is entry
    assert table.withdraw(entry.id, 1.0) == []
    assert start(table, FLOW, 1.0) is None
    for unknown in (entry.id, 0, 99):
        with pytest.raises(KeyError):
            table.withdraw(unknown, 1.0)


def test_withdrawn_from_a_flow_and_announced_again():
    table = Announcements()
    start(table, FLOW)
    entry, _ = table.add(wants(), 0.0)
    assert table.withdraw(entry.id, 0.0) == [AnnouncementChange(FLOW, None)]
    assert table.add(wants(size=5), 0.0)[1] == [AnnouncementChange(FLOW, Announcement(5, 0.5))]


def test_the_table_is_bounded():
    table = Announcements(capacity=2)
    table.add(wants(sport=1), 0.0)
    table.add(wants(ttl=5), 0.0)
    with pytest.raises(Full, match="2 announcements"):
        table.add(wants(), 1.0)
    table.add(wants(sport=1, size=2), 1.0)  # it replaces the former one
    table.add(wants(), 6.0)  # one has expired
    assert len(table) == 2


# Nonsense


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"src": "10.0.0"}, "src: '10.0.0' is not an IP address"),
        ({"src": 1}, "src: 1 is not an IP address"),
        ({"dst": "fe80::1%eth0"}, "dst: 'fe80::1%eth0' is not"),
        ({"dst": "x" * 500}, "dst: 'xxx"),
        ({"dst": "fe80::1"}, "same IP version"),
        ({"dst": A}, "are the same"),
        ({"dport": 0}, "dport: not a number from 1 to 65535"),
        ({"dport": 65536}, "dport: not a number"),
        ({"dport": True}, "dport: not a whole number"),
        ({"dport": 80.0}, "dport: not a whole number"),
        ({"sport": -1}, "sport: not a number"),
        ({"size": 0}, "size: not a number"),
        ({"size": 1 << 63}, "size: not a number"),
        ({"size": 1.5}, "size: not a whole number"),
        ({"deadline": 0}, "deadline: not more than 0"),
        ({"deadline": -1.0}, "deadline: not more than 0"),
        ({"deadline": math.nan}, "deadline: not more than 0"),
        ({"deadline": math.inf}, "deadline: not more than 0"),
        ({"deadline": 86401}, "at most 86400 seconds"),
        ({"deadline": 10**400}, "at most 86400 seconds"),
        ({"deadline": "1"}, "deadline: not a number of seconds"),
        ({"priority": 0}, "priority: not a number from 1 to 1000"),
        ({"priority": 1001}, "priority: not a number from 1 to 1000"),
        ({"priority": True}, "priority: not a whole number"),
        ({"ttl": 0}, "ttl: not more than 0"),
        ({"ttl": False}, "ttl: not a number"),
        ({"count": 0}, "count: not a number from 1"),
        ({"count": 2, "sport": 1}, "just one flow"),
        ({"vlan": -1}, "vlan: not a number from 0 to 4095"),
        ({"vlan": 4096}, "vlan: not a number from 0 to 4095"),
        ({"vlan": True}, "vlan: not a whole number"),
        ({"size": None, "deadline": None}, "nothing to announce"),
    ],
)
def test_invalid_values_are_refused(wrong, text):
    with pytest.raises(ValueError) as refused:
        wants(**wrong)
    assert text in str(refused.value)
    assert len(str(refused.value)) < 200


def test_addresses_are_read_as_addresses():
    found = wants(src="FE80:0::1", dst="fe80::0002")
    assert (found.src, found.dst) == ("fe80::1", "fe80::2")


def test_flows_may_start_and_end_while_the_first_announcement_without_a_port_is_prepared():
    table = Announcements()
    for sport in (1, 2, 3):
        start(table, flow(sport), now=0.1 * sport)
    steps = table.prepare(wants())
    next(steps)
    table.flow_ended(flow(3))
    table.flow_ended(flow(1))
    start(table, flow(4, dport=9), now=0.5)
    other = table.prepare(wants())  # another announcement comes meanwhile
    for _ in (*steps, *other):
        pass
    assert list(table.prepare(wants())) == []
    assert [change.flow for change in table.add(wants(), 0.6)[1]] == [flow(2)]
    start(table, flow(5), now=0.7)
    assert [change.flow for change in table.add(wants(ttl=1.0), 0.8)[1]] == [flow(5)]
    for sport in (2, 4, 5):
        table.flow_ended(flow(sport, dport=9 if sport == 4 else 5001))
    assert not table._bare and not table._running


# Any sequence of events

PORTS, VLANS = st.integers(1, 3), st.sampled_from([0, 10])
steps = st.one_of(
    st.tuples(st.just("start"), PORTS, VLANS),
    st.tuples(st.just("end"), PORTS, VLANS),
    st.tuples(st.just("add"), st.none() | PORTS, st.none() | VLANS, st.floats(0.1, 3), st.integers(1, 2)),
    st.tuples(st.just("withdraw"), st.integers(1, 12)),
)


@given(st.lists(st.tuples(steps, st.floats(0, 1)), max_size=50))
def test_the_reported_changes_give_the_state_of_the_table(steps):
    """The changes give the current state; no announcement is used for more flows than it is for."""
    table, now = Announcements(capacity=4), 0.0
    running: dict[FlowKey, Announcement | None] = {}
    for step, later in steps:
        now += later
        changes: list[AnnouncementChange] = []
        match step:
            case ("start", port, vlan):
                key = flow(port)._replace(vlan=vlan)
                found = start(table, key, now)
                running.setdefault(key, found)
                assert running[key] == found
            case ("end", port, vlan):
                table.flow_ended(flow(port)._replace(vlan=vlan))
                running.pop(flow(port)._replace(vlan=vlan), None)
            case ("add", sport, vlan, ttl, count):
                about = {"sport": sport, "ttl": ttl, "count": 1 if sport else count, "vlan": vlan}
                try:
                    entry, changes = table.add(wants(**about, size=1 + int(now * 1000)), now)
                    assert table.get(entry.id, now) is entry
                    assert all(vlan in (None, change.flow.vlan) for change in changes)
                except Full:
                    assert len(table) == 4
            case (_, number):
                try:
                    changes = table.withdraw(number, now)
                except KeyError:
                    assert number not in [entry.id for entry in table.listed(now)]
        for change in changes:
            running[change.flow] = change.announcement
        assert running == {key: table.of(key) for key in running}
        for entry in table.listed(now):
            assert entry.waits(now) or entry.flows
            assert len(entry.flows) + entry.left <= entry.request.count
            assert all(key in running for key in entry.flows)
            assert all(entry.request.vlan in (None, key.vlan) for key in entry.flows)
        assert len(table) <= 4
    for port in (1, 2, 3):
        for vlan in (0, 10):
            table.flow_ended(flow(port)._replace(vlan=vlan))
    assert table.listed(now + 10) == []
    assert not (table._waiting or table._bare or table._of or table._running)

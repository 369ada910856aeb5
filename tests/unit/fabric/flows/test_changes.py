"""A switch that reports changes has the same effects as one that repeats all its records."""

from __future__ import annotations

import random

import pytest

from fairq_ryu.fabric.flows import changes
from fairq_ryu.fabric.flows.connection import FlowEvent
from fairq_ryu.fabric.flows.table import GRACE, FlowTable, SeenFlow
from fairq_ryu.model import FlowKey, PortKey
from tests.support.flownet import (
    BACK,
    IDLE,
    KEY,
    LOCAL,
    OVER3,
    OVER4,
    A,
    B,
    C,
    Net,
    on,
    record,
    segment,
)

REFRESH = 1.0


class Reporting(Net):
    """A network whose switches report changes."""

    def report(self, *seen: SeenFlow, now: float, dpid: int = 1, gone: tuple[FlowKey, ...] = ()) -> None:
        """A switch reports changes, and has no more."""
        if not self.table.lists(dpid):
            self.table.list_anew(dpid, now)
        self.replay(self.table.changed(dpid, seen, gone, now))
        for events in self.table.changes_complete(dpid, now, REFRESH, now):
            self.replay(events)

    def pass_time(self, now: float, until: float, *dpids: int) -> None:
        """Switches report every second that nothing has changed."""
        while now < until:
            now = min(now + 1.0, until)
            for dpid in dpids or (1,):
                self.report(now=now, dpid=dpid)

    def tell_over(self, path, now: float, **more) -> None:
        for dpid in {port.dpid for port in path.forward}:
            seen = [record(KEY, port, **more) for port in path.forward if port.dpid == dpid]
            seen += [record(BACK, port, **more) for port in path.backward if port.dpid == dpid]
            self.report(*seen, now=now, dpid=dpid)


@pytest.fixture
def net() -> Reporting:
    return Reporting(LOCAL)


@pytest.fixture
def fabric() -> Reporting:
    return Reporting(OVER3)


def pair(**more) -> tuple[SeenFlow, SeenFlow]:
    return record(KEY, B, **more), record(BACK, A, **more)


def test_a_listed_connection_stays_counted_while_it_is_silent(net):
    net.open()
    net.report(*pair(), now=1.0)
    net.pass_time(1.0, 50.0)
    assert net.counted == on(LOCAL)
    net.replay(net.table.expire(1.0 + IDLE + 1))
    assert net.counted == set()


def test_one_that_is_never_listed_is_not(net):
    net.open()
    net.report(now=1.0)
    assert net.counted == on(LOCAL)
    net.report(now=GRACE + 1)
    assert net.counted == set()


def test_one_that_says_a_word_now_and_then_is_known_after_its_second_report(net):
    """As after a restart of the controller: each report comes long after the word before it."""
    net.report(*pair(idle=2.5), now=0.0)
    net.pass_time(0.0, 7.0)
    net.report(*pair(idle=9.5), now=7.0)  # repeated, and nothing was sent
    assert net.counted == set()
    net.report(*pair(idle=2.5), now=8.0)
    assert net.counted == on(LOCAL)


def test_words_before_the_end_do_not_bring_a_connection_back(net):
    """It was known, and the switch has missed its end: its record shows what was sent before that."""
    net.open()
    net.report(*pair(idle=0.1), now=1.0)
    net.close(2.5)
    net.replay(net.table.expire(5.0))
    assert net.counted == set()
    net.report(*pair(idle=3.0), now=5.0)
    net.report(*pair(idle=4.0), now=6.0)
    assert net.counted == set()


def test_a_closed_one_is_not_alive_because_it_has_sent(net):
    net.report(*pair(idle=2.5), now=0.0)
    net.report(*pair(idle=2.0, closed=True), now=8.0)
    net.report(*pair(idle=IDLE + 1), now=IDLE + 20.0)
    assert net.counted == set()


def test_what_began_after_the_flows_were_read_is_not_missed(net):
    net.report(now=0.0)
    net.open(now=5.0)
    events = [each for step in net.table.changes_complete(1, 5.0, REFRESH, 9.0) for each in step]
    assert events == [] and net.counted == on(LOCAL)


def test_a_direction_that_is_not_listed_any_more_leaves_after_the_grace(net):
    net.open()
    net.report(*pair(), now=1.0)
    net.report(now=10.0, gone=(KEY, BACK))
    assert net.counted == on(LOCAL)
    net.report(now=10.1 + GRACE)
    assert net.counted == set() and net.state is None


def test_a_new_connection_with_the_ports_of_a_listed_one_is_confirmed_by_it(net):
    net.open()
    net.report(*pair(), now=1.0)
    net.close(now=2.0)
    net.open(now=3.0, isn=10**6, peer_isn=10**7)
    net.pass_time(3.0, 12.0)
    assert net.counted == on(LOCAL)


def test_an_end_that_was_too_early_to_be_believed_is_looked_at_again(net):
    net.open(now=0.0)
    net.report(*pair(), now=0.5)
    net.report(*pair(closed=True), now=1.0)  # within the grace after the handshake
    assert net.counted == on(LOCAL)
    net.pass_time(1.0, 4.5)
    assert net.counted == set()


def test_a_flow_that_has_moved_leaves_its_old_path_without_another_report_of_it(fabric):
    """The old path's switches do not report it again: it does not send there any more."""
    fabric.path = None
    fabric.tell_over(OVER3, 50.0)
    assert fabric.counted == on(OVER3)
    for now in (51.0, 52.0, 53.0, 54.0, 55.0, 56.0):
        fabric.tell_over(OVER4, now)
        fabric.report(now=now, dpid=3)
    assert fabric.counted == on(OVER4)


def test_a_switch_that_has_not_reported_for_a_while_is_not_the_old_path(fabric):
    """It reports a flow that sends at the refresh interval only."""
    fabric.open(now=49.0)
    fabric.tell_over(OVER3, 50.0)
    seen = [record(KEY, OVER3.forward[0]), record(BACK, OVER3.backward[-1])]
    fabric.replay(fabric.table.changed(1, seen, (), 54.0))
    for dpid in (2, 3):
        for events in fabric.table.changes_complete(dpid, 50.5, REFRESH, 54.0):
            fabric.replay(events)
    assert fabric.counted == on(OVER3)


def test_a_forged_reset_does_not_end_a_connection_that_sends(net):
    net.open()
    net.report(*pair(), now=1.0)
    net.send("R", KEY, 5.0, seq=77)
    assert net.counted == set()
    net.report(*pair(closed=True), now=5.2)
    net.report(*pair(closed=True), now=6.2)
    assert net.counted == on(LOCAL)
    net.pass_time(6.2, 9.0)
    assert net.counted == on(LOCAL)


def test_a_flow_is_counted_at_the_port_of_its_last_report(net):
    net.open()
    net.report(*pair(), now=1.0)
    net.report(record(KEY, C), now=9.0)
    assert net.counted == {(C, KEY), (A, BACK)}


def test_a_rule_that_expires_does_not_end_a_connection_that_a_switch_lists(net):
    net.open()
    net.report(*pair(), now=10.0)
    net.report(now=30.0)
    for key in (KEY, BACK):
        net.replay(net.table.removed(key, 31.0))
    assert net.counted == on(LOCAL)
    for key in (KEY, BACK):  # the switch has not been heard since
        net.replay(net.table.removed(key, 34.0))
    assert net.counted == set()


def test_a_switch_that_begins_anew_lists_nothing(net):
    net.open()
    net.report(*pair(), now=1.0)
    net.table.list_anew(1, 20.0)
    net.report(now=21.0)
    assert net.counted == on(LOCAL)
    net.report(now=22.1)
    assert net.counted == set()


def test_only_contradictions_are_looked_at_again(net):
    net.open()
    net.report(*pair(), now=1.0)
    listing = net.table._entries.listings[1]
    assert set(listing.flows) == {KEY, BACK} and not listing.recheck
    (own,) = (each for each in net.entry.directions if each == KEY)
    assert next(each for each in listing.flows if each == KEY) is own  # the key is kept once
    net.fin(KEY, now=2.0)
    net.report(*pair(), now=2.2)
    assert set(listing.recheck) == {KEY}
    net.report(record(KEY, B, closed=True), now=3.0)
    assert not listing.recheck


# Records of flows that only continue take a short way

FLOWS = [
    flow for flow in (KEY, KEY._replace(sport=7), KEY._replace(sport=8)) for flow in (flow, flow.reversed)
]


def some_records(chance: random.Random) -> list[SeenFlow]:
    """Records of some directions: most continue at their port, others have moved, ended or are old."""
    found = []
    for flow in FLOWS:
        if chance.random() < 0.7:
            port = 1 + FLOWS.index(flow) % 2 + 2 * (chance.random() < 0.05)
            idle = chance.choice((0.0, 0.0, 0.3, 3.0, 20.0, IDLE + 1))
            closed, size = chance.random() < 0.1, chance.randrange(10**6)
            more = {"closed": closed, "idle": idle, "bytes": size, "rewritten": size // 10, "rtt": 0.01}
            found.append(record(flow, PortKey(1, port), **more))
    return found


def test_the_short_way_has_the_effects_of_all_rules(monkeypatch):
    chance, short = random.Random(7), changes._continues
    tables = FlowTable(IDLE), FlowTable(IDLE)
    taken: list[bool] = []

    def noted(*arguments) -> bool:
        taken.append(short(*arguments))
        return taken[-1]

    def step(table: FlowTable, seen: list[SeenFlow], gone: list[FlowKey], now: float) -> list[FlowEvent]:
        if not table.lists(1):
            table.list_anew(1, now)
        events = table.changed(1, seen, gone, now)
        events += [event for part in table.changes_complete(1, now, 1.0, now) for event in part]
        return events + table.expire(now)

    for turn in range(2000):
        now, seen = 0.5 * turn, some_records(chance)
        gone = [flow for flow in FLOWS if chance.random() < 0.02]
        flags = chance.choice(("", "", "", "", "", "", "S", "F", "R"))
        copied = segment(chance.choice((KEY, BACK)), flags, chance.randrange(100)) if flags else None
        outcomes = []
        for table, way in zip(tables, (noted, lambda *_: False), strict=True):
            monkeypatch.setattr(changes, "_continues", way)
            events = [] if copied is None else table.segment(copied, PortKey(1, 1), None, now)
            events += step(table, seen, gone, now)
            listing = table._entries.listings[1]
            at = table._entries.flow_ports.flows_of(1)
            outcomes.append((events, table._entries.by_flow, listing.flows, listing.recheck, set(at)))
        assert outcomes[0] == outcomes[1], f"turn {turn}"
    assert 1000 < sum(taken) < len(taken)

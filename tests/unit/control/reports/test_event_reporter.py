"""Which changes in a controller are reported as events."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairq_ryu.channel.tenants import TenantState
from fairq_ryu.control.reports import event_reporter
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.fabric.topology.paths import Assigned, Moved
from fairq_ryu.model import Congestion, PortKey
from tests.support.restsite import KEY, RestSite

PORT = PortKey(2, 1)


class Reported:
    """The reported events, and a clock that the test sets."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.reporter = EventReporter(self, lambda _: "s2-eth1")

    def __call__(self, occurrence: Occurrence) -> None:
        self.events.append(occurrence)

    @property
    def kinds(self) -> list[Kind]:
        return [event[0] for event in self.events]


@pytest.fixture
def reported() -> Reported:
    return Reported()


def test_a_queue_without_congestion_is_no_event(reported):
    reported.reporter.congestion(PORT, Congestion.NOM, 0)
    assert reported.events == []
    for state in (Congestion.CNG, Congestion.CNG, Congestion.NOM, Congestion.NOM):
        reported.reporter.congestion(PORT, state, 51_482)
    assert reported.events == [
        (Kind.CNG, "the queue of s2-eth1 (2:1) is congested: 51,482 bytes", PORT, None, 1),
        (Kind.NOM, "the queue of s2-eth1 (2:1) is calm again: 51,482 bytes", PORT, None, 1),
    ]


def test_incasts_begin_and_end(reported):
    for incast in (None, False, True, True, False, None):
        reported.reporter.incast(PORT, incast)
    assert reported.kinds == [Kind.INCAST, Kind.INCAST]
    assert "limited" in reported.events[0][1] and "over" in reported.events[1][1]


def test_the_share_of_a_tenant_breaks_and_holds_again(reported):
    for broken in (True, False):
        reported.reporter.share(PORT, "blue", broken)
    assert reported.events == [
        (
            Kind.SHARE,
            "s2-eth1 (2:1): tenant blue has more flows than its share holds segments",
            PORT,
            None,
            1,
        ),
        (Kind.SHARE, "s2-eth1 (2:1): tenant blue has its share again", PORT, None, 1),
    ]


LINE = 6_250_000


def test_others_on_the_line_before_a_far_queue_come_and_go(reported):
    for others in (False, False, True, True, False, False):
        reported.reporter.hidden_queue(PORT, LINE, 3_750_000, others)
    assert reported.events == [
        (
            Kind.OTHERS,
            "the line before s2-eth1 (2:1) carries other traffic: 30 Mbit/s are left",
            PORT,
            None,
            1,
        ),
        (Kind.OTHERS, "the line before s2-eth1 (2:1) is ours again", PORT, None, 1),
    ]


def test_a_rate_that_is_found_or_changes_is_an_event_and_one_that_was_known_is_none(reported):
    reported.reporter.hidden_queue(PORT, LINE, 6_125_000, False)
    assert reported.events == []
    for line in (0, 6_250_000, 6_250_000):
        reported.reporter.hidden_queue(PortKey(2, 9), line, 0, False)
    assert reported.events == [
        (Kind.RATE, "the line before s2-eth1 (2:9) carries 50 Mbit/s", PortKey(2, 9), None, 1)
    ]


def test_a_law_that_no_switch_runs_is_reported_with_each_reason_once(reported):
    for reason in (None, "unstable", "unstable", None, "unstable", "no room"):
        reported.reporter.law_missing(PORT, reason)
    assert reported.events == [
        (Kind.LAW, f"s2-eth1 (2:1) has no windows: {reason}", PORT, None, 1)
        for reason in ("unstable", "unstable", "no room")
    ]


def test_a_deadline_is_missed_once_and_not_before(reported):
    late: list[PortKey | None] = [PORT]
    reported.reporter.deadline(KEY, 5.0)
    reported.reporter.deadline(KEY, 5.0)  # it passes two ports
    reported.reporter.deadline(KEY.reversed, None)
    reported.reporter.report_overdue(4.9, lambda *_: late[0])
    assert reported.events == []
    reported.reporter.report_overdue(5.1, lambda *_: late[0])
    assert reported.kinds == [Kind.MISSED]
    assert reported.events[0][2:4] == (PORT, KEY)
    reported.reporter.deadline(KEY, 6.0)
    late[0] = None  # all bytes have arrived
    reported.reporter.report_overdue(7.0, lambda *_: late[0])
    assert len(reported.events) == 1


def test_the_last_announced_deadline_of_a_flow_counts(reported):
    for when in (5.0, 9.0, 7.0):
        reported.reporter.deadline(KEY, when)
    reported.reporter.report_overdue(6.9, lambda *_: PORT)
    assert reported.events == []
    reported.reporter.report_overdue(10.0, lambda *_: PORT)
    assert reported.kinds == [Kind.MISSED]
    reported.reporter.deadline(KEY, 11.0)
    reported.reporter.deadline(KEY, None)
    reported.reporter.report_overdue(12.0, lambda *_: PORT)
    assert reported.kinds == [Kind.MISSED]


def test_repeated_announcements_of_a_flow_take_one_place(reported, monkeypatch):
    monkeypatch.setattr(event_reporter, "_MAX_DEADLINES", 3)
    for number in range(10_000):
        reported.reporter.deadline(KEY, 5.0 + number)
    assert len(reported.reporter._deadlines) < 200
    others = [KEY._replace(sport=number) for number in (1, 2, 3)]
    for other in others:
        reported.reporter.deadline(other, 6.0)
    reported.reporter.deadline(KEY, 6.5)  # an update of a known flow always fits
    reported.reporter.report_overdue(7.0, lambda *_: PORT)
    assert [event[3] for event in reported.events] == [*others[:2], KEY]


def test_congestion_is_reported_again_after_an_agent_reconnects(reported):
    other = PORT._replace(dpid=3)
    for port in (PORT, other):
        reported.reporter.congestion(port, Congestion.CNG, 1)
    reported.reporter.agent(PORT.dpid, connected=False)
    reported.reporter.agent(PORT.dpid, connected=True)
    for port in (PORT, other):
        reported.reporter.congestion(port, Congestion.CNG, 1)
    assert [event[2] for event in reported.events if event[0] is Kind.CNG] == [PORT, other, PORT]


def test_a_path_that_changes(reported):
    old = Assigned(KEY, PortKey(1, 1), PORT, ((PortKey(1, 2), PortKey(2, 2)),), True)
    reported.reporter.moved(Moved(old, old._replace(way=((PortKey(1, 3), PortKey(2, 3)),))))
    assert reported.events == [
        (Kind.REPIN, f"{KEY} now goes by 1:3 2:1, was by 1:2 2:1", None, KEY, 1),
    ]


# The whole controller


def kinds(site: RestSite) -> dict[str, int]:
    return {event.kind: event.times for event in site.streams.history.since()}


def test_congestion_is_forgotten_with_the_policy_that_watched_it():
    """Otherwise the next policy with thresholds would have the port congested, and its end would never be
    reported.
    """
    site = RestSite("sed")
    site.congestion(Congestion.CNG)
    site.sample()

    def change(policy: str) -> None:
        assert site.ask("/v1/policy", "PATCH", b'{"policy": "%s"}' % policy.encode()).status_code == 200
        site.sample()

    def state() -> str | None:
        site.service.ports._until = 0
        rows = site.ask("/v1/ports").json["ports"]
        (row,) = [row for row in rows if (int(row["dpid"], 16), row["port"]) == PORT]
        return row["state"]

    assert state() == "CNG"
    change("fairq")
    assert state() is None
    change("sed")
    assert state() == "NOM"
    site.congestion(Congestion.CNG)
    assert state() == "CNG"
    site.streams.history.due(time.monotonic() + 9)
    assert sum(event.times for event in site.streams.history.since(kind=Kind.CNG)) == 2


def test_losses_are_counted_and_a_count_that_restarts_is_none():
    site = RestSite()
    for drops in (0, 5, 7, 2):
        site.sample(drops=drops)
    site.streams.history.due(time.monotonic() + 9)
    rows = [site.streams.row(event) for event in site.streams.history.since(kind=Kind.LOSS)]
    assert sum(row["count"] for row in rows if row["port"] == 1) == 7
    assert rows[0]["message"] == "the queue of s2-eth1 (2:1) has dropped: 5 packets"


def test_a_missed_deadline():
    site = RestSite("sed")
    body = b'{"src": "10.0.0.1", "dst": "10.0.0.2", "dport": 80, "deadline": 0.001, "size": 9000}'
    assert site.ask("/v1/announcements", "POST", body).status_code == 201
    assert "missed" not in kinds(site)
    site.windows.report_overdue(time.monotonic() + 1)
    (event,) = site.streams.history.since(kind=Kind.MISSED)
    assert event.flow == KEY and event.message == f"{KEY} has missed its deadline"


def test_an_incast_is_an_event():
    site = RestSite("iqm-paper")
    site.open(40, 40000)
    site.sample(backlog=120_000)
    assert kinds(site)["incast"] == 1


def test_a_broken_share_is_an_event():
    site = RestSite("tenants")
    for floored in (3, 4):
        state = TenantState(0, 1, 0, 90, 50, 9000, floored, 65536, 5840)
        site.windows.tenants.reported(site.link, [state], time.monotonic())
    assert kinds(site)["share"] == 1


def test_agents_connect_and_disconnect():
    site = RestSite()
    site.windows.agent_disconnected(site.link)
    words = [event.message for event in site.streams.history.since(kind=Kind.AGENT)]
    assert words[0] == "the agent of bridge 2 has connected"
    site.streams.history.due(time.monotonic() + 9)
    assert site.streams.history.since(kind=Kind.AGENT)[-1].message == "the agent of bridge 2 has gone"


def test_the_history_by_request():
    site = RestSite("sed")
    site.congestion(Congestion.CNG)
    site.congestion(Congestion.NOM)
    answer = site.ask("/v1/events?kind=cng").json
    (row,) = answer["events"]
    assert (row["kind"], row["dpid"], row["port"], row["count"]) == ("cng", f"{2:016x}", 1, 1)
    assert abs(row["time"] - time.time()) < 60
    assert answer["last"] == row["id"] + 1 and answer["limit"] == 100
    later = site.ask(f"/v1/events?since={row['id']}").json["events"]
    assert [each["kind"] for each in later] == ["nom"]
    assert len(site.ask("/v1/events?limit=1").json["events"]) == 1

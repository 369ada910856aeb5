"""The benchmarks of several controllers: what simulated agents say of their owners, and what is a miss."""

from __future__ import annotations

import time

import pytest

from bench import takeover
from bench.owners import Case, Found, Measured, row
from bench.simulated_switches import Report, Settings, Switch
from bench.takeover import Takeover, summary
from fairq_ryu.channel.segment_copies import SegmentMatch
from fairq_ryu.model import WindowKind, WindowRule
from fairq_ryu.packet import parse
from fairq_ryu.packet.headers import ETH_IP, SYN

RULE = WindowRule(WindowKind.POOL, 1000)


@pytest.fixture
def switch():
    settings = Settings(1, 7, 1, ports=2, lasting=1, rate=50.0, seconds=1.0, bridges=False)
    return Switch(7, settings, time.monotonic())


def test_a_bridge_has_a_new_owner_when_all_its_rules_are_of_the_new_one(switch):
    def install(port):
        switch.data.install_rule(port, RULE, time.monotonic_ns() + 10**10, port)

    install(1)
    install(2)
    switch.server.generation = 3
    switch._note_owner(time.monotonic_ns())
    assert switch.take_report(time.monotonic_ns()).owned == {}, "the rules are of the owner before"
    install(1)
    switch._note_owner(time.monotonic_ns())
    assert switch.take_report(time.monotonic_ns()).owned == {}
    before = time.monotonic()
    install(2)
    switch._note_owner(time.monotonic_ns())
    (generation, since) = switch.take_report(time.monotonic_ns()).owned["7"]
    assert generation == 3 and before <= since <= time.monotonic()
    install(1)
    switch._note_owner(time.monotonic_ns())
    assert switch.take_report(time.monotonic_ns()).owned["7"] == (3, since)


def test_agents_without_bridges_copy_segments_where_they_leave(switch, monkeypatch):
    found = []
    monkeypatch.setattr(switch.server.copier, "deliver", lambda copies, _: found.extend(copies))
    switch.advance(switch.flows.began + 0.011)
    syn, answer = found
    assert syn.rule == answer.rule == SegmentMatch(ETH_IP, SYN)
    key = parse.parse(syn.frame).tcp.key
    assert [switch.flows.address(each.port) for each in (syn, answer)] == [key.dst, key.src]


def test_reports_of_owners_are_put_together():
    whole = Report()
    for each in (Report(channels=2, owned={"1": (4, 5.0)}), Report(channels=1, owned={"2": (1, 6.0)})):
        whole.add(each)
    assert (whole.channels, whole.owned) == (3, {"1": (4, 5.0), "2": (1, 6.0)})


def test_one_bridge_that_waits_for_longer_than_a_lease_is_a_miss(monkeypatch, capsys):
    fine, late = Takeover(0, [1.0, 1.5], 0), Takeover(1, [1.0, 2.25], 3)
    assert summary([fine, late]).startswith(
        "1 of 2 within the lease of 2 s; until the last bridge 1.50 to 2.25"
    )
    monkeypatch.setattr(takeover, "take_overs", lambda *_: iter([fine]))
    takeover.main()
    assert "| 1 | c0 | 2 | 1.00 | 1.50 | 0 |" in capsys.readouterr().out
    monkeypatch.setattr(takeover, "take_overs", lambda *_: iter([fine, late]))
    with pytest.raises(SystemExit) as ended:
        takeover.main()
    assert ended.value.code == 1


def test_a_row_of_the_table():
    case = Case(2, 100, 2, 5, 100.0)
    assert case.settings([1, 2])[0].rate == 0.5
    each = [Found(50, 0.25, 0.4, 10**8), Found(50, 0.5, 0.3, 9 * 10**7)]
    cells = row(case, Measured(each, 99.6, 1100, 0, 1.2, 2.5, 100))
    wanted = (
        "2 | 50, 50 | 200 | 1000 | 100 | 1100 | 0.25, 0.50 | 0.75 | 40% | 100 MB | 0 | 1.20 s | 2.50 s | 100"
    )
    assert " | ".join(cells) == wanted

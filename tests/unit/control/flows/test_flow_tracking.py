"""Copies of segments are processed in their order, later; records of agents correct what copies missed."""

from __future__ import annotations

import pytest

from fairq_ryu.control.flows import flow_tracking
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.flows import entries
from fairq_ryu.model import PortKey
from fairq_ryu.packet import addresses, build, headers
from fairq_ryu.port_settings import PortSettings, VlanMode
from tests.support.agent_link import agent_link
from tests.support.flownet import KEY
from tests.support.site import CLIENT_MAC, SERVER_MAC
from tests.support.workers import Workers


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    return Workers(monkeypatch)


def test_copies_are_processed_later_in_their_order(workers):
    for number in range(5):
        workers.copy(number)
    assert workers.counted == []
    workers.process_copies()
    assert workers.counted == list(range(5))
    workers.copy(5)
    workers.process_copies()
    assert workers.counted == list(range(6))


def test_other_greenlets_run_between_copies_that_take_long(workers):
    seen = []
    workers.meanwhile = lambda: seen.append(len(workers.counted))
    for number in range(4):
        workers.copy(number)
    workers.process_copies()
    assert seen == []  # the clock stands still: they took no time
    times = iter(11.0 + 0.0006 * tick for tick in range(100))
    workers.clock = lambda: next(times)
    for number in range(4, 8):
        workers.copy(number)
    workers.process_copies()
    assert seen and seen[0] < 8


def test_with_too_many_queued_copies_the_first_is_processed_at_once(workers, monkeypatch):
    monkeypatch.setattr(flow_tracking, "MAX_COPIES", 2)
    for number in range(4):
        workers.copy(number)
    assert workers.counted == [0, 1]  # the first of the queue
    workers.process_copies()
    assert workers.counted == [0, 1, 2, 3]


def test_a_copy_that_fails_does_not_end_the_worker(workers, monkeypatch, caplog):
    workers.fail_with(0, monkeypatch)
    for number in range(3):
        workers.copy(number)
    workers.process_copies()
    assert workers.counted == [1, 2] and "a bad day" in caplog.text


def test_the_deadline_of_a_copied_syn_counts_from_its_arrival(workers):
    wanted = Request(KEY.src, KEY.dst, KEY.dport, sport=KEY.sport, size=5000, deadline=0.5)
    workers.site.windows.announce(wanted, 10.9)
    workers.copy(0, 11.0)
    workers.now = 11.2
    workers.process_copies()
    assert workers.site.windows.announcements.of(KEY).deadline == pytest.approx(11.5)


def test_an_agent_is_told_the_deadline_of_a_copied_syn_before_its_turn_in_the_queue(workers, monkeypatch):
    seen = []
    monkeypatch.setattr(workers.site.windows, "syn_copied", lambda *what: seen.append(what))
    workers.copy(0, 11.0)
    assert seen == [(KEY, 1, 11.0)] and workers.counted == []
    workers.process_copies()
    assert len(seen) == 1


def test_copies_of_an_agent_at_an_access_port_and_at_a_trunk_are_of_one_connection(workers):
    """The SYN leaves by an access port without a tag, its answer by a trunk with one."""
    site, link = workers.site, agent_link()
    access = PortSettings(VlanMode.ACCESS, 10)
    site.fabric.logical_ports.replace(link.dpid, {2: access})
    ends = addresses.packed(KEY.src), addresses.packed(KEY.dst)
    syn = build.tcp(b"".join(ends), (KEY.sport, KEY.dport), 100, 0, headers.SYN, 512)
    answer = build.tcp(b"".join(ends[::-1]), (KEY.dport, KEY.sport), 7, 101, headers.SYN | headers.ACK, 512)
    macs = headers.mac_bytes(CLIENT_MAC), headers.mac_bytes(SERVER_MAC)
    bare, tagged = build.tcp_frame(macs, ends, syn), build.tcp_frame(macs[::-1], ends[::-1], answer)
    tagged = tagged[:12] + b"\x81\x00\x00\x0a" + tagged[12:]
    for port, frame in ((2, bare), (1, tagged)):
        workers.tracker.copied_by_agent(link, port, frame, 11.0)
    workers.process_copies()
    (connection,) = site.flows
    assert connection.forward == KEY._replace(vlan=10)
    assert set(connection.directions[connection.forward].ports) == {PortKey(link.dpid, 2)}


def test_a_syn_of_a_flood_is_only_noted(workers, monkeypatch):
    monkeypatch.setattr(entries, "HALF_OPEN_PER_PORT", 0)
    learned = []
    monkeypatch.setattr(workers.site.windows, "syn_seen", learned.append)
    workers.copy(0)
    workers.process_copies()
    assert workers.counted == [] and learned == [] and workers.site.flows.parked == 1

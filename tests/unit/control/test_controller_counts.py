"""What the controller counts where it happens: packet-ins by kind, refusals, and how late its loop is."""

from __future__ import annotations

import logging
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.apps import controller as module
from fairq_ryu.apps.controller import Controller
from fairq_ryu.channel import dropped_packet, flow_records, oxm
from fairq_ryu.control.agent_messages import AgentMessages
from fairq_ryu.control.counters import PACKET_INS, Counts
from fairq_ryu.openflow import pipeline
from fairq_ryu.ryu_compat.limited_log import RateLimitedLog
from tests.unit.flownet import KEY

ETHERNET = bytes.fromhex("ffffffffffff020000000001")
ARP = ETHERNET + bytes.fromhex("0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002")
LLDP = ETHERNET + bytes.fromhex("88cc") + bytes(46)


def nothing(*_: Any, **__: Any) -> None:
    pass


@pytest.fixture
def made() -> Any:
    """As much of a controller as is looked at; bridge 1 is connected, and its agent."""
    agent = SimpleNamespace(id=oxm.agent_dpid(1))
    link = SimpleNamespace(dpid=1, datapath=agent, drops_refused=nothing)
    fake = SimpleNamespace(
        counts=Counts(),
        _refusals=RateLimitedLog(logging.getLogger(__name__)),
        fabric=SimpleNamespace(
            bridges={1: object()}, host_seen=nothing, answer_arp=nothing, no_meters=lambda d: unmetered.add(d)
        ),
        windows=SimpleNamespace(links={1: link}, lost=nothing, counted=nothing),
        logger=logging.getLogger(__name__),
        _network_changed=nothing,
        _on_lldp=nothing,
        _segment=nothing,
        _hold=nothing,
        _apply=nothing,
    )
    unmetered = fake.unmetered = set()
    fake._link = partial(Controller._link, fake)
    fake._agent_messages = AgentMessages(fake.windows, nothing, fake.counts, fake.logger)
    fake.agent = agent
    return fake


def came(made: Any, data: bytes, cookie: int, datapath: Any = None) -> dict[str, int]:
    """A packet-in; returns what was counted."""
    message = SimpleNamespace(
        datapath=datapath or SimpleNamespace(id=1),
        data=data,
        cookie=cookie,
        match={"in_port": 3},
        total_len=len(data),
    )
    Controller.on_packet_in(made, SimpleNamespace(msg=message))
    return {kind: count for kind, count in made.counts.packet_ins.items() if count}


@pytest.mark.parametrize(
    ("data", "cookie", "kind"),
    [
        (ARP, pipeline.COOKIE_ARP, "arp"),
        (ARP, pipeline.COOKIE_SOURCE, "source"),
        (ARP, pipeline.COOKIE_TCP, "tcp"),
        (ARP, pipeline.COOKIE_HELD, "held"),
        (LLDP, 0, "lldp"),
        (ARP, 0xBEEF, "other"),
        (b"\0" * 5, pipeline.COOKIE_TCP, "other"),  # what cannot be read
    ],
)
def test_packets_are_counted_by_the_rule_that_sent_them(made, data, cookie, kind):
    assert came(made, data, cookie) == {kind: 1}


def test_what_agents_hand_over_is_a_loss_and_what_strangers_send_is_not(made):
    assert came(made, ARP, dropped_packet.COOKIE_DROPPED, made.agent) == {"loss": 1}
    assert came(made, ARP, 7, made.agent) == {"loss": 1, "other": 1}
    stranger = SimpleNamespace(id=oxm.agent_dpid(1))  # an older connection of the same agent
    assert came(made, ARP, dropped_packet.COOKIE_DROPPED, stranger) == {"loss": 1, "other": 2}


def test_kinds_are_the_ones_that_are_told():
    assert tuple(Counts().packet_ins) == PACKET_INS
    assert set(module._KINDS.values()) | {"lldp", "loss", "other"} == set(PACKET_INS)


def refused(made: Any, datapath: Any, kind: int) -> None:
    message = SimpleNamespace(datapath=datapath, type=kind, code=1, xid=1, data=b"")
    Controller.on_error(made, SimpleNamespace(msg=message))


def test_refusals_are_counted_and_a_missing_meter_is_none(made):
    refused(made, made.agent, ofp.OFPET_FLOW_MOD_FAILED)
    refused(made, SimpleNamespace(id=1), ofp.OFPET_FLOW_MOD_FAILED)
    refused(made, SimpleNamespace(id=1), ofp.OFPET_METER_MOD_FAILED)
    assert made.counts.refused == {"agent": 1, "bridge": 1}
    assert made.unmetered == {1}


def test_flows_whose_handshake_the_agent_has_not_seen_are_counted(made):
    link = made.windows.links[1]
    made.flows = SimpleNamespace(reconcile=nothing)
    found = [
        flow_records.FlowRecord(KEY, 1, flags, 7, 1460, 0, 0, 0, 0)
        for flags in (
            flow_records.KNOWN,
            0,
            flow_records.ESTABLISHED,
            flow_records.CLOSED,
            flow_records.KNOWN | flow_records.CLOSED,
        )
    ]
    Controller._on_records(made, link, found, 1.0)
    assert link.flows_unscaled == 2


# The loop


class Loop:
    """A loop of one agent, run for some turns with a clock of its own, that is late each time."""

    def __init__(self, made: Any, monkeypatch: Any, interval: float | None, late: float, woken: bool):
        self.now, self.late, self.turns, self.woken = 100.0, late, 5, woken
        self.made = made
        made.config = SimpleNamespace(number=lambda *_: 1.0)
        made.flows = SimpleNamespace(idle_timeout=60.0)
        made.windows.interval = lambda _: interval
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "hub", SimpleNamespace(sleep=self.sleep))
        link = SimpleNamespace(dpid=1, ask_records=nothing, ask_queues=self.ask, wake=self)
        made.windows.links = {1: link}
        Controller._watch(made, link)

    def ask(self, now: float) -> None:
        self.now += 0.0005  # sending takes its time
        self.turns -= 1
        if not self.turns:
            self.made.windows.links = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late

    def clear(self) -> None:
        pass

    def wait(self, seconds: float) -> bool:
        self.sleep(0.01 if self.woken else seconds)
        return self.woken


@pytest.mark.parametrize(("interval", "late"), [(0.002, 0.004), (0.002, 0.0), (None, 0.004)])
def test_the_loop_notes_how_late_it_goes_on(made, monkeypatch, interval, late):
    Loop(made, monkeypatch, interval, late, woken=False)
    assert made.counts.loop_delay.histogram.count == 5
    assert made.counts.loop_delay.histogram.sum == pytest.approx(5 * late, abs=1e-9)
    assert made.counts.loop_delay.recent(0.99) == pytest.approx(late, abs=1e-9)


def test_sending_that_takes_longer_than_the_interval_makes_it_late(made, monkeypatch):
    Loop(made, monkeypatch, 0.0001, 0.0, woken=False)
    assert made.counts.loop_delay.histogram.sum == pytest.approx(5 * 0.0004)


def test_being_woken_is_not_being_late(made, monkeypatch):
    Loop(made, monkeypatch, None, 0.004, woken=True)
    assert made.counts.loop_delay.histogram.count == 0

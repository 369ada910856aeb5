"""Segments that are not of their connection: bridges copy them as any other. That a FIN or RST is out of
sequence, only agents know.
"""

from __future__ import annotations

import logging
import time

import pytest

from fairq_ryu.control.flows import flow_tracking
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.paths.fabric_controller import PortState
from fairq_ryu.fabric.flows.table import FlowState
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet.parse import Frame
from tests.support.flownet import reconcile, record, segment
from tests.support.restsite import KEY, RestSite

CLIENT, SERVER = PortKey(1, 1), PortKey(2, 1)
MACS = "02:00:00:00:00:01", "02:00:00:00:00:02"


class Forged:
    """Two bridges with two links between them, and a connection that is pinned to one."""

    def __init__(self) -> None:
        self.site = RestSite("fairq")
        fabric, self.now = self.site.fabric, time.monotonic()
        for dpid in (1, 2):
            fabric.port_changed(dpid, PortState(3, True, f"s{dpid}-eth3"), self.now)
        for source, target in ((PortKey(1, 3), PortKey(2, 3)), (PortKey(2, 3), PortKey(1, 3))):
            fabric.link_seen(source, target, self.now)
        fabric.refresh()
        self.tracker = FlowTracker(fabric, self.site.flows, self.site.windows, logging.getLogger(__name__))
        self.path = fabric.paths.get(KEY)
        assert self.path is not None and self.path.pinned
        self.site.log.clear()

    def comes(self, flags: str, key=KEY, seq=1 << 30, ack=0, port: PortKey | None = None) -> None:
        """The copy of a segment far outside the window."""
        here = key == KEY
        macs = MACS if here else MACS[::-1]
        tcp = segment(key, flags, seq, ack)
        frame = Frame(*macs, (), key.src, None, tcp, 0)
        self.tracker.apply_segment(frame, tcp, port or (CLIENT if here else SERVER), self.now)

    def records(self, after: float = 1.0) -> None:
        """The agent lists the connection as open."""
        self.now += after
        seen = [record(KEY, SERVER, bytes=9000), record(KEY.reversed, PortKey(2, 2))]
        self.tracker.apply(reconcile(self.site.flows, 2, seen, self.now), self.now)

    @property
    def pins(self) -> int:
        """The rules of the connection that bridges were sent, and were not told to remove."""
        rules = [each for _, each in self.site.log if getattr(each, "cookie", None) == pipeline.COOKIE_PATH]
        return len([each for each in rules if each.command == pipeline.ofp.OFPFC_ADD])


@pytest.fixture
def forged() -> Forged:
    return Forged()


@pytest.mark.parametrize("flags", ["R", "F"])
def test_a_connection_that_agents_list_as_open_gets_its_path_back(forged, flags):
    fabric = forged.site.fabric
    forged.comes(flags)
    forged.comes(flags, KEY.reversed)
    assert forged.site.flows.get(KEY).state is FlowState.CLOSED and fabric.paths.get(KEY) is None
    for _ in range(4):
        forged.records()
    assert forged.site.flows.get(KEY).state is FlowState.ESTABLISHED
    assert fabric.paths.get(KEY) == forged.path and forged.pins == 4
    assert forged.site.flows.get(KEY).path is not None
    assert not forged.tracker._ended


def test_its_path_is_one_that_works_now(forged):
    fabric = forged.site.fabric
    forged.comes("R")
    failed = forged.path.path.forward[0]
    fabric.port_changed(1, PortState(failed.port, False, ""), forged.now)
    fabric.refresh()
    for _ in range(3):
        forged.records()
    assert fabric.paths.get(KEY).path.forward[0] not in (None, failed)


def test_another_connection_with_the_same_ports_keeps_its_own_path(forged):
    paths = forged.site.fabric.paths
    before = paths.pinned
    forged.comes("R")
    forged.comes("S", seq=77)
    assert paths.get(KEY) is not None and not forged.tracker._ended
    assert (forged.pins, paths.pinned) == (4, before), "installed once"


def test_what_is_kept_of_ended_connections_is_bounded(forged, monkeypatch):
    monkeypatch.setattr(flow_tracking, "MAX_ENDED", 2)
    forged.site.open(4, sport=40000)
    for number in range(4):
        forged.comes("R", KEY._replace(sport=40000 + number))
    assert [key.sport for key in forged.tracker._ended] == [40002, 40003]
    monkeypatch.setattr(flow_tracking, "_ENDED_S", -1.0)
    forged.tracker.drop_expired()
    assert not forged.tracker._ended


@pytest.mark.parametrize("key", [KEY, KEY.reversed])
@pytest.mark.parametrize("flags", ["S", "SA"])
def test_a_syn_from_elsewhere_moves_no_path(forged, flags, key):
    """It would lead the connection's ACKs to the port of whoever has sent it."""
    fabric = forged.site.fabric
    fabric.port_changed(1, PortState(4, True, "s1-eth4"), forged.now)
    forged.comes(flags, key, port=PortKey(1, 4))
    assert fabric.paths.get(KEY) == forged.path and forged.pins == 0
    fabric.release_path(KEY, closed=False)  # its host has moved
    forged.comes(flags, key, port=PortKey(1, 4))
    assert fabric.paths.get(KEY) is None and forged.pins == 0


@pytest.mark.parametrize("moved", [False, True])
def test_a_connection_that_uses_the_ports_again_has_a_path(forged, moved):
    """Although the end of the former one was not seen."""
    fabric = forged.site.fabric
    if moved:
        fabric.release_path(KEY, closed=False)
    forged.comes("S", seq=1 << 20)
    assert (fabric.paths.get(KEY) is None) is moved
    forged.comes("SA", KEY.reversed, ack=(1 << 20) + 1)
    assert fabric.paths.get(KEY).source == CLIENT
    assert forged.site.flows.get(KEY).path is not None

"""A controller without Ryu whose tables all have entries, for the tests of the metrics."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from ryu.lib import hub

from fairq_ryu.channel import port_mode
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.port_mode import PortWindows
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.tenants import LEFT_OUT, TenantState
from fairq_ryu.channel.window_law import LawState
from fairq_ryu.config.loader import Config
from fairq_ryu.control.operations.state import ControllerState
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.reports.port_traffic import PortTrafficTable
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.topology.paths import Assigned
from fairq_ryu.far_queue import Why
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.metrics.exporter import Metrics
from fairq_ryu.model import Congestion, FlowKey, FlowProgress, PortKey, WindowKind, WindowPlan, WindowRule
from fairq_ryu.openflow import meters
from fairq_ryu.policies.choice import choose
from fairq_ryu.rest.streams import Streams
from tests.support.flownet import BACK, KEY, A, B, C
from tests.support.site import LIMIT, Site

QUEUE, PEAK, DROPS, RATE = 40_000, 90_000, 7, 25_000_000
ROUND_TRIP, LATE = 0.0007, 0.0042
TX, RX = 123_456_789, 4321


def of(site: Site) -> Any:
    """The part of a controller that the metrics read."""
    streams = Streams()
    state = ControllerState(
        fabric=site.fabric,
        flows=site.flows,
        windows=site.windows,
        counts=Counts(),
        traffic=PortTrafficTable(),
        history=streams.history,
        event_queue=hub.Queue(128),
        open_streams=lambda: len(streams),
        copies_waiting=lambda: 7,
    )
    return SimpleNamespace(
        state=state,
        streams=streams,
        fabric=site.fabric,
        flows=site.flows,
        windows=site.windows,
        counts=state.counts,
        traffic=state.traffic,
        events=state.event_queue,
    )


def full_controller() -> Any:
    """A bridge with an agent and another without; RSED with congestion, flows, a deadline and losses; IQM at
    one port; AFQ as the queue law of all.
    """
    iqm, rsed = choose("iqm", Config()).default, choose("rsed", Config()).default
    site = Site(rsed, (("s1-eth3", iqm),), config=Config({("fairq_ryu", "queue_law"): "afq"}))
    controller = of(site)
    now = time.monotonic()
    site.fabric.hosts.seen("02:00:00:00:00:0a", A, KEY.src)
    site.fabric.topology.add_switch(2, [(1, True)], now)
    link, site.fabric.names[PortKey(2, 1)] = site.link, 's2-"eth1"'
    meter = SimpleNamespace(meter_id=meters.OF_CONTROLLER, band_stats=[SimpleNamespace(packet_band_count=11)])
    site.fabric.copy_meters.counted(site.bridge, [meter])
    site.fabric.repins = 2

    site.windows.announce(Request(KEY.src, KEY.dst, KEY.dport, size=9_000_000, deadline=5.0), now)
    site.open(now=now)
    site.windows.name_ports(now)
    count = SimpleNamespace(port_no=B.port, duration_sec=9, duration_nsec=0, tx_bytes=TX, rx_bytes=RX)
    controller.traffic.counted(1, [count])
    for port in (A, B, C):
        record = QueueDepth(port.port, 1, QUEUE, PEAK, LIMIT, RATE, DROPS, 5_000_000_000, 10**9)
        site.windows.queues_read(link, [record], now)
    site.windows.threshold_crossed(link, CongestionNotice(B.port, Congestion.CNG, QUEUE, 10**9), now)
    site.windows.port_flows_reported(link, B.port, [], now)
    controller.streams.add(Occurrence(Kind.CNG, "", B))
    controller.streams.add(Occurrence(Kind.CNG, "", B))  # reported later, counted now
    controller.streams.add(Occurrence(Kind.LOSS, "", B, times=7))
    engine = site.windows.engine
    engine.progressed(B, {KEY: FlowProgress(1000, 2000, 0.001, True)}, now)
    # One plan of each kind, independent of the laws.
    engine._ports[A].plan = WindowPlan(pool=50_000, flows={BACK: 3000})
    engine._ports[B].plan = WindowPlan(window=6000)
    law = FairQLaw(turns=1)
    engine._ports[C].plan = WindowPlan(rule=WindowRule(WindowKind.LAW, C.port, law))
    counts = LawState(C.port, C.port, *(0,) * 13, waiting=2, held=9, released=4, overdue=3, overflowed=1)
    link.ports[C.port].window_law.state = counts
    judged = QueueLawState(B.port, B.port, AfqLaw.kind, 1, 4, 900, 50, 3, 880, 2, 500 << 16, 4, 2000)
    site.windows.queue_laws.reported(link, [judged])
    left_out = TenantState(0, B.port, LEFT_OUT, 0, 18, 0, 0, 0, 0)
    tenants = [TenantState(0, B.port, 0, 4, 50, 9000, 3, 65536, 40_000), left_out]
    site.windows.tenants.reported(link, tenants, now)
    site.windows.recovery.reported({"lost": 1, "ignored": 1})
    site.windows.injector.counts.update({"wake": 3, "dupack": 1, "dupack: addresses not known": 2})
    site.fabric.paths._keep(Assigned(KEY, A, B, ((A, B),), True))
    hidden = HiddenQueue(C.port, Why.RAISED, 800, 900, 10**7, 9_960_000, 10**7, 0, 0)
    for samples in (5, 9):
        found = hidden._replace(excess_ns=samples * 10**6, samples=samples)
        site.windows.hidden_queues_reported(link, [found])
    link.modes.reported([PortWindows(B.port, port_mode.ACT, 9, 7, 2)])
    link.flows_unscaled = 4

    link.request_queues(now)
    link.queue_reply_complete(now + ROUND_TRIP)
    controller.counts.loop_delay.observe(LATE)
    controller.counts.packet_ins["tcp"] += 5
    controller.counts.faults.counts["tick"] += 2
    controller.metrics = Metrics(controller.state)
    controller.metrics.observe_request("GET", "/v1/ports", 200, 0.003)
    return controller


def installed_rules(controller: Any) -> dict[Any, int]:
    """The rules that were sent to the agent and not removed, by their match."""
    installed: dict[Any, int] = {}
    for dpid, message in controller.windows.links[1].datapath.log:
        # Those of queue laws are in a table of their own.
        if dpid == controller.windows.links[1].datapath.id and getattr(message, "table_id", None) == 0:
            installed[str(message.match)] = message.command == 0
    return installed


def flow_words() -> set[str]:
    """What must not be a label: addresses and ports of flows."""
    keys: tuple[FlowKey, ...] = (KEY, BACK)
    return {key.src for key in keys} | {f'"{key.sport}"' for key in keys}

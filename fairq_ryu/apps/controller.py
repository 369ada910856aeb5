"""The controller of all policies: each event of Ryu leads to one call.

Two kinds of switches connect: bridges (stock Open vSwitch), where hosts and flows are tracked, and their
agents, which report queues and enforce windows. Nothing is decided here: this module makes the parts of
:mod:`fairq_ryu.control`, starts their jobs, and hands each event of Ryu to the part that it concerns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from ryu.app.wsgi import WSGIApplication
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.apps import cluster, garbage, settings
from fairq_ryu.apps.jobs import Job, every, poll, start
from fairq_ryu.control.agents.agent_copies import AgentCopies
from fairq_ryu.control.arrivals import agent_messages, bridge_connections, gone_switches
from fairq_ryu.control.arrivals.agent_messages import AgentMessages
from fairq_ryu.control.arrivals.agent_polling import AgentPolling
from fairq_ryu.control.arrivals.bridge_connections import BridgeConnections
from fairq_ryu.control.arrivals.gone_switches import GoneSwitches
from fairq_ryu.control.arrivals.packet_ins import COPIES, PacketIns
from fairq_ryu.control.arrivals.refusals import Refusals
from fairq_ryu.control.arrivals.rerouting import Rerouting
from fairq_ryu.control.arrivals.switches import Switches
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.flows.record_tracking import RecordTracker
from fairq_ryu.control.flows.syn_admission import SynAdmission
from fairq_ryu.control.operations import announcing, far_control
from fairq_ryu.control.operations.announcing import Announcing
from fairq_ryu.control.operations.far_control import FarControl
from fairq_ryu.control.operations.mode_control import ModeControl
from fairq_ryu.control.operations.policy_control import PolicyControl
from fairq_ryu.control.operations.requests import Requests
from fairq_ryu.control.operations.state import ControllerState
from fairq_ryu.control.operations.tenant_control import TenantOperations
from fairq_ryu.control.ownership.owners import Owners
from fairq_ryu.control.paths import copy_meters, link_discovery
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.port_traffic import CounterPolling, PortTrafficTable
from fairq_ryu.control.sender import Sender
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.flows.table import IDLE_TIMEOUT, FlowTable
from fairq_ryu.fabric.ways import Way
from fairq_ryu.metrics.exporter import Metrics
from fairq_ryu.policies.choice import choose
from fairq_ryu.port_settings import PortSettings
from fairq_ryu.rest import handler, setup
from fairq_ryu.rest.streams import Streams
from fairq_ryu.ryu_compat import (
    batched_io,
    cached_matches,
    controller_actions,
    direct_replies,
    experimenter_multipart,
    segment_packet_ins,
)
from fairq_ryu.ryu_compat.event_queue import SlicedQueue
from fairq_ryu.ryu_compat.limited_log import RateLimitedLog

# Seconds between two ticks, and between two while ports are undecided between host and link.
_TICK = 0.25
_DISCOVERY_TICK = 0.05
# Events that are queued at most: as many as Ryu queues, whose semaphore counts them.
_EVENTS = 128


def _at_now(function: Callable[[float], object]) -> None:
    function(time.monotonic())


# Before the first switch connects.
batched_io.register()
cached_matches.register()
controller_actions.register()
experimenter_multipart.register()


class Controller(app_manager.RyuApp):
    """The base class of the applications; a subclass sets ``policy_name``."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofp.OFP_VERSION]
    _CONTEXTS: ClassVar[dict[str, Any]] = {"wsgi": WSGIApplication}
    policy_name: ClassVar[str] = ""

    def __init__(self, *args: Any, wsgi: WSGIApplication, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.events: SlicedQueue = SlicedQueue(_EVENTS)  # Ryu takes from it when the application starts
        self.config = settings.or_exit(settings.load)
        settings.or_exit(settings.check_port)
        settings.or_exit(handler.check_port)
        token = settings.or_exit(lambda: setup.token(self.config))
        choice = settings.or_exit(lambda: choose(self.policy_name, self.config))
        config, log = self.config, self.logger

        self.streams = Streams()
        self.counts = Counts()
        self.fabric = fabric = FabricController(config, log)
        self.flows = FlowTable(IDLE_TIMEOUT)
        self.reporter = EventReporter(self.streams.add, lambda port: self.windows.inventory.name(port))
        self.windows = WindowController(choice, config, fabric, self.flows, log, self.reporter)
        self.gone = GoneSwitches(fabric, self.windows, self.flows)
        self.tracker = FlowTracker(fabric, self.flows, self.windows, log)
        self.admission = SynAdmission(fabric, self.windows, self.tracker, log)
        self.rerouting = Rerouting(fabric, self.windows, self.tracker, self.reporter)
        polling = AgentPolling(self.windows, self.flows.idle_timeout, self.counts.loop_delay)
        self.traffic = PortTrafficTable()
        self.port_counters = CounterPolling(self.windows.inventory.counted, self.traffic)
        self.copies = AgentCopies(fabric.bridges, self.windows.links)
        self.records = RecordTracker(self.flows, self.windows, self.tracker.apply, log)
        self.agent_messages = AgentMessages(
            self.windows,
            self.records,
            self.tracker.copied_by_agent,
            self.counts,
            log,
            self._port_settings,
        )
        way = str(config.value("fairq_ryu", "way"))
        self.bridges = BridgeConnections(
            Way(way) if way else None,
            fabric,
            self.windows,
            self.rerouting,
            self.reporter,
            log,
        )
        limited = RateLimitedLog(log, max_per_peer=20, max_lines=200)
        self.switches = Switches(
            fabric,
            self.windows,
            self.tracker,
            self.traffic,
            self.rerouting,
            self.bridges,
            lambda link: hub.spawn(poll, polling.run, link, self.counts.faults),
            log,
            limited.warning,
        )
        self.owners: Owners | None = settings.or_exit(
            lambda: cluster.owners(
                config,
                self.switches.connected,
                self.switches.disconnected,
                self._taken_over,
                self._load,
                log,
            )
        )
        self.packet_ins = PacketIns(
            fabric,
            self.tracker,
            self.admission,
            self.agent_messages,
            self.rerouting,
            self.counts,
        )
        segment_packet_ins.register(COPIES, self.packet_ins.segment_copy)
        free, agents = self.events.is_free, self.agent_messages
        segment_packet_ins.register(agent_messages.COPIES, agents.segment_copy, free)
        direct_replies.register(agents.direct_reply, free)
        self.refusals = Refusals(fabric, self.windows, self.counts, log, limited.warning)

        state = ControllerState(
            fabric=fabric,
            flows=self.flows,
            windows=self.windows,
            traffic=self.traffic,
            counts=self.counts,
            history=self.streams.history,
            event_queue=self.events,
            copies_waiting=lambda: self.tracker.waiting,
            open_streams=lambda: len(self.streams),
        )
        requests = Requests(None if self.owners is None else self.owners.store)
        if self.owners is not None:
            self.owners.requested = requests.found
        policies = PolicyControl(self.windows, config, requests, self.streams.add, log)
        self.modes = ModeControl(fabric, self.windows, requests, self.streams.add, log)
        self.far = FarControl(self.windows, self.modes.named, requests, self.streams.add, log)
        tenants = TenantOperations(self.windows, requests, self.streams.add, log)
        metrics = Metrics(state)
        self.announcing = Announcing(self.windows, requests, log)
        controls = policies, self.modes, self.far, tenants, self.announcing
        setup.register(wsgi, config, state, self.streams, *controls, metrics, token, self.owners)
        garbage.configure()
        self._garbage = garbage.FullCollections()
        workers: dict[str, Callable[[], object]] = {
            "held SYNs": self.admission.run,
            "copies": self.tracker.run,
            "flow records": self.records.run,
            "routes": self.rerouting.run,
        }
        if self.owners is not None:
            workers["ownership"] = self.owners.run
        start(self._jobs(), workers, self.counts.faults)

    # Time

    def _jobs(self) -> list[Job]:
        """The periodic jobs, with their intervals in seconds."""
        return [
            Job("fabric", self._tick_interval, self._tick),
            # Each by itself: a fault in one of them lets no leases of the others end.
            *(Job(name, every(_TICK), partial(_at_now, tick)) for name, tick in self._ticks().items()),
            Job("discovery", every(link_discovery.INTERVAL), self._discover),
            Job("short expiry", every(0.5), self.tracker.drop_expired),
            Job("expiry", every(self.flows.idle_timeout / 4), self.tracker.expire),
            Job("port counters", lambda: self.port_counters.interval, self.port_counters.request_next),
            Job("descriptions", every(bridge_connections.ASK_AGAIN), self.bridges.ask_descriptions),
            Job("gone switches", every(gone_switches.INTERVAL), self.gone.forget),
            Job("garbage collection", every(garbage.INTERVAL), self._garbage.look),
            Job("refused far queues", every(far_control.INTERVAL), self.far.take_back),
            Job("ended announcements", every(announcing.INTERVAL), self.announcing.remove_ended),
            Job("meter counters", every(copy_meters.INTERVAL), self.fabric.request_meter_counters),
        ]

    def _ticks(self) -> dict[str, Callable[[float], object]]:
        return {
            "copies": lambda now: Sender.send(self.copies.renew(now)),
            "tenants": self.windows.tend_tenants,
            "overdue announcements": self.windows.report_overdue,
            "modes": self.modes.tick,
            "uplinks": lambda now: self.windows.uplinks.tick(now),
            "streams": lambda _: self.streams.tick(),
        }

    def _tick(self) -> None:
        self.fabric.tick(time.monotonic())
        self.rerouting.notify()

    def _discover(self) -> None:
        now = time.monotonic()
        self.fabric.discover(now)
        self.fabric.loops.tick(now)
        self.fabric.decide_claims(now)

    def _tick_interval(self) -> float:
        return _DISCOVERY_TICK if self.fabric.topology.waits else _TICK

    # Switches

    def _port_settings(self, dpid: int, settings: Mapping[int, PortSettings]) -> None:
        self.fabric.port_settings(dpid, settings)
        self.rerouting.notify()

    def _taken_over(self, dpid: int) -> None:
        self.tracker.handed_over(dpid, time.monotonic())
        self.gone.taken_over(dpid)

    def _load(self, dpid: int) -> int:
        """The load of a bridge: its governed ports, and their connections."""
        link = self.windows.links.get(dpid)
        governed = [] if link is None else link.governed
        return len(governed) + sum(self.windows.engine.flows(key) for key in governed)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event: Any) -> None:
        """A switch has connected, or its connection has ended."""
        if event.datapath is None or event.datapath.id is None:
            return
        switches = self.owners or self.switches
        if event.state == DEAD_DISPATCHER:
            switches.disconnected(event.datapath)
        else:
            switches.connected(event.datapath)

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_rules(self, event: Any) -> None:
        """A bridge has listed rules in its tables."""
        self.bridges.rules_listed(event.msg)

    @set_ev_cls(ofp_event.EventOFPAggregateStatsReply, MAIN_DISPATCHER)
    def on_rule_count(self, event: Any) -> None:
        """A bridge has counted rules in its tables."""
        self.bridges.rules_counted(event.msg)

    @set_ev_cls(ofp_event.EventOFPDescStatsReply, MAIN_DISPATCHER)
    def on_description(self, event: Any) -> None:
        """A switch has described itself."""
        self.switches.described(event.msg)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event: Any) -> None:
        """A port was added, removed or changed."""
        self.switches.port_status(event.msg)

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_flow_removed(self, event: Any) -> None:
        """A rule was removed: it has timed out, or was deleted."""
        self.switches.rule_removed(event.msg)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """A switch has processed all messages before a barrier."""
        self.fabric.barriers.answered((event.msg.datapath.id, event.msg.xid))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """A switch has refused a message."""
        if self.owners is None or not self.owners.refused(event.msg):
            self.refusals.refused(event.msg)

    @set_ev_cls(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def on_role(self, event: Any) -> None:
        """A switch has told which role this controller has."""
        if self.owners is not None:
            self.owners.role_reply(event.msg)

    # Frames

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event: Any) -> None:
        """A copy of a frame, an ARP request, a discovery frame, a held SYN, or a dropped packet."""
        self.packet_ins.packet_in(event)

    # Counters and reports

    @set_ev_cls(ofp_event.EventOFPMeterStatsReply, MAIN_DISPATCHER)
    def on_meters(self, event: Any) -> None:
        """A bridge has reported how many copies it has dropped."""
        message = event.msg
        more = bool(message.flags & ofp.OFPMPF_REPLY_MORE)
        self.fabric.copy_meters.counted(message.datapath, message.body, more)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_counters(self, event: Any) -> None:
        """A bridge has reported the counters of its ports."""
        self.port_counters.reply(event.msg)

    @set_ev_cls(ofp_event.EventOFPExperimenterStatsReply, MAIN_DISPATCHER)
    def on_experimenter_reply(self, event: Any) -> None:
        """An agent has replied to a request of the window channel, and the reply has come as an event."""
        self.agent_messages.reply(event.msg, time.monotonic())

    @set_ev_cls(ofp_event.EventOFPExperimenter, MAIN_DISPATCHER)
    def on_experimenter(self, event: Any) -> None:
        """An agent has sent a notice of the window channel."""
        self.agent_messages.notification(event.msg, time.monotonic())

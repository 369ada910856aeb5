"""The controller that all policies share: Ryu's events in, messages out.

Two kinds of switches connect: bridges (stock Open vSwitch), where hosts and flows are tracked, and
their agents, where queues are read and windows are set.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar

from ryu.app.wsgi import WSGIApplication
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.topology.switches import LLDPPacket

from fairq_ryu.apps import settings
from fairq_ryu.channel import congestion, flow_records, oxm
from fairq_ryu.control.agent_messages import AgentMessages
from fairq_ryu.control.agents import AgentLink
from fairq_ryu.control.bridges import FabricController, PortState
from fairq_ryu.control.counters import Counts
from fairq_ryu.control.discovery import Discovery
from fairq_ryu.control.event_reporter import EventReporter
from fairq_ryu.control.policy_control import PolicyControl
from fairq_ryu.control.port_traffic import INTERVAL, PortTrafficTable
from fairq_ryu.control.state import ControllerState
from fairq_ryu.control.syn_queue import SynQueue
from fairq_ryu.control.windows import WindowController
from fairq_ryu.fabric.flows.table import FlowEvent, FlowState, FlowTable, SeenFlow
from fairq_ryu.fabric.topology.paths import Assigned
from fairq_ryu.metrics.exporter import Metrics
from fairq_ryu.model import FlowKey, PortKey, TcpSegment
from fairq_ryu.openflow import pipeline, refusal
from fairq_ryu.packet import parse
from fairq_ryu.policies.choice import choose
from fairq_ryu.rest import handler, setup
from fairq_ryu.ryu_compat import batched_io as connection
from fairq_ryu.ryu_compat.limited_log import RateLimitedLog

# A bridge without flows is looked at this often, seconds: its first flow is told by a SYN copy anyway.
_IDLE_INTERVAL = 0.25
# Changes of the network that come within this many seconds are worked out together.
_REFRESH_DELAY = 0.01
_TICK = 0.25
_WAITING_TICK = 0.05  # while it is to be found out what ports lead to
# So many SYNs wait for their turn; those beyond are worked on as they come, and switches wait with more.
_MOST_HELD = 4096
# So many copies of segments wait for theirs; for each that comes beyond, the first is worked on at once.
_MOST_COPIES = 4096
# Others have their turn after so many seconds of that.
_COPIES_SLICE = 0.001
# Bridges are asked how many copies they have dropped this often, seconds: a scrape shows the last answer.
_METERS_INTERVAL = 2.0
# Records without either are of flows that go on, and whose window scale is not known.
_SCALED = flow_records.KNOWN | flow_records.CLOSED
# Packet-ins of bridges by the rule that they come from; discovery frames have a cookie of Ryu's.
_KINDS = {
    pipeline.COOKIE_TCP: "tcp",
    pipeline.COOKIE_HELD: "held",
    pipeline.COOKIE_ARP: "arp",
    pipeline.COOKIE_SOURCE: "source",
}
_LLDP_BYTES = pipeline.ETH_TYPE_LLDP.to_bytes(2, "big")

# Before the first switch connects.
connection.register()


class Controller(app_manager.RyuApp):
    """Base of the applications; each names its policy."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofp.OFP_VERSION]
    _CONTEXTS: ClassVar[dict[str, Any]] = {"discovery": Discovery, "wsgi": WSGIApplication}
    policy_name: ClassVar[str] = ""

    def __init__(self, *args: Any, discovery: Discovery, wsgi: WSGIApplication, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._discovery = discovery
        discovery.link_lost = self._link_lost
        self.config = settings.or_exit(settings.load)
        settings.or_exit(settings.check_port)
        settings.or_exit(handler.check_port)
        token = settings.or_exit(lambda: setup.token(self.config))
        choice = settings.or_exit(lambda: choose(self.policy_name, self.config))
        self.fabric = FabricController(self.config, self.logger)
        discovery.frame_sent = self.fabric.frame_sent
        self.flows = FlowTable(self.config.number("fairq_ryu", "flow_idle_timeout"))
        self.traffic = PortTrafficTable()
        self.streams = setup.streams(self.config)
        self.reporter = EventReporter(self.streams.add, lambda port: self.fabric.names.get(port, ""))
        self.windows = WindowController(
            choice, self.config, self.fabric, self.flows, self.logger, self.reporter
        )
        self._holds = self.config.value("fairq_ryu", "syn") == "hold"
        self.counts = Counts()
        self._agent_messages = AgentMessages(self.windows, self._on_records, self.counts, self.logger)
        self._joining: dict[int, tuple[Any, list[Any]]] = {}  # bridges, and the rules they have told of
        self._held_syns: SynQueue[tuple[Any, parse.Frame, bytes, PortKey, float]] = SynQueue()
        self._held_there = hub.Event()
        self._copies: deque[tuple[parse.Frame, TcpSegment, PortKey, float]] = deque()
        self._copies_there = hub.Event()
        self._changed = hub.Event()
        self._refusals = RateLimitedLog(self.logger, max_per_peer=20, max_lines=200)
        state = ControllerState(
            fabric=self.fabric,
            flows=self.flows,
            windows=self.windows,
            traffic=self.traffic,
            counts=self.counts,
            history=self.streams.history,
            event_queue=self.events,
            open_streams=lambda: len(self.streams),
        )
        policies = PolicyControl(self.windows, self.config, self.streams.add, self.logger)
        setup.register(wsgi, self.config, state, self.streams, policies, Metrics(state), token)
        hub.spawn(self._work_on_held)
        hub.spawn(self._work_on_copies)
        hub.spawn(self._expire)
        hub.spawn(self._tick)
        hub.spawn(self._refresh)
        hub.spawn(self._ask_meters)
        hub.spawn(self._count)

    # Switches come and go

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event: Any) -> None:
        """A switch has connected, or its connection has ended."""
        datapath: Any = event.datapath
        if datapath is None or datapath.id is None:
            return
        if event.state == DEAD_DISPATCHER:
            self._gone(datapath)
        elif oxm.is_agent(datapath.id):
            self._agent_came(datapath)
        else:
            self._joining[datapath.id] = (datapath, [])
            datapath.send_msg(pipeline.ask_rules(datapath))

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_rules(self, event: Any) -> None:
        """A bridge that has just connected says what stands in its tables."""
        message = event.msg
        datapath = message.datapath
        joining, stats = self._joining.get(datapath.id, (None, []))
        if joining is not datapath:
            return
        stats += message.body
        if message.flags & ofp.OFPMPF_REPLY_MORE:
            return
        del self._joining[datapath.id]
        ports = (_state(port) for port in datapath.ports.values() if port.port_no <= ofp.OFPP_MAX)
        self.fabric.bridge_came(datapath, ports, stats, time.monotonic())
        self._network_changed()
        self.reporter.bridge(datapath.id, came=True)
        self.logger.info("bridge %016x: connected", datapath.id)

    def _agent_came(self, datapath: Any) -> None:
        link = self.windows.agent_came(datapath)
        hub.spawn(self._watch, link)
        self.logger.info("agent of bridge %016x: connected", link.dpid)

    def _gone(self, datapath: Any) -> None:
        if not oxm.is_agent(datapath.id):
            joining, _ = self._joining.get(datapath.id, (None, []))
            if joining is datapath:
                del self._joining[datapath.id]
            if self.fabric.bridge_gone(datapath):
                self._network_changed()
                self.reporter.bridge(datapath.id, came=False)
                self.logger.warning("bridge %016x: connection lost", datapath.id)
            return
        link = self._link(datapath)
        if link is not None:
            self.windows.agent_gone(link)
            self.logger.warning("agent of bridge %016x: connection lost", link.dpid)

    def _link(self, datapath: Any) -> AgentLink | None:
        """The agent whose present connection this is."""
        link = self.windows.links.get(oxm.bridge_dpid(datapath.id or 0))
        return link if link is not None and link.datapath is datapath else None

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event: Any) -> None:
        """A port came, went or changed."""
        message = event.msg
        datapath, number = message.datapath, message.desc.port_no
        gone = message.reason == ofp.OFPPR_DELETE
        if oxm.is_agent(datapath.id):
            if gone:
                self.windows.port_gone(PortKey(oxm.bridge_dpid(datapath.id), number))
            return
        if datapath.id not in self.fabric.bridges or number > ofp.OFPP_MAX:
            return
        key, now = PortKey(datapath.id, number), time.monotonic()
        if gone:
            self.fabric.port_gone(key)
            self.traffic.forget(key)
            self._apply(self.flows.forget_port(key), now)
        else:
            self.fabric.port_changed(datapath.id, _state(message.desc), now)
        self._network_changed()

    def _link_lost(self, source: PortKey, target: PortKey) -> None:
        self.fabric.topology.link_lost(source, target)
        self._network_changed()

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """A switch has done what it was told."""
        self.fabric.barriers.answered((event.msg.datapath.id, event.msg.xid))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """A switch has refused something."""
        message = event.msg
        if message.type == ofp.OFPET_METER_MOD_FAILED:
            self.fabric.no_meters(message.datapath.id)
            self.logger.info(
                "switch %016x has no meter for copies to the controller: they are not limited",
                message.datapath.id,
            )
            return
        link = self._link(message.datapath)
        self.counts.refused["bridge" if link is None else "agent"] += 1
        ours = message.type == ofp.OFPET_EXPERIMENTER and message.experimenter == oxm.EXPERIMENTER_ID
        if link is not None and ours and message.exp_type == congestion.ERROR_NO_DROPS:
            link.drops_refused()
            self.logger.warning(
                "agent of bridge %016x: its kernel does not tell of dropped packets: none are recovered",
                link.dpid,
            )
            return
        dpid = message.datapath.id or 0
        who = f"bridge {dpid:x}" if link is None else f"agent of bridge {link.dpid:x}"
        self._refusals.warning(who, f"{who} refused {refusal.words(message)}")

    # Hosts and flows

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event: Any) -> None:
        """A copy of a frame, an ARP question, a discovery frame, or a SYN that is held."""
        message = event.msg
        datapath = message.datapath
        if "in_port" not in message.match:
            self.counts.packet_ins["other"] += 1
            return
        if datapath.id not in self.fabric.bridges:
            self._agent_messages.packet_in(self._link(datapath), message, time.monotonic())
            return
        data = bytes(message.data)
        in_port = PortKey(datapath.id, message.match["in_port"])
        if data[12:14] == _LLDP_BYTES:
            self.counts.packet_ins["lldp"] += 1
            self._on_lldp(event, data, in_port)
            return
        frame = parse.parse(data)
        cookie = message.cookie
        self.counts.packet_ins["other" if frame is None else _KINDS.get(cookie, "other")] += 1
        if frame is None:
            return
        now = time.monotonic()
        if cookie in (pipeline.COOKIE_SOURCE, pipeline.COOKIE_ARP):
            self.fabric.host_seen(datapath, frame, in_port, now)
            self._network_changed()
        if cookie == pipeline.COOKIE_ARP:
            self.fabric.answer_arp(datapath, frame, in_port, data)
        elif cookie == pipeline.COOKIE_TCP and frame.tcp is not None:
            self._copied(frame, frame.tcp, in_port, now)
        elif cookie == pipeline.COOKIE_HELD:
            self._hold(datapath, frame, data, in_port, now)

    def _on_lldp(self, event: Any, data: bytes, in_port: PortKey) -> None:
        try:
            dpid, number = LLDPPacket.lldp_parse(data)
            self._discovery.lldp_packet_in_handler(event)
        except Exception:  # Ryu's parsers raise all sorts, and anybody may send this
            self.logger.debug("port %s: a discovery frame of somebody else's", in_port)
            return
        self.fabric.link_seen(PortKey(dpid, number), in_port)
        self._network_changed()

    def _segment(
        self,
        frame: parse.Frame,
        segment: TcpSegment,
        in_port: PortKey,
        now: float,
        came: float | None = None,
    ) -> tuple[Assigned | None, list[Any]]:
        """A SYN, FIN or RST: its connection is pinned and counted; it ``came`` earlier if it has waited.
        Returns its path, and the agents that were told of windows.
        """
        if segment.syn:
            found = self.fabric.path(segment.key, in_port, frame.dst)
        else:
            found = self.fabric.paths.get(segment.key)
        path = None if found is None else found.path
        return found, self._apply(self.flows.segment(segment, in_port, path, now), now, came)

    def _copied(self, frame: parse.Frame, segment: TcpSegment, in_port: PortKey, now: float) -> None:
        """A copy waits for its turn: agents come first. When many flows end together, what they tell of
        queues, losses and receivers would wait behind the copies of all their FINs.
        """
        if segment.syn:
            # Now: what an agent tells next may be of this connection already.
            self.windows.syn(frame)
            self.fabric.hosts.address_seen(frame.src, in_port, segment.key.src)
        if len(self._copies) >= _MOST_COPIES:
            first, said, port, came = self._copies.popleft()
            self._segment(first, said, port, now, came)
        self._copies.append((frame, segment, in_port, now))
        self._copies_there.set()

    def _work_on_copies(self) -> None:
        while True:
            self._copies_there.wait()
            self._copies_there.clear()
            until = time.monotonic() + _COPIES_SLICE
            while self._copies:
                frame, segment, in_port, came = self._copies.popleft()
                now = time.monotonic()
                try:
                    self._segment(frame, segment, in_port, now, came)
                except Exception:  # as Ryu does about events
                    self.logger.exception("a copy of a segment is lost")
                if now >= until:
                    hub.sleep(0)
                    until = time.monotonic() + _COPIES_SLICE

    def _hold(self, datapath: Any, frame: parse.Frame, data: bytes, in_port: PortKey, now: float) -> None:
        """A SYN waits for its turn: of a volley, the first are to go on while the others are worked on."""
        if frame.tcp is not None:
            self.windows.syn(frame)
        if len(self._held_syns) >= _MOST_HELD:
            self._held(datapath, frame, data, in_port, now, now)
            return
        deadline = None if frame.tcp is None else self.windows.deadline_of(frame.tcp.key, now)
        self._held_syns.add((datapath, frame, data, in_port, now), in_port, deadline, now)
        self._held_there.set()

    def _work_on_held(self) -> None:
        while True:
            self._held_there.wait()
            self._held_there.clear()
            while self._held_syns:
                try:
                    self._held(*self._held_syns.take(), time.monotonic())
                except Exception:  # as Ryu does about events: what is wrong with one is not for the others
                    self.logger.exception("a SYN that was held is lost")
                hub.sleep(0)  # answers to barriers, and what is to be sent, come before the next

    def _held(
        self,
        datapath: Any,
        frame: parse.Frame,
        data: bytes,
        in_port: PortKey,
        came: float,
        now: float,
    ) -> None:
        """A SYN goes on when its path and its windows stand; nothing to wait for, and it goes at once."""
        if self.fabric.bridges.get(datapath.id) is not datapath:
            return  # gone while it waited: nobody can send it on, and its sender repeats it
        self.fabric.host_seen(datapath, frame, in_port, now)
        found: Assigned | None = None
        told: list[Any] = []
        if frame.tcp is not None:
            known = self.fabric.paths.get(frame.tcp.key)
            found, told = self._segment(frame, frame.tcp, in_port, now, came)
            if found is not None and found.pinned and found != known:
                told = told + self.fabric.along(found)
        key = None if frame.tcp is None else frame.tcp.key
        self.fabric.after(told, lambda: self.fabric.let_go(datapath, data, in_port, key, found))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_flow_removed(self, event: Any) -> None:
        """A rule has ended: a host has been silent, or a pinned flow."""
        message = event.msg
        if message.reason not in (ofp.OFPRR_IDLE_TIMEOUT, ofp.OFPRR_HARD_TIMEOUT):
            return
        if message.cookie == pipeline.COOKIE_SOURCE and message.match.get("eth_src") is not None:
            port = PortKey(message.datapath.id, message.match.get("in_port"))
            self.fabric.host_silent(port, message.match["eth_src"])
        elif message.cookie == pipeline.COOKIE_PATH:
            key = pipeline.flow_of(message.match)
            if key is not None:
                now = time.monotonic()
                self._apply(self.flows.removed(key, now), now)

    # Time

    def _network_changed(self) -> None:
        if self.fabric.stale:
            self._changed.set()

    def _refresh(self) -> None:
        """Work out the ways anew when the network has changed; changes mostly come in company."""
        while True:
            self._changed.wait()
            hub.sleep(_REFRESH_DELAY)
            self._changed.clear()
            if not self.fabric.stale:
                continue
            now = time.monotonic()
            self.windows.name_ports(now)
            for move in self.fabric.refresh():
                self.reporter.moved(move)
                self._apply(self.flows.repath(move.new.key, move.new.path, now), now)

    def _tick(self) -> None:
        while True:
            now = time.monotonic()
            self.fabric.tick(now)
            self._network_changed()
            self.windows.overdue(now)
            self.streams.tick()
            hub.sleep(_WAITING_TICK if self.fabric.topology.waits else _TICK)

    def _ask_meters(self) -> None:
        while True:
            hub.sleep(_METERS_INTERVAL)
            self.fabric.ask_meters()

    @set_ev_cls(ofp_event.EventOFPMeterStatsReply, MAIN_DISPATCHER)
    def on_meters(self, event: Any) -> None:
        """A bridge says how many copies it has dropped."""
        message = event.msg
        dpid = message.datapath.id
        if self.fabric.bridges.get(dpid) is message.datapath:
            self.fabric.meters_told(dpid, message.body)

    def _count(self) -> None:
        """Ask the bridges for their ports' counters, one after the other: the answers of many do not come at
        once.
        """
        while True:
            bridges = list(self.fabric.bridges)
            self.traffic.keep_only(self.fabric.bridges)
            for dpid in bridges:
                if dpid in self.fabric.bridges:
                    datapath = self.fabric.bridges[dpid]
                    datapath.send_msg(pipeline.ask_counters(datapath))
                hub.sleep(INTERVAL / len(bridges))
            if not bridges:
                hub.sleep(INTERVAL)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_counters(self, event: Any) -> None:
        """A bridge tells the counters of its ports."""
        message = event.msg
        dpid = message.datapath.id
        if self.fabric.bridges.get(dpid) is message.datapath:
            ours = [each for each in message.body if each.port_no <= ofp.OFPP_MAX]
            self.traffic.counted(dpid, ours)

    def _expire(self) -> None:
        """Where no agent tells what is still alive, silence is all there is to go by."""
        while True:
            hub.sleep(self.flows.idle_timeout / 4)
            now = time.monotonic()
            self._apply(self.flows.expire(now), now)
            self.windows.injector.prune()
            self.windows.prune(now)
            for assigned in self.fabric.paths:
                if self.flows.get(assigned.key) is None:
                    self.fabric.release(assigned.key, closed=False)

    # Queues and windows

    def _watch(self, link: AgentLink) -> None:
        """Ask one agent for its queues, as often as policies want them while governed ports have flows."""
        poll = self.config.number("fairq_ryu", "flow_poll_interval")
        idle_ms = int(self.flows.idle_timeout * 1000)
        now = time.monotonic()
        while self.windows.links.get(link.dpid) is link:
            link.ask_records(poll, idle_ms, now)
            link.ask_queues(now)
            interval = self.windows.interval(link)
            woken = False
            if interval is not None:
                due = now + interval
                hub.sleep(max(0.0, due - time.monotonic()))
            else:
                link.wake.clear()
                due = time.monotonic() + _IDLE_INTERVAL
                woken = link.wake.wait(_IDLE_INTERVAL)
            now = time.monotonic()
            if not woken:
                self.counts.loop_delay.observe(max(0.0, now - due))

    @set_ev_cls(ofp_event.EventOFPExperimenterStatsReply, MAIN_DISPATCHER)
    def on_experimenter_reply(self, event: Any) -> None:
        """An agent's reply: queue depths, flow records or segments."""
        link = self._link(event.msg.datapath)
        if link is not None:
            self._agent_messages.reply(link, event.msg, time.monotonic())

    @set_ev_cls(ofp_event.EventOFPExperimenter, MAIN_DISPATCHER)
    def on_experimenter(self, event: Any) -> None:
        """An agent reports something without a request: a queue has crossed a threshold."""
        link = self._link(event.msg.datapath)
        if link is not None:
            self._agent_messages.notification(link, event.msg, time.monotonic())

    def _on_records(self, link: AgentLink, found: Sequence[flow_records.FlowRecord], now: float) -> None:
        link.flows_unscaled = sum(not record.flags & _SCALED for record in found)
        seen = [
            SeenFlow(
                key=record.key,
                port=PortKey(link.dpid, record.port),
                closed=bool(record.flags & flow_records.CLOSED),
                idle=record.idle_ms / 1000,
                bytes=record.bytes,
                wscale=record.wscale,
                mss=record.mss,
                rtt=record.rtt_us / 1e6,
                rewritten=record.rewritten,
            )
            for record in found
        ]
        self._apply(self.flows.reconcile(link.dpid, seen, now), now)
        self.windows.counted(link, found, now)

    def _apply(self, events: list[FlowEvent], now: float, came: float | None = None) -> list[Any]:
        """Flows started or ended on ports: windows follow. Returns the agents that were told. ``came``: when
        what tells of it came, if that was earlier.
        """
        told = self.windows.apply(events, now, came)
        for event in events:
            if not event.started:
                self._release_if_over(event.flow.key)
        return told

    def _release_if_over(self, key: FlowKey) -> None:
        """A connection that is counted nowhere any more needs no path."""
        connection = self.flows.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            self.fabric.release(key, closed=connection is not None)
            self.windows.flow_over(key)


def _state(port: Any) -> PortState:
    up = not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)
    return PortState(port.port_no, up, port.name.decode("utf-8", "replace").rstrip("\0"))

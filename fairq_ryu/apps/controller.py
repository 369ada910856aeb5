"""The controller that all policies share: Ryu's events in, messages out.

Two kinds of switches connect: bridges (stock Open vSwitch), where hosts and flows are tracked, and
their agents, where queues are read and windows are set.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from ryu.app.wsgi import WSGIApplication
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.topology.switches import LLDPPacket

from fairq_ryu.apps import rest, settings
from fairq_ryu.apps.discovery import Discovery
from fairq_ryu.apps.network import Network, PortState
from fairq_ryu.apps.view import FabricView
from fairq_ryu.fabric.flows import FlowEvent, FlowState, FlowTable, SeenFlow
from fairq_ryu.fabric.paths import Assigned
from fairq_ryu.model import FlowKey, PortKey, RuleChange, TcpSegment
from fairq_ryu.openflow import depth, oxm, packets, records, rules
from fairq_ryu.policies import base
from fairq_ryu.policies.engine import PolicyEngine

# A bridge without flows is looked at this often, seconds: its first flow is told by a SYN copy anyway.
_IDLE_INTERVAL = 0.25
_QUEUE_XID = 0xFA17
# All ports of a switch are looked at no more seldom than this, seconds.
_ALL_PORTS_INTERVAL = 0.25
# An answer that does not come within this many seconds is no longer waited for.
_ANSWER_TIMEOUT = 1.0
# Changes of the network that come within this many seconds are worked out together.
_REFRESH_DELAY = 0.01
_TICK = 0.25
_LLDP_BYTES = rules.ETH_TYPE_LLDP.to_bytes(2, "big")


class AgentLink:
    """A connected agent: its datapath, and what was asked and answered."""

    def __init__(self, datapath: Any, govern_all: bool) -> None:
        self.datapath = datapath
        self.govern_all = govern_all  # ports whose queue does not say its size are governed, too
        self.dpid = oxm.bridge_dpid(datapath.id)
        self.asked_at: float | None = None
        self.depths: dict[int, depth.QueueDepth] = {}
        self.flows: list[records.FlowRecord] = []
        self.flows_asked_at = 0.0
        self.all_asked_at = 0.0
        self._requests: dict[int, bytes] = {}
        self.wake = hub.Event()

    def ask_queues(self, now: float) -> None:
        """Ask for queue depths. The request is always the same, and is packed once."""
        port = self.port_to_ask(now)
        request = self._requests.get(port)
        if request is None:
            message = rules.ask_queues(self.datapath, port)
            message.set_xid(_QUEUE_XID)
            message.serialize()
            request = self._requests[port] = bytes(message.buf)
        self.datapath.send(request)

    @property
    def governed(self) -> list[int]:
        """The ports with a queue to govern."""
        return [number for number, record in self.depths.items() if record.limit or self.govern_all]

    def port_to_ask(self, now: float) -> int:
        """The one port with a queue to govern, if there is just one; all ports otherwise, and now and
        then in any case, because queues come and go.
        """
        governed = self.governed
        if len(governed) == 1 and now - self.all_asked_at < _ALL_PORTS_INTERVAL:
            return governed[0]
        self.all_asked_at = now
        return int(ofp.OFPP_ANY)


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
        settings.or_exit(rest.check_port)
        policy_class = settings.or_exit(lambda: base.find(self.policy_name))
        policy = policy_class(self.config.section(self.policy_name))
        self.lease = int(self.config.number("fairq_ryu", "lease"))
        self.engine = PolicyEngine(policy, self.lease)
        self.network = Network(self.config, self.logger)
        self.flows = FlowTable(self.config.number("fairq_ryu", "flow_idle_timeout"))
        self.agents: dict[int, AgentLink] = {}
        self._holds = self.config.value("fairq_ryu", "syn") == "hold"
        self._unbuffered: set[PortKey] = set()
        self._joining: dict[int, tuple[Any, list[Any]]] = {}  # bridges, and the rules they have told of
        self._changed = hub.Event()
        rest.register(wsgi, FabricView(self))
        hub.spawn(self._expire)
        hub.spawn(self._tick)
        hub.spawn(self._refresh)

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
            datapath.send_msg(rules.ask_rules(datapath))

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
        self.network.bridge_came(datapath, ports, stats, time.monotonic())
        self._network_changed()
        self.logger.info("bridge %016x: connected", datapath.id)

    def _agent_came(self, datapath: Any) -> None:
        link = AgentLink(datapath, bool(self.config.number("fairq_ryu", "default_buffer")))
        self.agents[link.dpid] = link
        # Whatever stands there is of another life; what should stand is set with the next sample.
        datapath.send_msg(rules.clear(datapath))
        self.engine.switch_gone(link.dpid)
        hub.spawn(self._watch, link)
        self.logger.info("agent of bridge %016x: connected", link.dpid)

    def _gone(self, datapath: Any) -> None:
        if not oxm.is_agent(datapath.id):
            if self.network.bridge_gone(datapath):
                self._network_changed()
                self.logger.warning("bridge %016x: connection lost", datapath.id)
            return
        link = self.agents.get(oxm.bridge_dpid(datapath.id))
        if link is not None and link.datapath is datapath:
            del self.agents[link.dpid]
            link.wake.set()
            self.engine.switch_gone(link.dpid)
            self.logger.warning("agent of bridge %016x: connection lost", link.dpid)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event: Any) -> None:
        """A port came, went or changed."""
        message = event.msg
        datapath, number = message.datapath, message.desc.port_no
        gone = message.reason == ofp.OFPPR_DELETE
        if oxm.is_agent(datapath.id):
            if gone:
                self._agent_port_gone(PortKey(oxm.bridge_dpid(datapath.id), number))
            return
        if datapath.id not in self.network.bridges or number > ofp.OFPP_MAX:
            return
        key, now = PortKey(datapath.id, number), time.monotonic()
        if gone:
            self.network.port_gone(key)
            self._apply(self.flows.forget_port(key), now)
        else:
            self.network.port_changed(datapath.id, _state(message.desc), now)
        self._network_changed()

    def _agent_port_gone(self, key: PortKey) -> None:
        self.engine.port_gone(key)
        link = self.agents.get(key.dpid)
        if link is not None:
            link.depths.pop(key.port, None)
        self._unbuffered.discard(key)

    def _link_lost(self, source: PortKey, target: PortKey) -> None:
        self.network.topology.link_lost(source, target)
        self._network_changed()

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """A switch has done what it was told."""
        self.network.barriers.answered((event.msg.datapath.id, event.msg.xid))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """A switch has refused something."""
        message = event.msg
        if message.type == ofp.OFPET_METER_MOD_FAILED:
            self.logger.info(
                "switch %016x has no meter for copies to the controller: they are not limited",
                message.datapath.id,
            )
            return
        self.logger.warning(
            "switch %016x refused message %#x: error type %d code %d",
            message.datapath.id or 0,
            message.xid,
            message.type,
            message.code,
        )

    # Hosts and flows

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event: Any) -> None:
        """A copy of a frame, an ARP question, a discovery frame, or a SYN that is held."""
        message = event.msg
        datapath = message.datapath
        if datapath.id not in self.network.bridges:
            return
        data = bytes(message.data)
        in_port = PortKey(datapath.id, message.match["in_port"])
        if data[12:14] == _LLDP_BYTES:
            self._on_lldp(event, data, in_port)
            return
        frame = packets.parse(data)
        if frame is None:
            return
        now = time.monotonic()
        cookie = message.cookie
        if cookie in (rules.COOKIE_SOURCE, rules.COOKIE_ARP):
            self.network.host_seen(datapath, frame, in_port, now)
            self._network_changed()
        if cookie == rules.COOKIE_ARP:
            self.network.answer_arp(datapath, frame, in_port, data)
        elif cookie == rules.COOKIE_TCP and frame.tcp is not None:
            self._segment(frame, frame.tcp, in_port, now)
        elif cookie == rules.COOKIE_HELD:
            self._held(datapath, frame, data, in_port, now)

    def _on_lldp(self, event: Any, data: bytes, in_port: PortKey) -> None:
        try:
            dpid, number = LLDPPacket.lldp_parse(data)
            self._discovery.lldp_packet_in_handler(event)
        except Exception:  # Ryu's parsers raise all sorts, and anybody may send this
            self.logger.debug("port %s: a discovery frame of somebody else's", in_port)
            return
        self.network.link_seen(PortKey(dpid, number), in_port)
        self._network_changed()

    def _segment(
        self, frame: packets.Frame, segment: TcpSegment, in_port: PortKey, now: float
    ) -> tuple[Assigned | None, list[Any]]:
        """A SYN, FIN or RST: its connection is pinned and counted. Returns its path, and the agents that
        were told of windows.
        """
        if segment.syn:
            found = self.network.path(segment.key, in_port, frame.dst)
        else:
            found = self.network.paths.get(segment.key)
        path = None if found is None else found.path
        return found, self._apply(self.flows.segment(segment, in_port, path, now), now)

    def _held(self, datapath: Any, frame: packets.Frame, data: bytes, in_port: PortKey, now: float) -> None:
        """A SYN goes on when its path and its windows stand; nothing to wait for, and it goes at once."""
        self.network.host_seen(datapath, frame, in_port, now)
        found: Assigned | None = None
        told: list[Any] = []
        if frame.tcp is not None:
            known = self.network.paths.get(frame.tcp.key)
            found, told = self._segment(frame, frame.tcp, in_port, now)
            if found is not None and found.pinned and found != known:
                told = told + self.network.along(found)
        self.network.after(told, lambda: self.network.let_go(datapath, data, in_port, found))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_flow_removed(self, event: Any) -> None:
        """A rule has ended: a host has been silent, or a pinned flow."""
        message = event.msg
        if message.reason not in (ofp.OFPRR_IDLE_TIMEOUT, ofp.OFPRR_HARD_TIMEOUT):
            return
        if message.cookie == rules.COOKIE_SOURCE and message.match.get("eth_src") is not None:
            port = PortKey(message.datapath.id, message.match.get("in_port"))
            self.network.host_silent(port, message.match["eth_src"])
        elif message.cookie == rules.COOKIE_PATH:
            key = rules.flow_of(message.match)
            if key is not None:
                now = time.monotonic()
                self._apply(self.flows.removed(key, now), now)

    # Time

    def _network_changed(self) -> None:
        if self.network.stale:
            self._changed.set()

    def _refresh(self) -> None:
        """Work out the ways anew when the network has changed; changes mostly come in company."""
        while True:
            self._changed.wait()
            hub.sleep(_REFRESH_DELAY)
            self._changed.clear()
            if not self.network.stale:
                continue
            now = time.monotonic()
            for move in self.network.refresh():
                self._apply(self.flows.repath(move.new.key, move.new.path, now), now)

    def _tick(self) -> None:
        while True:
            self.network.tick(time.monotonic())
            self._network_changed()
            hub.sleep(_TICK)

    def _expire(self) -> None:
        """Where no agent tells what is still alive, silence is all there is to go by."""
        while True:
            hub.sleep(self.flows.idle_timeout / 4)
            now = time.monotonic()
            self._apply(self.flows.expire(now), now)
            for assigned in self.network.paths:
                if self.flows.get(assigned.key) is None:
                    self.network.release(assigned.key, closed=False)

    # Queues and windows

    def _watch(self, link: AgentLink) -> None:
        """Ask one agent for its queues, every interval while a governed port has flows."""
        interval = self.engine.policy.interval
        poll = self.config.number("fairq_ryu", "flow_poll_interval")
        idle_ms = int(self.flows.idle_timeout * 1000)
        while self.agents.get(link.dpid) is link:
            now = time.monotonic()
            if now - link.flows_asked_at >= poll:
                link.flows_asked_at = now
                link.datapath.send_msg(rules.ask_flows(link.datapath, idle_ms))
            if link.asked_at is None or now - link.asked_at > _ANSWER_TIMEOUT:
                link.asked_at = now
                link.ask_queues(now)
            if any(self.engine.busy(PortKey(link.dpid, port)) for port in link.governed):
                hub.sleep(max(0.0, interval - (time.monotonic() - now)))
            else:
                link.wake.clear()
                link.wake.wait(max(interval, _IDLE_INTERVAL))

    @set_ev_cls(ofp_event.EventOFPExperimenterStatsReply, MAIN_DISPATCHER)
    def on_experimenter_reply(self, event: Any) -> None:
        """An agent's answer: queue depths or flow records."""
        message = event.msg
        body = message.body
        link = self.agents.get(oxm.bridge_dpid(message.datapath.id))
        if link is None or link.datapath is not message.datapath or body.experimenter != oxm.EXPERIMENTER_ID:
            return
        more = bool(message.flags & ofp.OFPMPF_REPLY_MORE)
        try:
            if body.exp_type == depth.EXP_TYPE_QUEUE_DEPTH:
                self._on_depths(link, depth.decode_reply(bytes(body.data)), more)
            elif body.exp_type == records.EXP_TYPE_FLOW_RECORDS:
                link.flows += records.decode_reply(bytes(body.data))
                if not more:
                    self._on_records(link)
        except ValueError as error:
            self.logger.warning("agent of bridge %016x talks nonsense: %s", link.dpid, error)

    def _on_depths(self, link: AgentLink, found: list[depth.QueueDepth], more: bool) -> None:
        now = time.monotonic()
        if not more:
            link.asked_at = None
        default = int(self.config.number("fairq_ryu", "default_buffer"))
        for record in found:
            before = link.depths.get(record.port)
            link.depths[record.port] = record
            key = PortKey(link.dpid, record.port)
            if not record.limit and not default and not (before and before.limit):
                self._leave_alone(key, record)
                continue
            sample = depth.sample(record, before)
            if not sample.limit:
                sample = sample._replace(limit=default)
            self._send(self.engine.sampled(key, sample, now))

    def _leave_alone(self, key: PortKey, record: depth.QueueDepth) -> None:
        """Most ports have no queue to govern, and cost no more than this."""
        if record.backlog and key not in self._unbuffered:
            self._unbuffered.add(key)
            self.logger.warning(
                "port %s has a queue, but its discipline does not say how many bytes it holds: left alone. "
                "Set [fairq_ryu] default_buffer to govern it",
                key,
            )

    def _on_records(self, link: AgentLink) -> None:
        now = time.monotonic()
        seen = [
            SeenFlow(
                key=record.key,
                port=PortKey(link.dpid, record.port),
                closed=bool(record.flags & records.CLOSED),
                idle=record.idle_ms / 1000,
                bytes=record.bytes,
                wscale=record.wscale,
                mss=record.mss,
            )
            for record in link.flows
        ]
        link.flows = []
        self._apply(self.flows.reconcile(link.dpid, seen, now), now)

    def _apply(self, events: list[FlowEvent], now: float) -> list[Any]:
        """Flows started or ended on ports: ask the policy, send what it wants. Returns whom it told."""
        changes: list[RuleChange] = []
        # All is worked out before anything is sent: sending may let another greenlet in.
        for event in events:
            if event.started:
                self._wake(event.port)
                changes += self.engine.flow_started(event.port, event.flow, now)
            else:
                changes += self.engine.flow_ended(event.port, event.flow.key, now)
        told = self._send(changes)
        for event in events:
            if not event.started:
                self._release_if_over(event.flow.key)
        return told

    def _wake(self, port: PortKey) -> None:
        """A flow starts on a port. If its queue has not been read lately, that is done now, so that the
        first ACK meets a window.
        """
        link = self.agents.get(port.dpid)
        if link is not None and not self.engine.busy(port):
            record = link.depths.get(port.port)
            if record is None or record.limit or link.govern_all:
                link.wake.set()

    def _release_if_over(self, key: FlowKey) -> None:
        """A connection that is counted nowhere any more needs no path."""
        connection = self.flows.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            self.network.release(key, closed=connection is not None)

    def _send(self, changes: list[RuleChange]) -> list[Any]:
        """Say rule changes to the agents they are for; returns these."""
        told: dict[int, Any] = {}
        for change in changes:
            link = self.agents.get(change.target.port.dpid)
            if link is not None:
                told[link.dpid] = link.datapath
                link.datapath.send_msg(rules.window_rule(link.datapath, change, self.lease))
        return list(told.values())


def _state(port: Any) -> PortState:
    up = not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)
    return PortState(port.port_no, up, port.name.decode("utf-8", "replace").rstrip("\0"))

"""The controller that all policies share: Ryu's events in, messages out.

Two kinds of switches connect: bridges (stock Open vSwitch), where hosts and flows are tracked, and
their agents, where queues are read and windows are set.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.apps import settings
from fairq_ryu.fabric.flows import FlowEvent, FlowTable, SeenFlow
from fairq_ryu.fabric.hosts import HostTable
from fairq_ryu.model import PortKey, RuleChange
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
# A host's rules are not repeated within this many seconds.
_TELL_AGAIN = 1.0


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

    def port_to_ask(self, now: float) -> int:
        """The one port with a queue to govern, if there is just one; all ports otherwise, and now and
        then in any case, because queues come and go.
        """
        governed = [number for number, record in self.depths.items() if record.limit or self.govern_all]
        if len(governed) == 1 and now - self.all_asked_at < _ALL_PORTS_INTERVAL:
            return governed[0]
        self.all_asked_at = now
        return int(ofp.OFPP_ANY)


class Controller(app_manager.RyuApp):
    """Base of the applications; each names its policy."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofp.OFP_VERSION]
    policy_name: ClassVar[str] = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config = settings.or_exit(settings.load)
        settings.or_exit(settings.check_port)
        policy_class = settings.or_exit(lambda: base.find(self.policy_name))
        policy = policy_class(self.config.section(self.policy_name))
        self.lease = int(self.config.number("fairq_ryu", "lease"))
        self.engine = PolicyEngine(policy, self.lease)
        self.hosts = HostTable()
        self.flows = FlowTable(self.config.number("fairq_ryu", "flow_idle_timeout"))
        self.bridges: dict[int, Any] = {}
        self.agents: dict[int, AgentLink] = {}
        self._unbuffered: set[PortKey] = set()
        hub.spawn(self._expire)

    # Switches come and go

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event: Any) -> None:
        """A switch has connected."""
        datapath = event.msg.datapath
        if oxm.is_agent(datapath.id):
            self._agent_came(datapath)
        else:
            self._bridge_came(datapath)

    def _bridge_came(self, datapath: Any) -> None:
        self.bridges[datapath.id] = datapath
        # What it knew of hosts goes with its rules.
        self.hosts.forget_switch(datapath.id)
        rate = int(self.config.number("fairq_ryu", "packet_in_rate"))
        messages = [rules.no_copy_limit(datapath)]
        if rate:
            messages.append(rules.copy_limit(datapath, rate))
        for message in [*messages, *rules.pipeline(datapath)]:
            datapath.send_msg(message)
        self.logger.info("bridge %016x: connected", datapath.id)

    def _agent_came(self, datapath: Any) -> None:
        link = AgentLink(datapath, bool(self.config.number("fairq_ryu", "default_buffer")))
        self.agents[link.dpid] = link
        # Whatever stands there is of another life; what should stand is set with the next sample.
        datapath.send_msg(rules.clear(datapath))
        self.engine.switch_gone(link.dpid)
        hub.spawn(self._watch, link)
        self.logger.info("agent of bridge %016x: connected", link.dpid)

    @set_ev_cls(ofp_event.EventOFPStateChange, [DEAD_DISPATCHER])
    def on_dead(self, event: Any) -> None:
        """A switch's connection has ended."""
        datapath: Any = event.datapath
        if datapath is None or datapath.id is None:
            return
        link: AgentLink | None = None
        if oxm.is_agent(datapath.id):
            link = self.agents.get(oxm.bridge_dpid(datapath.id))
        if link is not None and link.datapath is datapath:
            del self.agents[link.dpid]
            link.wake.set()
            self.engine.switch_gone(link.dpid)
            self.logger.warning("agent of bridge %016x: connection lost", link.dpid)
        elif datapath.id in self.bridges and self.bridges[datapath.id] is datapath:
            del self.bridges[datapath.id]
            self.logger.warning("bridge %016x: connection lost", datapath.id)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event: Any) -> None:
        """A port came, went or changed."""
        message = event.msg
        datapath = message.datapath
        if message.reason != ofp.OFPPR_DELETE:
            return
        if oxm.is_agent(datapath.id):
            key = PortKey(oxm.bridge_dpid(datapath.id), message.desc.port_no)
            self.engine.port_gone(key)
            link = self.agents.get(key.dpid)
            if link is not None:
                link.depths.pop(key.port, None)
            self._unbuffered.discard(key)
            return
        key = PortKey(datapath.id, message.desc.port_no)
        for host in self.hosts.forget_port(key):
            datapath.send_msg(rules.forget_source(datapath, host.mac))
            datapath.send_msg(rules.forget_destination(datapath, host.mac))
        self._apply(self.flows.forget_port(key), time.monotonic())

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
        """A copy of a frame, or an ARP message."""
        message = event.msg
        datapath = message.datapath
        if datapath.id not in self.bridges:
            return
        frame = packets.parse(bytes(message.data))
        if frame is None:
            return
        in_port = PortKey(datapath.id, message.match["in_port"])
        if message.cookie in (rules.COOKIE_SOURCE, rules.COOKIE_ARP):
            self._host_seen(datapath, frame, in_port)
        if message.cookie == rules.COOKIE_ARP:
            self._answer_arp(datapath, frame, in_port, bytes(message.data))
        elif message.cookie == rules.COOKIE_TCP and frame.tcp is not None:
            now = time.monotonic()
            destination = self.hosts.by_mac(frame.dst)
            out_port = destination.port if destination is not None else None
            if out_port is not None and out_port.dpid != datapath.id:
                out_port = None
            self._apply(self.flows.segment(frame.tcp, in_port, out_port, now), now)

    def _host_seen(self, datapath: Any, frame: packets.Frame, in_port: PortKey) -> None:
        news = self.hosts.seen(frame.src, in_port, frame.ip)
        host, now = self.hosts.by_mac(frame.src), time.monotonic()
        # Said again even if it is no news: the switch asked, so its rule has gone; but not for every
        # copy that was under way before the rule stood.
        if host is not None and (news or now - host.told > _TELL_AGAIN):
            host.told = now
            timeout = int(self.config.number("fairq_ryu", "host_idle_timeout"))
            for message in rules.host(datapath, frame.src, in_port.port, timeout):
                datapath.send_msg(message)

    def _answer_arp(self, datapath: Any, frame: packets.Frame, in_port: PortKey, data: bytes) -> None:
        arp = frame.arp
        if arp is None:
            return
        wanted = self.hosts.by_ip(arp.target_ip)
        if arp.operation == packets.ARP_REQUEST and wanted is not None and arp.target_ip != arp.sender_ip:
            if wanted.mac != frame.src:
                reply = packets.arp_reply(arp, wanted.mac, frame.tags)
                datapath.send_msg(rules.packet_out(datapath, reply, ofp.OFPP_CONTROLLER, in_port.port))
            return
        datapath.send_msg(rules.packet_out(datapath, data, in_port.port, ofp.OFPP_FLOOD))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_flow_removed(self, event: Any) -> None:
        """A host has been silent: forget where it is."""
        message = event.msg
        datapath = message.datapath
        mac = message.match.get("eth_src")
        if message.cookie != rules.COOKIE_SOURCE or mac is None or message.reason != ofp.OFPRR_IDLE_TIMEOUT:
            return
        host = self.hosts.by_mac(mac)
        if host is not None and host.port == PortKey(datapath.id, message.match.get("in_port")):
            self.hosts.forget(mac)
            datapath.send_msg(rules.forget_destination(datapath, mac))

    def _expire(self) -> None:
        """Where no agent tells what is still alive, silence is all there is to go by."""
        while True:
            hub.sleep(self.flows.idle_timeout / 4)
            now = time.monotonic()
            self._apply(self.flows.expire(now), now)

    # Queues and windows

    def _watch(self, link: AgentLink) -> None:
        """Ask one agent for its queues, every interval while its bridge has flows."""
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
            if self.engine.busy(link.dpid):
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

    def _apply(self, events: list[FlowEvent], now: float) -> None:
        """Flows started or ended on ports: ask the policy, send what it wants."""
        changes: list[RuleChange] = []
        # All is worked out before anything is sent: sending may let another greenlet in.
        for event in events:
            if event.started:
                link = self.agents.get(event.port.dpid)
                if link is not None and not self.engine.busy(event.port.dpid):
                    # Its queue has not been read lately: do so now, so that the first ACK meets a window.
                    link.wake.set()
                changes += self.engine.flow_started(event.port, event.flow, now)
            else:
                changes += self.engine.flow_ended(event.port, event.flow.key, now)
        self._send(changes)

    def _send(self, changes: list[RuleChange]) -> None:
        for change in changes:
            link = self.agents.get(change.target.port.dpid)
            if link is not None:
                link.datapath.send_msg(rules.window_rule(link.datapath, change, self.lease))

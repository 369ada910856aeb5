"""Switches that connect, change and disconnect: bridges and their agents.

A datapath id with the agent's mark is that of an agent, any other that of a bridge. An agent is used from its
handshake on; a bridge when its rules are known (:mod:`~fairq_ryu.control.bridge_joining`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import oxm
from fairq_ryu.control.agents import AgentLink
from fairq_ryu.control.bridge_joining import BridgeJoining
from fairq_ryu.control.bridges import FabricController, PortState
from fairq_ryu.control.event_reporter import EventReporter
from fairq_ryu.control.flow_tracking import FlowTracker
from fairq_ryu.control.port_traffic import PortTrafficTable
from fairq_ryu.control.rerouting import Rerouting
from fairq_ryu.control.sender import Sender
from fairq_ryu.control.windows import WindowController
from fairq_ryu.model import PortKey, dpid_text
from fairq_ryu.openflow import pipeline


@dataclass(eq=False)
class Switches:
    """All switches. ``poll`` starts to poll an agent that has connected."""

    fabric: FabricController
    windows: WindowController
    tracker: FlowTracker
    traffic: PortTrafficTable
    rerouting: Rerouting
    reporter: EventReporter
    poll: Callable[[AgentLink], object]
    log: logging.Logger
    joining: BridgeJoining = field(default_factory=BridgeJoining, init=False)

    def connected(self, datapath: Any) -> None:
        """The handshake of a switch is complete."""
        if oxm.is_agent(datapath.id):
            link = self.windows.agent_connected(datapath)
            self.poll(link)
            self.log.info("agent of bridge %s: connected", dpid_text(link.dpid))
        else:
            Sender.send(self.joining.start(datapath))

    def rules_listed(self, message: Any) -> None:
        """A bridge that joins has listed rules (Ryu's ``OFPFlowStatsReply``)."""
        rules = self.joining.add_rules(message)
        if rules is None:
            return
        datapath = message.datapath
        ports = (_port_state(port) for port in datapath.ports.values() if port.port_no <= ofp.OFPP_MAX)
        self.fabric.bridge_connected(datapath, ports, rules, time.monotonic())
        self.rerouting.notify()
        self.reporter.bridge(datapath.id, connected=True)
        self.log.info("bridge %s: connected", dpid_text(datapath.id))

    def disconnected(self, datapath: Any) -> None:
        """The connection of a switch has ended."""
        if oxm.is_agent(datapath.id):
            link = self.windows.link_of(datapath)
            if link is not None:
                self.windows.agent_disconnected(link)
                self.log.warning("agent of bridge %s: connection lost", dpid_text(link.dpid))
            return
        self.joining.disconnected(datapath)
        if self.fabric.bridge_disconnected(datapath):
            self.rerouting.notify()
            self.reporter.bridge(datapath.id, connected=False)
            self.log.warning("bridge %s: connection lost", dpid_text(datapath.id))

    def port_status(self, message: Any) -> None:
        """A port was added, removed or changed (Ryu's ``OFPPortStatus``)."""
        datapath, number = message.datapath, message.desc.port_no
        removed = message.reason == ofp.OFPPR_DELETE
        if oxm.is_agent(datapath.id):
            if removed:
                self.windows.port_removed(PortKey(oxm.bridge_dpid(datapath.id), number))
            return
        if datapath.id not in self.fabric.bridges or number > ofp.OFPP_MAX:
            return
        key, now = PortKey(datapath.id, number), time.monotonic()
        if removed:
            self.fabric.port_removed(key)
            self.traffic.forget(key)
            self.tracker.port_removed(key, now)
        else:
            self.fabric.port_changed(datapath.id, _port_state(message.desc), now)
        self.rerouting.notify()

    def link_lost(self, source: PortKey, target: PortKey) -> None:
        """No discovery frames come through a link any more."""
        self.fabric.topology.link_lost(source, target)
        self.rerouting.notify()

    def rule_removed(self, message: Any) -> None:
        """A rule of a bridge was removed (Ryu's ``OFPFlowRemoved``). One that has timed out means that a
        host, or a pinned connection, has been silent.
        """
        if message.reason not in (ofp.OFPRR_IDLE_TIMEOUT, ofp.OFPRR_HARD_TIMEOUT):
            return
        match = message.match
        if message.cookie == pipeline.COOKIE_SOURCE and match.get("eth_src") is not None:
            self.fabric.host_silent(PortKey(message.datapath.id, match.get("in_port")), match["eth_src"])
        elif message.cookie == pipeline.COOKIE_PATH:
            self.tracker.path_rule_expired(match, time.monotonic())


def _port_state(port: Any) -> PortState:
    up = not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)
    return PortState(port.port_no, up, port.name.decode("utf-8", "replace").rstrip("\0"))

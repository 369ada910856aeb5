"""Switches that connect, change and disconnect: bridges and their agents.

A datapath id with the agent's mark is that of an agent, any other that of a bridge. An agent is used when it
has described itself, if it speaks this version of the channel; a bridge when it has joined in one of the ways
(:mod:`~fairq_ryu.control.arrivals.bridge_connections`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import description, oxm
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.arrivals.bridge_connections import BridgeConnections, port_state
from fairq_ryu.control.arrivals.rerouting import Rerouting
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.port_traffic import PortTrafficTable
from fairq_ryu.control.sender import Sender
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import plain
from fairq_ryu.model import PortKey, dpid_text
from fairq_ryu.openflow import beside, pipeline


@dataclass(eq=False)
class Switches:
    """All switches. ``poll`` starts to poll an agent that has connected; ``warn`` logs a line about a switch
    (its name and the line), at a limited rate.
    """

    fabric: FabricController
    windows: WindowController
    tracker: FlowTracker
    traffic: PortTrafficTable
    rerouting: Rerouting
    bridges: BridgeConnections
    poll: Callable[[AgentLink], object]
    log: logging.Logger
    warn: Callable[[str, str], None]
    _describing: set[Any] = field(default_factory=set, init=False)  # connections of agents

    def connected(self, datapath: Any) -> None:
        """The handshake of a switch is complete."""
        if oxm.is_agent(datapath.id):
            self._describing.add(datapath)
            Sender.send([(datapath, beside.ask_description(datapath))])
        else:
            self.bridges.connected(datapath)

    def disconnected(self, datapath: Any, why: str = "connection lost") -> None:
        """The connection of a switch has ended, or is of no use any more; ``why`` is for the log."""
        if not oxm.is_agent(datapath.id):
            self.bridges.disconnected(datapath, why)
            return
        self._describing.discard(datapath)
        link = self.windows.link_of(datapath)
        if link is not None:
            self.windows.agent_disconnected(link)
            self.log.warning("agent of bridge %s: %s", dpid_text(link.dpid), why)

    def port_status(self, message: Any) -> None:
        """A port was added, removed or changed (Ryu's ``OFPPortStatus``)."""
        datapath, number = message.datapath, message.desc.port_no
        removed, now = message.reason == ofp.OFPPR_DELETE, time.monotonic()
        if oxm.is_agent(datapath.id):
            self._agent_port(PortKey(oxm.bridge_dpid(datapath.id), number), message.desc, removed, now)
        elif number <= ofp.OFPP_MAX:
            self._bridge_port(PortKey(datapath.id, number), message.desc, removed, now)

    def _agent_port(self, key: PortKey, described: Any, removed: bool, now: float) -> None:
        link = self.windows.links.get(key.dpid)
        if link is not None:
            self.windows.far_orders.port_changed(link, key.port)
        if removed:
            self.windows.port_removed(key)
        elif link is not None:
            self.windows.mode_changes.port_named(link, key.port, described.name, now)
            self.windows.name_ports_of(key.dpid, now)

    def _bridge_port(self, key: PortKey, described: Any, removed: bool, now: float) -> None:
        inventory = self.windows.inventory
        if not inventory.is_connected(key.dpid):
            return
        if removed:
            self.traffic.forget(key)
            self.tracker.port_removed(key, now)
        if inventory.beside(key.dpid) is not None:
            if removed:
                inventory.port_removed(key)
                self.fabric.loops.port_removed(key)
            else:
                state = port_state(described)
                inventory.port_changed(key.dpid, state)
                self.fabric.loops.port_changed(key, state.up, now)
            self.windows.name_ports_of(key.dpid, now)
            return
        if removed:
            self.fabric.port_removed(key)
        else:
            self.fabric.port_changed(key.dpid, port_state(described), now)
        self.rerouting.notify()

    def described(self, message: Any) -> None:
        """A switch has described itself (Ryu's ``OFPDescStatsReply``): a bridge, or an agent."""
        if oxm.is_agent(message.datapath.id):
            self._agent_described(message.datapath, message.body)
        else:
            self.bridges.described(message)

    def _agent_described(self, datapath: Any, body: Any) -> None:
        if datapath not in self._describing:
            return  # repeated, or late
        self._describing.remove(datapath)
        who = f"agent of bridge {dpid_text(oxm.bridge_dpid(datapath.id))}"
        try:
            about = description.decode(body)
        except ValueError as error:
            self.warn(who, f"{who}: refused: {error}")
            text = str(error).encode()
            refusal = parser.OFPErrorMsg(datapath, ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE, data=text)
            Sender.send_last(datapath, refusal)
            return
        link = self.windows.agent_connected(datapath, about._replace(bridge=plain(about.bridge)))
        self.windows.name_ports_of(link.dpid, time.monotonic())
        link.send(link.request_port_settings())
        self.poll(link)
        self.log.info("%s: connected", who)
        for lack in about.lacks:
            self.log.info("%s: its kernel %s", who, lack)
        if link.unifies_scales and self.bridges.unpinned(link.dpid):
            self.log.warning(
                "%s: it changes window scales, and no path is pinned: take unify_scale out of its "
                "configuration, or set [fairq_ryu] way = paths for this controller",
                who,
            )

    def rule_removed(self, message: Any) -> None:
        """A rule of a bridge was removed (Ryu's ``OFPFlowRemoved``). One that has timed out means that a
        host, or a pinned connection, has been silent.
        """
        if message.reason not in (ofp.OFPRR_IDLE_TIMEOUT, ofp.OFPRR_HARD_TIMEOUT):
            return
        match = message.match
        sources = (pipeline.COOKIE_SOURCE, pipeline.COOKIE_VLAN_SOURCE)
        if message.cookie in sources and match.get("eth_src") is not None:
            port = PortKey(message.datapath.id, match.get("in_port"))
            self.fabric.host_silent(port, match["eth_src"], pipeline.vlan_of(match))
        elif message.cookie == pipeline.COOKIE_PATH:
            self.tracker.path_rule_expired(match, time.monotonic())

"""Packet-ins: which rule sent a frame to the controller, and which part of the controller handles it.

The cookie names the rule. Frames are counted by kind
(:data:`~fairq_ryu.control.reports.counters.PACKET_INS`). Copies of segments, of which there are most, come by
:meth:`PacketIns.segment_copy`, without Ryu's events.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from fairq_ryu.control.arrivals.agent_messages import AgentMessages
from fairq_ryu.control.arrivals.rerouting import Rerouting
from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.flows.syn_admission import SynAdmission
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.model import PortKey, new_tuple
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import parse, segment_probe

COPIES = pipeline.COOKIE_TCP
"""The cookie of the rules that copy segments: what they send is for :meth:`PacketIns.segment_copy`."""
# Without discovery frames, which are known by their type.
KINDS = {
    COPIES: "tcp",
    pipeline.COOKIE_HELD: "held",
    pipeline.COOKIE_ARP: "arp",
    pipeline.COOKIE_SOURCE: "source",
}
_LLDP_BYTES = pipeline.ETH_TYPE_LLDP.to_bytes(2, "big")


@dataclass(eq=False)
class PacketIns:
    """Passes packet-ins to the parts of the controller that handle them."""

    fabric: FabricController
    tracker: FlowTracker
    admission: SynAdmission
    messages: AgentMessages
    rerouting: Rerouting
    counts: Counts

    def packet_in(self, event: Any) -> None:
        """A frame of a bridge, or a dropped packet of an agent (Ryu's ``EventOFPPacketIn``)."""
        message = event.msg
        datapath = message.datapath
        number = message.match.get("in_port")
        if number is None:
            self.counts.packet_ins["other"] += 1
            return
        data = bytes(message.data)
        in_port = PortKey(datapath.id, number)
        loops, is_lldp = self.fabric.loops, data[12:14] == _LLDP_BYTES
        if datapath.id not in self.fabric.bridges:
            if datapath.id not in loops.bridges:
                self.messages.packet_in(message, time.monotonic())
            elif is_lldp:
                self.counts.packet_ins["lldp"] += 1
                loops.frame(data, in_port, time.monotonic())
            return
        if is_lldp:
            self.counts.packet_ins["lldp"] += 1
            if loops.frame(data, in_port, time.monotonic()):
                return
            self.fabric.discovery_frame(data, in_port, time.monotonic())
            self.rerouting.notify()
            return
        if segment_probe.is_probe(data):
            self.counts.packet_ins["lldp"] += 1
            self.fabric.segment_probe_arrived(data, in_port, time.monotonic())
            self.rerouting.notify()
            return
        read = self._read(in_port, data)
        self.counts.packet_ins["other" if read is None else KINDS.get(message.cookie, "other")] += 1
        if read is not None:
            frame, arrived = read
            self._frame(datapath, message.cookie, frame, data, arrived)

    def _read(self, in_port: PortKey, data: bytes) -> tuple[parse.Frame, PortKey] | None:
        """A frame, and the port where it counts as arrived. None: it cannot be read, or the port is not used
        or does not carry its VLAN.
        """
        arrival = self.fabric.arrival(in_port)
        frame = None if arrival is None else parse.parse(data, arrival[1])
        if arrival is None or frame is None or not self.fabric.carries(in_port, frame.vlan):
            return None
        return frame, arrival[0]

    def segment_copy(self, datapath: Any, number: int, data: bytes) -> bool:
        """The copy of a segment that came in by a port of a bridge. It may overtake events of Ryu. So it is
        left to Ryu (False) if one of these may change what it means: if its sender is not known at this port
        yet, or its bridge has just connected. So is what is no segment.
        """
        in_port = new_tuple(PortKey, (datapath.id, number))
        if self.fabric.bridges.get(datapath.id) is not datapath:
            return False
        read = self._read(in_port, data)
        if read is None:
            return False
        frame, arrived = read
        host = self.fabric.hosts.by_mac(frame.src, frame.vlan)
        if frame.tcp is None or host is None or host.port != arrived:
            return False
        self.counts.packet_ins["tcp"] += 1
        self.tracker.copied(frame, frame.tcp, arrived, time.monotonic())
        return True

    def _frame(self, datapath: Any, cookie: int, frame: parse.Frame, data: bytes, in_port: PortKey) -> None:
        now = time.monotonic()
        if cookie in (pipeline.COOKIE_SOURCE, pipeline.COOKIE_ARP):
            self.fabric.host_seen(datapath, frame, in_port, now)
            self.rerouting.notify()
        if cookie == pipeline.COOKIE_ARP:
            self.fabric.answer_arp(datapath, frame, in_port, data, now)
        elif cookie == COPIES and frame.tcp is not None:
            self.tracker.copied(frame, frame.tcp, in_port, now)
        elif cookie == pipeline.COOKIE_HELD:
            self.admission.hold(datapath, frame, data, in_port, now)

"""Hosts: their ports are learned from their frames; ARP requests are answered from the host table.

Returns messages and sends nothing. What a frame claims of another host is checked first, see
:mod:`~fairq_ryu.control.paths.address_claims`. Bounded: ARP requests are stored only while the roles of some
ports are undecided, and at most :data:`_MAX_PENDING_ARP` of them.

A new host costs rules in every bridge, so each port has a limit of them
(:mod:`~fairq_ryu.fabric.topology.host_limit`). The meters of the copies
(:mod:`~fairq_ryu.control.paths.copy_meters`) are none: a tenth of ``packet_in_rate``, 1,000 frames a second
by default, may come by the classes SOURCE and ARP of a port, each from a new address; some bridges have no
meters, and the setting can be 0. A host beyond the limit is not learned by this frame: the bridge floods what
is sent to it, and copies its next frame. Hosts that are known or have moved, and those of a warm restart,
have no limit.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.paths.address_claims import AddressClaims
from fairq_ryu.control.paths.forwarding_rules import ForwardingRules
from fairq_ryu.control.sender import Outgoing, to_switch
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.host_limit import BURST, RATE, HostLimit
from fairq_ryu.fabric.topology.hosts import Host, HostTable
from fairq_ryu.fabric.topology.paths import PathTable
from fairq_ryu.fabric.topology.ports import LogicalPorts, split
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath
from fairq_ryu.packet import build, parse, tags
from fairq_ryu.packet.headers import ARP_REQUEST

# A host's rules are not sent again within this many seconds.
_RESEND_INTERVAL = 1.0
_MAX_PENDING_ARP = 1024
# ARP requests for unknown hosts that one port may have sent to all hosts in a second: each is a message to
# every bridge.
_MAX_FLOODED_ARP = 100
# What is logged about the limit of new hosts, once in this many seconds.
_WARNING_INTERVAL = 60.0


@dataclass(eq=False)
class HostLearning:
    """Keeps ``hosts`` up to date. ``idle_timeout``: of a host's rules, seconds."""

    bridges: Mapping[int, Datapath]
    topology: Topology
    hosts: HostTable
    paths: PathTable
    forwarding: ForwardingRules
    claims: AddressClaims
    idle_timeout: int
    ports: LogicalPorts
    release: Callable[[Host, PortKey], list[Outgoing]]
    """releases the connections of a host that has moved away from a port"""
    log: logging.Logger
    limit: HostLimit = field(default_factory=HostLimit, init=False)
    _warned_at: float = field(default=-math.inf, init=False)
    _pending_arp: dict[tuple[int, str], bytes] = field(default_factory=dict, init=False)
    """request frames by VLAN and wanted address"""
    _flooded_arp: Counter[PortKey] = field(default_factory=Counter, init=False)
    _flooded_since: float = field(default=0.0, init=False)

    def frame_from_unknown(
        self, datapath: Datapath, frame: parse.Frame, in_port: PortKey, now: float
    ) -> list[Outgoing]:
        """A frame came in by a port at which its source address is not known. What it claims of another host
        is learned when that host does not answer.
        """
        if frame.arp is not None:
            self.claims.answered(frame, in_port, now)
        known = self.hosts.by_mac(frame.src, frame.vlan)
        if known is not None and known.port != in_port:
            if self.topology.waits_at(in_port):
                return []  # the host has moved, or the port is a link that is not discovered yet
            if self.claims.moves(known, frame, in_port, now):
                return self.claims.questions(now)
        contested = self.claims.contests(frame, in_port, now)
        messages = self._learn(datapath, frame, None if contested else frame.ip, in_port, now)
        return messages + (self.claims.questions(now) if contested else [])

    def _learn(
        self, datapath: Datapath, frame: parse.Frame, ip: str | None, in_port: PortKey, now: float
    ) -> list[Outgoing]:
        if not self.topology.frame_seen(in_port, now):
            return []
        known = self.hosts.by_mac(frame.src, frame.vlan)
        new, before = known is None, None if known is None else known.port
        if new and not self.limit.admits(in_port, now):
            self._warn(in_port, now)
            return []
        changed = self.hosts.seen(frame.src, in_port, ip, frame.vlan)
        host = self.hosts.by_mac(frame.src, frame.vlan)
        if host is None:
            return []
        if new and host.vlan and self.hosts.vlans[host.vlan] == 1:
            self.topology.touch()  # the VLAN may need flood rules of its own
        messages: list[Outgoing] = []
        if before is not None and before != host.port:
            messages += self._moved(host, before)
        if changed:
            messages += self.forwarding.host_changed(self.paths.routes, host.mac, host.port, host.vlan)
        # Sent again even without a change, because the switch has no rule for the host; but not for every
        # copy that was under way before the rule was installed.
        if changed or now - host.sent_at > _RESEND_INTERVAL:
            host.sent_at = now
            messages += self._source(datapath, host, first=new)
        return messages

    def _warn(self, port: PortKey, now: float) -> None:
        if now - self._warned_at >= _WARNING_INTERVAL:
            self._warned_at = now
            self.log.warning(
                "port %s: frames from too many new addresses (more than %s at once and %s a second): not "
                "learned as hosts; see who sends them (they are counted, and logged once a minute)",
                port,
                f"{BURST:,}",
                RATE,
            )

    def _moved(self, host: Host, before: PortKey) -> list[Outgoing]:
        """Its connections follow the rules by destination, and where it was it is not known any more: if it
        comes back, its frames are copied.
        """
        messages = self.release(host, before)
        former = self.bridges.get(before.dpid)
        if former is not None and before.dpid != host.port.dpid:
            messages.append((former, pipeline.forget_source(former, host.mac, host.vlan)))
        return messages

    def _source(self, datapath: Datapath, host: Host, first: bool = False) -> list[Outgoing]:
        """The rules of a host at its port, or at all members of its bond. ``first``: it was not known, so
        that it has none: a host is forgotten with its rules.
        """
        numbers = [port.port for port in self.ports.members(host.port)]
        rules = pipeline.source(datapath, host.mac, numbers, self.idle_timeout, host.vlan, first)
        return to_switch(datapath, rules)

    def decide_claims(self, now: float) -> list[Outgoing]:
        """Learn what hosts claimed whose holders do not answer, and ask other holders."""
        messages: list[Outgoing] = []
        for claimed in self.claims.believed(now):
            frame, port = claimed.frame, claimed.port
            datapath = self.bridges.get(port.dpid)
            if datapath is None:
                continue
            messages += self._learn(datapath, frame, frame.ip, port, now)
            if claimed.data is not None:
                messages += self.arp_request(datapath, frame, port, claimed.data, now)
        return messages + self.claims.questions(now)

    def source_rules(self, datapath: Datapath) -> Iterator[Outgoing]:
        """The rules of all hosts behind a bridge that has just connected."""
        for host in self.hosts.behind(datapath.id):
            yield from self._source(datapath, host)

    def silent(self, port: PortKey, mac: str, vlan: int = 0) -> list[Outgoing]:
        """A host has sent nothing at a port for the idle timeout of its rule."""
        host = self.hosts.by_mac(mac, vlan)
        if host is None or port not in (members := self.ports.members(host.port)):
            return []
        messages: list[Outgoing] = []
        if len(members) > 1 and (datapath := self.bridges.get(port.dpid)) is not None:
            # It may still send at another member: then the next frame is copied, and it is learned again.
            messages.append((datapath, pipeline.forget_source(datapath, mac, vlan)))
        self.hosts.forget(mac, vlan)
        return [*messages, *self.forwarding.host_changed(self.paths.routes, mac, None, vlan)]

    def forget_port(self, port: PortKey) -> list[Outgoing]:
        """A port was removed or leads to a switch: no host is behind it."""
        datapath = self.bridges.get(port.dpid)
        messages: list[Outgoing] = []
        for host in self.hosts.forget_port(port):
            if datapath is not None:
                messages.append((datapath, pipeline.forget_source(datapath, host.mac, host.vlan)))
            messages += self.forwarding.host_changed(self.paths.routes, host.mac, None, host.vlan)
        return messages

    # ARP

    def arp_request(
        self, datapath: Datapath, frame: parse.Frame, in_port: PortKey, data: bytes, now: float
    ) -> list[Outgoing]:
        """A broadcast ARP frame: answered if the wanted host is known, otherwise sent to all hosts of its
        VLAN. It goes to nobody while it claims an address of another host, if it is an answer to the
        controller, or if its port has too many or is not decided.
        """
        arp, vlan = frame.arp, frame.vlan
        if arp is None or frame.dst == pipeline.PROBE_MAC or self.claims.waits(frame, in_port, data):
            return []
        wanted = self.hosts.by_ip(arp.target_ip, vlan)
        if arp.operation == ARP_REQUEST and wanted is not None and arp.target_ip != arp.sender_ip:
            if wanted.mac == frame.src:
                return []
            untagged = self.ports.settings(in_port).untagged
            reply = build.arp_reply(arp, wanted.mac, tags.at_port(frame.tags, vlan, untagged))
            return [(datapath, pipeline.packet_out(datapath, reply, ofp.OFPP_CONTROLLER, [in_port.port]))]
        if self.topology.waits_at(in_port) or not self._may_flood(in_port, now):
            return []
        if vlan and not frame.tags:
            data = tags.with_tag(data, vlan)
        ports = (port for dpid in self.bridges for port in self.topology.host_ports(dpid) if port != in_port)
        messages = self._send_out(data, ports, vlan)
        if not self.topology.settled and len(self._pending_arp) < _MAX_PENDING_ARP:
            self._pending_arp[vlan, arp.target_ip] = data
        return messages

    def _may_flood(self, port: PortKey, now: float) -> bool:
        if now - self._flooded_since >= 1.0:
            self._flooded_since = now
            self._flooded_arp.clear()
        self._flooded_arp[port] += 1
        return self._flooded_arp[port] <= _MAX_FLOODED_ARP

    def repeat_arp_requests(self, ports: Iterable[PortKey]) -> Iterator[Outgoing]:
        """Send pending requests out of new host ports: the wanted host may be behind one of them."""
        new = list(ports)
        for (vlan, _), data in self._pending_arp.items():
            yield from self._send_out(data, new, vlan)

    def all_ports_decided(self) -> None:
        """The role of every port is known: nothing is pending any more."""
        self._pending_arp.clear()

    def _send_out(self, data: bytes, ports: Iterable[PortKey], vlan: int) -> list[Outgoing]:
        """A frame of a VLAN to be sent out of those ports of any bridges that carry it."""
        by_bridge: dict[int, list[PortKey]] = {}
        for port in ports:
            by_bridge.setdefault(port.dpid, []).append(port)
        messages: list[Outgoing] = []
        for dpid, here in by_bridge.items():
            bridge, numbers = self.bridges.get(dpid), sorted(self.ports.flooded(here, vlan))
            if bridge is not None and numbers:
                out = split(numbers)
                messages.append((bridge, pipeline.packet_out(bridge, data, ofp.OFPP_CONTROLLER, *out)))
        return messages

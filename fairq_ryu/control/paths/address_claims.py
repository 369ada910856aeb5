"""Claims to the addresses of other hosts: the controller asks the holder before it believes one.

A claim is a frame whose source is an IPv4 address of another host, or a MAC address that is known at another
port. If the present holder is reachable, it is asked by a unicast ARP request, and only the controller gets
the answer: the sender of the request is :data:`~fairq_ryu.openflow.pipeline.PROBE_MAC` without an IP address,
as in address conflict detection (RFC 5227), so no host learns anything from it. Until the claim is decided
(:mod:`~fairq_ryu.fabric.topology.claims`), the tables of the controller stay as they are, and a broadcast ARP
frame with the claim goes to nobody. A holder whose port is down, whose bridge is away or that has no IPv4
address cannot be asked: such a claim is believed at once.

ARP between two hosts that is not broadcast does not reach the controller.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.sender import Outgoing
from fairq_ryu.fabric.topology.claims import Claims, Holder
from fairq_ryu.fabric.topology.graph import PortRole, Topology
from fairq_ryu.fabric.topology.hosts import Host, HostTable
from fairq_ryu.fabric.topology.ports import LogicalPorts
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath
from fairq_ryu.packet import addresses, build, parse, tags
from fairq_ryu.packet.headers import mac_bytes

# What is logged about refused claims, once in this many seconds.
_WARNING_INTERVAL = 60.0
# A longer ARP frame is not kept: it is padded for no good reason.
_MAX_KEPT_BYTES = 128
_NO_IP, _NO_MAC = bytes(4), bytes(6)


@dataclass(slots=True)
class Claimed:
    """A frame that claims an address from ``port``; ``data``: the frame itself, if it is broadcast ARP."""

    frame: parse.Frame
    port: PortKey
    data: bytes | None = None


class AddressClaims:
    """The claims of all hosts. Times in seconds of one clock."""

    def __init__(
        self,
        bridges: Mapping[int, Datapath],
        topology: Topology,
        hosts: HostTable,
        ports: LogicalPorts,
        log: logging.Logger,
    ) -> None:
        self._bridges = bridges
        self._topology = topology
        self._hosts = hosts
        self._ports = ports
        self._log = log
        self._warned_at = -math.inf
        self._claims: Claims[Claimed] = Claims()

    @property
    def outcomes(self) -> Mapping[str, int]:
        """The number of claims by outcome: believed, refused, ignored (too many at a time)."""
        return self._claims.outcomes

    def moves(self, known: Host, frame: parse.Frame, port: PortKey, now: float) -> bool:
        """A frame of a known host came in by another port. Returns whether the host must be asked first."""
        ip = next((each for each in reversed(known.addresses) if ":" not in each), None)
        if ip is None or not self._reachable(known):
            return False
        holder = Holder(known.mac, known.port, ip, known.vlan)
        self._claims.add((known.vlan, known.mac), holder, port, Claimed(frame, port), now)
        return True

    def contests(self, frame: parse.Frame, port: PortKey, now: float) -> bool:
        """Whether a frame claims the IPv4 address of another host that must be asked first."""
        holder = self._holder(frame)
        if holder is None or frame.ip is None:
            return False
        if holder.mac != frame.src:  # otherwise the ARP message contradicts the frame that carries it
            question = Holder(holder.mac, holder.port, frame.ip, holder.vlan)
            self._claims.add((holder.vlan, frame.ip), question, port, Claimed(frame, port), now)
        return True

    def waits(self, frame: parse.Frame, port: PortKey, data: bytes) -> bool:
        """Whether a broadcast ARP frame contains a claim that is not decided. It is kept if that is new."""
        if self._holder(frame) is None:
            return False
        claim = None if frame.ip is None else self._claims.get((frame.vlan, frame.ip))
        if claim is not None and claim.what.frame is frame and len(data) <= _MAX_KEPT_BYTES:
            claim.what.data = data
        return True

    def _holder(self, frame: parse.Frame) -> Host | None:
        """The reachable host that holds the IPv4 address which a frame claims for somebody else."""
        if frame.ip is None or ":" in frame.ip:
            return None
        holder = self._hosts.by_ip(frame.ip, frame.vlan)
        if holder is None or not self._reachable(holder):
            return None
        own = holder.mac == frame.src and (frame.arp is None or frame.arp.sender_mac == holder.mac)
        return None if own else holder

    def _reachable(self, host: Host) -> bool:
        port = host.port
        up = self._topology.is_up(port) and self._topology.role(port) is PortRole.HOST
        return up and port.dpid in self._bridges

    def answered(self, frame: parse.Frame, port: PortKey, now: float) -> None:
        """An ARP message came in by a port: it may be the answer of a holder."""
        if frame.arp is None or frame.arp.sender_mac != frame.src:
            return
        holder = Holder(frame.src, port, frame.arp.sender_ip, frame.vlan)
        for claim in self._claims.answered(holder, now):
            if now - self._warned_at >= _WARNING_INTERVAL:
                self._warned_at = now
                self._log.warning(
                    "port %s: it claims address %s, which host %s at port %s still has: not believed (such "
                    "claims are counted, and logged once a minute)",
                    claim.port,
                    claim.address[1],
                    claim.holder.mac,
                    claim.holder.port,
                )

    def questions(self, now: float) -> list[Outgoing]:
        """The ARP requests that are due."""
        messages = []
        for claim in self._claims.questions(now):
            holder = claim.holder
            datapath = self._bridges.get(holder.port.dpid)
            if datapath is not None:
                sender = mac_bytes(pipeline.PROBE_MAC), _NO_IP
                target = _NO_MAC, addresses.packed(holder.ip)
                untagged = self._ports.settings(holder.port).untagged
                there = tags.at_port(claim.what.frame.tags, holder.vlan, untagged)
                frame = build.arp_question(sender, target, mac_bytes(holder.mac), there)
                message = pipeline.packet_out(datapath, frame, ofp.OFPP_CONTROLLER, [holder.port.port])
                messages.append((datapath, message))
        return messages

    def unread(self, now: float) -> list[tuple[Datapath, Callable[[], None]]]:
        """Bridges whose messages must all be read before some claims are decided, and what to call then."""
        found: list[tuple[Datapath, Callable[[], None]]] = []
        for dpid, claims in self._claims.unread(now).items():
            done = partial(self._claims.read, claims)
            datapath = self._bridges.get(dpid)
            if datapath is None:  # it has disconnected: its hosts cannot be reached
                done()
            else:
                found.append((datapath, done))
        return found

    def believed(self, now: float) -> list[Claimed]:
        """The claims whose holders have not answered."""
        return [claim.what for claim in self._claims.believed(now)]

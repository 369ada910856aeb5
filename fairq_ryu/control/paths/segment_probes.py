"""Probes of foreign segments: sent with each discovery frame, by every port that is no link.

:mod:`fairq_ryu.fabric.topology.segments` decides which ports are not used; this module sends probes, believes
those that come back with its own key and in time, and tells what has changed.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.sender import Outgoing
from fairq_ryu.fabric.topology.graph import PortRole, Topology
from fairq_ryu.fabric.topology.ports import LogicalPorts
from fairq_ryu.fabric.topology.segments import Segments
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath
from fairq_ryu.packet import segment_probe
from fairq_ryu.packet.segment_probe import SegmentProbe

# A probe that is older than this, ms, was kept by somebody.
_MAX_AGE_MS = 5000


class SegmentProbes:
    """Keeps the blocked ports of ``ports`` up to date. ``now`` in seconds."""

    def __init__(
        self,
        bridges: Mapping[int, Datapath],
        topology: Topology,
        ports: LogicalPorts,
        log: logging.Logger,
    ) -> None:
        self._bridges, self._topology, self._ports, self._log = bridges, topology, ports, log
        self._key = secrets.token_bytes(16)
        self._segments = Segments(self._may_be_used, topology.is_flooded, topology.parts)
        self._unused: dict[PortKey, PortKey] = {}

    def _may_be_used(self, port: PortKey) -> bool:
        settings, role = self._ports.settings(port), self._topology.role(port)
        idle = settings.mirror or settings.standby
        return role is not PortRole.LINK and self._topology.is_up(port) and not idle

    def probe(self, port: PortKey, now: float) -> list[Outgoing]:
        """A probe to be sent by a port."""
        bridge = self._bridges.get(port.dpid)
        if bridge is None or not self._may_be_used(port):
            return []
        frame = segment_probe.build(SegmentProbe(port, int(now * 1000)), self._key)
        return [(bridge, pipeline.packet_out(bridge, frame, ofp.OFPP_CONTROLLER, [port.port]))]

    def arrived(self, frame: bytes, in_port: PortKey, now: float) -> None:
        """A frame like a probe has come in by a port."""
        probe = segment_probe.parse(frame, self._key)
        if probe is None or not 0 <= now * 1000 - probe.sent_ms <= _MAX_AGE_MS:
            return
        source, here = self._ports.settings(probe.port), self._ports.settings(in_port)
        same_bond = source.bond and self._ports.exit(probe.port) == self._ports.exit(in_port)
        if source.untagged == here.native and not same_bond:
            self._segments.seen(probe.port, in_port, now)

    def update(self, now: float) -> list[PortKey]:
        """Block the ports that must not be used now. Returns those that were not blocked before, or are not
        any more.
        """
        unused = self._segments.unused(now)
        if unused == self._unused:
            return []
        for port in sorted(unused.keys() - self._unused.keys()):
            self._log.warning(
                "port %s leads to the same segment as port %s: it is not used", port, unused[port]
            )
        for port in sorted(self._unused.keys() - unused.keys()):
            self._log.warning("port %s is used again", port)
        changed = sorted(unused.keys() ^ self._unused.keys())
        self._unused = unused
        self._ports.block(unused)
        return changed

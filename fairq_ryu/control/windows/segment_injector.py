"""Segments that the controller sends in a connection's name: window updates, duplicate ACKs, and reinjected
segments.

Agents send the window updates, and recover losses, by themselves: then a round trip of the controller is in
no flow's way, and this module only knows the addresses of the connections. It sends the segments where an
agent is of an earlier version, or with the setting ``segments_from = controller``.

A segment enters the network where the receiver's own segments do: at its port, through all tables. So it
takes the path of the receiver's ACKs, and every switch on that path lowers its window as it does with these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.fabric.flows.table import FlowTable
from fairq_ryu.model import FlowKey, PortKey, SegmentState
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.packet import parse, tags, tcp_build, tcp_timestamps

# If a receiver's state is not reported within this time, seconds, its paused sender gets no window update:
# the sender's persist timer ends the pause.
_WAKE_TIMEOUT = 0.5


class SegmentInjector:
    """Sends what :mod:`~fairq_ryu.packet.tcp_build` builds. ``counts`` has the numbers of segments that were
    sent, and of those that were not, with the reason.
    """

    def __init__(self, fabric: FabricController, flows: FlowTable, links: Mapping[int, AgentLink]) -> None:
        self._fabric = fabric
        self._flows = flows
        self._links = links
        self._addresses: dict[FlowKey, tcp_build.Addressing] = {}  # by connection
        # Of a direction that leaves a switch, by dpid: switches may change the tags of frames.
        self._leaving: dict[FlowKey, dict[int, tcp_build.Addressing]] = {}
        self._waking: dict[FlowKey, float] = {}  # by the direction of the data
        self.counts: Counter[str] = Counter()

    def learn(self, frame: parse.Frame) -> None:
        """Learn the link-layer addresses of a connection from the frame of its SYN."""
        known = tcp_build.addressing(frame)
        if known is not None:
            self._addresses[known.key.connection] = known

    def learn_at(self, dpid: int, frame: parse.Frame) -> None:
        """The same from a frame that has left a switch, as others of its direction leave it."""
        known = tcp_build.addressing(frame)
        if known is not None:
            self._leaving.setdefault(known.key, {})[dpid] = known

    def forget(self, flow: FlowKey) -> None:
        """A connection is over."""
        self._addresses.pop(flow.connection, None)
        self._leaving.pop(flow, None)
        self._leaving.pop(flow.reversed, None)
        self._waking.pop(flow, None)
        self._waking.pop(flow.reversed, None)

    def prune(self) -> None:
        """Forget connections that are not in the flow table: their SYNs started none."""
        for key in in_steps(list(self._addresses), LOOKS_PER_STEP):
            if self._flows.get(key) is None:
                self.forget(key)

    def addressing(self, flow: FlowKey) -> tcp_build.Addressing | None:
        """The link-layer addresses of a direction; None: they are not known."""
        known = self._addresses.get(flow.connection)
        return known if known is None or known.key == flow else known.reversed

    # Waking

    def wake_by_agent(self, link: AgentLink, flows: Iterable[FlowKey]) -> list[Message]:
        """These flows were paused and are not any more. The agent, which has been sent their rules, is to
        send the window updates: the messages that tell it so.
        """
        acks = []
        for flow in flows:
            there = self._leaving.get(flow.reversed, {})
            known = there.get(link.dpid) or self.addressing(flow.reversed)
            if known is None:
                self.counts["wake: addresses not known"] += 1
            else:
                acks.append(known)
        return link.wake(acks)

    def wake(self, flows: Iterable[FlowKey], informed: Iterable[Any], now: float) -> None:
        """These flows were paused and are not any more. When the ``informed`` agents have installed their
        rules, the receivers' last segments are requested; with these, window updates are sent to the senders.
        """
        wanted: dict[int, list[FlowKey]] = {}
        for flow in flows:
            receiver = self._receiver(flow)
            if receiver is None or receiver.dpid not in self._links:
                self.counts["wake: the receiver's switch has no agent"] += 1
                continue
            self._waking[flow] = now
            wanted.setdefault(receiver.dpid, []).append(flow.reversed)
        if wanted:
            self._fabric.after_barriers(informed, lambda: self._request(wanted))

    def _request(self, wanted: Mapping[int, list[FlowKey]]) -> None:
        for dpid, keys in wanted.items():
            link = self._links.get(dpid)
            if link is not None:
                link.send(link.request_segments(keys))

    def send_updates(self, states: Iterable[SegmentState], now: float) -> None:
        """An agent has reported the last segments of receivers: wake the paused senders."""
        for state in states:
            flow = state.key.reversed
            since = self._waking.pop(flow, None)
            if since is None:
                continue
            if now - since > _WAKE_TIMEOUT:
                self.counts["wake: the numbers came too late"] += 1
                continue
            known = self._addresses.get(flow.connection)
            if known is None:
                self.counts["wake: addresses not known"] += 1
                continue
            update = tcp_build.window_update(self._at_receiver(flow, known), state)
            self._send(flow, "wake", [update] if isinstance(update, bytes) else update)

    # Recovery

    def send_duplicates(self, flow: FlowKey, state: SegmentState) -> None:
        """Send three duplicates of the receiver's last ACK."""
        known = self._addresses.get(flow.connection)
        if known is None:
            self.counts["dupack: addresses not known"] += 1
            return
        found = tcp_build.duplicates(self._at_receiver(flow, known), state)
        self._send(flow, "dupack", found)

    def reinject(self, port: PortKey, frame: bytes, tsecr: int | None) -> None:
        """Send a frame out of the port that has dropped it. ``tsecr``: the timestamp that its receiver echoed
        last (None: not known); it replaces the frame's own if it is newer.
        """
        if tsecr is not None:
            frame = tcp_timestamps.renewed(frame, tsecr)
        if self._fabric.inject(port, [frame], ofp.OFPP_CONTROLLER, port.port):
            self.counts["reinject"] += 1

    def untagged_vlan(self, port: PortKey) -> int:
        """The VLAN of frames that leave by a port without a tag; 0: none."""
        return self._fabric.logical_ports.settings(port).untagged

    def _send(self, flow: FlowKey, kind: str, segments: list[bytes] | tcp_build.Refusal) -> None:
        """Send segments in the name of a flow's receiver, or count why they are not sent."""
        receiver = self._receiver(flow)
        if isinstance(segments, tcp_build.Refusal):
            self.counts[f"{kind}: {segments}"] += 1
        elif receiver is not None and self._fabric.inject(receiver, segments, receiver.port, ofp.OFPP_TABLE):
            self.counts[kind] += 1
        else:
            self.counts[f"{kind}: the receiver is not known"] += 1

    def _at_receiver(self, flow: FlowKey, known: tcp_build.Addressing) -> tcp_build.Addressing:
        """The addressing as the receiver sends it to its port."""
        receiver = self._receiver(flow)
        if receiver is None:
            return known
        return known._replace(tags=tags.at_port(known.tags, flow.vlan, self.untagged_vlan(receiver)))

    def _receiver(self, flow: FlowKey) -> PortKey | None:
        """The port that the flow's receiver is behind."""
        connection = self._flows.get(flow)
        path = None if connection is None else connection.path_for(flow)
        if path is not None:
            return path.forward[-1]
        host = self._fabric.hosts.by_ip(flow.dst, flow.vlan)
        return None if host is None else host.port

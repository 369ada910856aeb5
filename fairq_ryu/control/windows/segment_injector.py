"""Segments in a connection's name: window updates, which agents send, and duplicate ACKs of the controller.

An agent sends a window update at the port of the queue, so that no round trip of the controller is in the
flow's way; the controller tells it the addresses of the connection, which it knows from SYNs.

The controller's duplicate ACKs (``Recovery.by_agent``) enter the network where the receiver's own segments
do: at its port, through all tables. So they take the path of the receiver's ACKs, and every switch on that
path lowers their windows as it does with these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.fabric.flows.table import FlowTable
from fairq_ryu.model import FlowKey, PortKey, SegmentState
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.packet import parse, tags, tcp_build


class SegmentInjector:
    """Sends what :mod:`~fairq_ryu.packet.tcp_build` builds. ``counts`` has the numbers of segments that were
    sent, here and by agents, and of those that were not, with the reason.
    """

    def __init__(self, fabric: FabricController, flows: FlowTable) -> None:
        self._fabric = fabric
        self._flows = flows
        self._addresses: dict[FlowKey, tcp_build.Addressing] = {}  # by connection
        # Of a direction that leaves a switch, by dpid: switches may change the tags of frames.
        self._leaving: dict[FlowKey, dict[int, tcp_build.Addressing]] = {}
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

    def wake(self, link: AgentLink, flows: Iterable[FlowKey]) -> list[Message]:
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

    # Recovery

    def send_duplicates(self, flow: FlowKey, state: SegmentState) -> None:
        """Send three duplicates of the receiver's last ACK."""
        known = self._addresses.get(flow.connection)
        if known is None:
            self.counts["dupack: addresses not known"] += 1
            return
        receiver = self._receiver(flow)
        if receiver is not None:  # as the receiver sends it to its port
            vlan = self.untagged_vlan(receiver)
            known = known._replace(tags=tags.at_port(known.tags, flow.vlan, vlan))
        found = tcp_build.duplicates(known, state)
        if isinstance(found, tcp_build.Refusal):
            self.counts[f"dupack: {found}"] += 1
        elif receiver is not None and self._fabric.inject(receiver, found):
            self.counts["dupack"] += 1
        else:
            self.counts["dupack: the receiver is not known"] += 1

    def untagged_vlan(self, port: PortKey) -> int:
        """The VLAN of frames that leave by a port without a tag; 0: none."""
        return self._fabric.logical_ports.settings(port).untagged

    def _receiver(self, flow: FlowKey) -> PortKey | None:
        """The port that the flow's receiver is behind."""
        connection = self._flows.get(flow)
        path = None if connection is None else connection.path_for(flow)
        if path is not None:
            return path.forward[-1]
        host = self._fabric.hosts.by_ip(flow.dst, flow.vlan)
        return None if host is None else host.port

"""What the controller says to hosts in a connection's name: window updates, duplicate ACKs, packets put back.

A forged segment enters where the receiver's own would: at its port, through all tables. So it takes the way
of its ACKs, and every switch on that way lowers its window as it does theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.segment_state import MAX_KEYS
from fairq_ryu.control.agents import AgentLink
from fairq_ryu.control.bridges import FabricController
from fairq_ryu.fabric.flows.table import FlowTable
from fairq_ryu.model import FlowKey, PortKey, SegmentState
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import parse, tcp_build, tcp_timestamps

# A paused sender whose receiver's numbers do not come within so many seconds wakes by itself.
_WAKE_PATIENCE = 0.5


class SegmentInjector:
    """Sends what :mod:`~fairq_ryu.packet.tcp_build` makes. ``said`` counts that, and what was not sent."""

    def __init__(self, fabric: FabricController, flows: FlowTable, links: Mapping[int, AgentLink]) -> None:
        self._fabric = fabric
        self._flows = flows
        self._links = links
        self._addresses: dict[FlowKey, tcp_build.Addressing] = {}  # by connection
        self._waking: dict[FlowKey, float] = {}  # by the direction of the data
        self.said: Counter[str] = Counter()

    def learn(self, frame: parse.Frame) -> None:
        """A SYN was copied: its frame's addresses are those of its connection."""
        known = tcp_build.addressing(frame)
        if known is not None:
            self._addresses[known.key.connection] = known

    def forget(self, flow: FlowKey) -> None:
        """A connection is over."""
        self._addresses.pop(flow.connection, None)
        self._waking.pop(flow, None)
        self._waking.pop(flow.reversed, None)

    def prune(self) -> None:
        """Forget connections that the flow table does not know: SYNs that led to nothing."""
        for key in [key for key in self._addresses if self._flows.get(key) is None]:
            self.forget(key)

    # Waking

    def wake(self, flows: Iterable[FlowKey], told: Iterable[Any], now: float) -> None:
        """These flows were paused and are not any more: when the switches ``told`` have got their rules,
        their receivers' numbers are asked for, and then their senders are told.
        """
        asked: dict[int, list[FlowKey]] = {}
        for flow in flows:
            receiver = self._receiver(flow)
            if receiver is None or receiver.dpid not in self._links:
                self.said["wake: the receiver's switch has no agent"] += 1
                continue
            self._waking[flow] = now
            asked.setdefault(receiver.dpid, []).append(flow.reversed)
        if asked:
            self._fabric.after(told, _asking(self._links, asked))

    def states(self, states: Iterable[SegmentState], now: float) -> None:
        """An agent has told receivers' numbers: whoever waits for one is woken."""
        for state in states:
            flow = state.key.reversed
            since = self._waking.pop(flow, None)
            if since is None:
                continue
            if now - since > _WAKE_PATIENCE:
                self.said["wake: the numbers came too late"] += 1
                continue
            known = self._addresses.get(flow.connection)
            if known is None:
                self.said["wake: addresses not known"] += 1
                continue
            made = tcp_build.window_update(known, state)
            self._say(flow, "wake", [made] if isinstance(made, bytes) else made)

    # Recovery

    def duplicates(self, flow: FlowKey, state: SegmentState) -> None:
        """Three duplicates of the receiver's last ACK."""
        known = self._addresses.get(flow.connection)
        if known is None:
            self.said["dupack: addresses not known"] += 1
            return
        self._say(flow, "dupack", tcp_build.duplicates(known, state, state.window))

    def put_back(self, port: PortKey, frame: bytes, tsecr: int | None) -> None:
        """Send a frame out by the port that has dropped it; with the timestamp that its receiver has echoed
        last (None: not known), should that be newer.
        """
        bridge = self._fabric.bridges.get(port.dpid)
        if bridge is not None:
            if tsecr is not None:
                frame = tcp_timestamps.renewed(frame, tsecr)
            bridge.send_msg(pipeline.packet_out(bridge, frame, ofp.OFPP_CONTROLLER, [port.port]))
            self.said["reinject"] += 1

    def _say(self, flow: FlowKey, what: str, made: list[bytes] | tcp_build.Refusal) -> None:
        receiver = self._receiver(flow)
        bridge = None if receiver is None else self._fabric.bridges.get(receiver.dpid)
        if isinstance(made, tcp_build.Refusal) or receiver is None or bridge is None:
            self.said[
                f"{what}: {made if isinstance(made, tcp_build.Refusal) else 'the receiver is not known'}"
            ] += 1
            return
        self.said[what] += 1
        for segment in made:
            bridge.send_msg(pipeline.packet_out(bridge, segment, receiver.port, [ofp.OFPP_TABLE]))

    def _receiver(self, flow: FlowKey) -> PortKey | None:
        """The port that the flow's receiver is behind."""
        connection = self._flows.get(flow)
        path = None if connection is None else connection.path_for(flow)
        if path is not None:
            return path.forward[-1]
        host = self._fabric.hosts.by_ip(flow.dst)
        return None if host is None else host.port


def _asking(links: Mapping[int, AgentLink], asked: Mapping[int, list[FlowKey]]) -> Callable[[], None]:
    def ask() -> None:
        for dpid, keys in asked.items():
            link = links.get(dpid)
            if link is not None:
                for at in range(0, len(keys), MAX_KEYS):
                    link.ask_segments(keys[at : at + MAX_KEYS])

    return ask

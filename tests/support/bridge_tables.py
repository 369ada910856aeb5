"""Bridges as tables of rules. A real :class:`FabricController` sends the rules; messages arrive one by one,
in any order that barriers allow. Frames are forwarded by the rules that are installed at that moment.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict, deque
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.fabric.topology.graph import PortRole
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet.parse import Frame
from tests.support.fakes import FakeSwitch

BROADCAST = "ff:ff:ff:ff:ff:ff"


class Walk(NamedTuple):
    """The result of one frame."""

    copies: int
    looped: bool
    flooded: bool


class Bridge(FakeSwitch):
    """A bridge that handles its messages when the test does a step."""

    def __init__(self, dpid: int) -> None:
        super().__init__(dpid)
        self.queue: deque[Any] = deque()
        self.bits = 0
        # By destination ("" for all), and by metadata and mask: ports.
        self.rules: defaultdict[str, dict[tuple[int, int], tuple[int, ...]]] = defaultdict(dict)
        self.waiting: set[int] = set()  # ports from which nothing is flooded

    def send_msg(self, message: Any) -> None:
        if message.xid is None:
            self.set_xid(message)
        self.queue.append(message)

    def do(self, message: Any) -> str | None:
        """Apply a FlowMod. Returns the destination that it affects, "" for all; None if it does not change
        forwarding.
        """
        if message.table_id == ofp.OFPTT_ALL:
            self.rules.clear()
            self.waiting.clear()
            self.bits = 0
            return ""
        if message.table_id == pipeline.PATHS and message.priority == 0:
            self.bits = pipeline.DESTINATION - message.instructions[0].table_id
            return ""
        if message.table_id != pipeline.DESTINATION:
            return None
        if "in_port" in message.match:
            change = self.waiting.add if message.command == ofp.OFPFC_ADD else self.waiting.discard
            change(message.match["in_port"])
            return ""
        whose = message.match.get("eth_dst", "")
        key = message.match.get("metadata", (0, 0))
        # The order of lookup: a rule for a host before all others, and of these the one for a bucket first.
        assert message.priority == (20 if whose else min(key[1], 1))
        if message.command == ofp.OFPFC_ADD:
            ports = (action.port for each in message.instructions for action in each.actions)
            self.rules[whose][key] = tuple(ports)
        else:
            assert message.command == ofp.OFPFC_DELETE_STRICT
            self.rules[whose].pop(key, None)
        return str(whose)

    def leaves_by(self, mac: str, share: int, pick: int, came: int) -> tuple[bool, tuple[int, ...]]:
        """Whether a bridge knows a host, and by which ports a frame for it leaves that ``came`` by one. Where
        two rules match equally well, ``pick`` decides.
        """
        share &= (1 << self.bits) - 1
        known, floods = self.rules[mac], self.rules[""]
        found = [ports for (value, mask), ports in known.items() if share & mask == value]
        if found:
            return True, found[pick]
        return False, () if came in self.waiting else floods.get((share, 15), floods.get((0, 0), ()))


class Fabric:
    """A network of bridges with the links of ``graph`` and a host at each of ``edges``."""

    def __init__(self, graph: Any, edges: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.fabric = FabricController(Config(), logging.getLogger(__name__))
        self.links = [pair for edge in graph.edges for pair in graph.edges[edge]["ports"]]
        self.wires = {a: b for pair in self.links for a, b in (pair, pair[::-1])}
        self.at = {f"02:00:00:00:{dpid >> 8:02x}:{dpid & 255:02x}": PortKey(dpid, 90) for dpid in edges}
        self.bridges = {dpid: Bridge(dpid) for dpid in sorted(graph)}
        self._slow: list[int] = []
        for dpid in self.bridges:
            self.come(dpid)

    def come(self, dpid: int) -> None:
        numbers = {port.port for port in self.wires if port.dpid == dpid}
        numbers |= {port.port for port in self.at.values() if port.dpid == dpid}
        ports = [PortState(number, True, f"s{dpid}-eth{number}") for number in sorted(numbers)]
        self.fabric.bridge_connected(self.bridges[dpid], ports, [], 0.0)

    # Events

    def see_link(self, source: PortKey) -> None:
        self.fabric.link_seen(source, self.wires[source], 0.0)

    def see_all_links(self) -> None:
        for source in self.wires:
            self.see_link(source)

    def lose_link(self, source: PortKey) -> None:
        """Discovery frames have been lost for long; other frames pass as before."""
        self.fabric.topology.link_lost(source, self.wires[source])

    def cut(self, source: PortKey) -> None:
        """A link breaks, and both ends notice."""
        target = self.wires[source]
        for port in (source, target):
            self.wires.pop(port)
            self.fabric.port_changed(port.dpid, PortState(port.port, False, "gone"), 0.0)

    def see_host(self, mac: str) -> None:
        """The host sends, and time enough has passed for its port."""
        port = self.at[mac]
        self.fabric.host_seen(self.bridges[port.dpid], Frame(mac, BROADCAST, ()), port, 0.0)
        if not self.fabric.topology.is_flooded(port):
            self.fabric.topology._ports.decide(port, PortRole.HOST)
            self.fabric.topology.touch()

    def forget_host(self, mac: str) -> None:
        self.fabric.host_silent(self.at[mac], mac)

    def refresh(self) -> None:
        if self.fabric.stale:
            self.fabric.refresh()
        self.fabric.tick(0.0)

    # Time

    def step(self) -> str | None:
        """A random bridge handles its next message. Returns as :meth:`Bridge.do`."""
        busy = [bridge for bridge in self.bridges.values() if bridge.queue]
        # Some bridges are slow for a while, so that others are far ahead of them.
        if self.random.random() < 0.02:
            self._slow = self.random.sample([*self.bridges], len(self.bridges) // 2)
        bridge = self.random.choice([each for each in busy if each.id not in self._slow] or busy)
        message = bridge.queue.popleft()
        match type(message).__name__:
            case "OFPBarrierRequest":
                self.fabric.barriers.answered((bridge.id, message.xid))
            case "OFPFlowMod":
                return bridge.do(message)
        return None

    @property
    def busy(self) -> bool:
        return any(bridge.queue for bridge in self.bridges.values())

    def drain(self) -> None:
        while self.busy:
            self.step()

    # Frames

    def walk(self, source: PortKey, mac: str, share: int) -> Walk:
        """A frame of a bucket from a host's port, to a host."""
        copies, looped, flooded = 0, False, False
        seen, todo = set(), [source]
        pick = self.random.choice((0, -1))
        while todo:
            at = todo.pop()
            if at in seen:
                looped = True
                continue
            seen.add(at)
            known, ports = self.bridges[at.dpid].leaves_by(mac, share, pick, at.port)
            flooded |= not known
            for port in (PortKey(at.dpid, number) for number in ports if number != at.port):
                if port in self.wires:
                    todo.append(self.wires[port])
                copies += port == self.at[mac]
        return Walk(copies, looped, flooded)

    def walk_all(self, mac: str) -> list[Walk]:
        """Frames of some buckets from all other hosts to one."""
        return [
            self.walk(source, mac, share)
            for source in self.at.values()
            for share in self.random.sample(range(16), 3)
            if source != self.at[mac]
        ]

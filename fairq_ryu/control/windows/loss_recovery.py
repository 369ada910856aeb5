"""Recovery of packets that queues have dropped, as policies want it for their ports.

The agent of a port recovers its losses by itself; this module tells it how, and adds up what it reports. A
policy may want the duplicate ACKs from the controller, as rsed-paper does (``Recovery.by_agent``). Then
:mod:`fairq_ryu.fabric.recovery.recovery` decides here what is done about a loss. This module passes the
reports of agents to it and carries out its actions: duplicate ACKs by the
:class:`~fairq_ryu.control.windows.segment_injector.SegmentInjector`, requests for segments by the agent's
link. Ports whose policies have equal recovery settings share one engine. Bounded by the memory and age of
these settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from fairq_ryu.channel.recovery import DUPACK, REINJECT, SetRecovery
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.control.windows.segment_injector import SegmentInjector
from fairq_ryu.fabric.recovery import actions, recovery
from fairq_ryu.model import FlowKey, PortKey, QueueSample, SegmentState
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.packet import parse
from fairq_ryu.policies import base
from fairq_ryu.policies.engine import PolicyEngine


class LossRecovery(WindowPart):
    """The recoveries of all ports, by their settings. ``lease`` of orders, and ``now``, in seconds."""

    def __init__(
        self, engine: PolicyEngine, links: Mapping[int, AgentLink], injector: SegmentInjector, lease: int
    ) -> None:
        self._engine, self._links, self._injector, self._lease = engine, links, injector, lease
        self._recoveries: dict[base.Recovery, recovery.RecoveryEngine] = {}
        self._reported: Counter[str] = Counter()  # outcomes of losses that agents have recovered

    def __iter__(self) -> Iterator[recovery.RecoveryEngine]:
        return iter(list(self._recoveries.values()))

    # Recovery by agents

    def queue_read(self, link: AgentLink, key: PortKey, sample: QueueSample, now: float) -> list[Message]:
        """Order the recovery of the port's losses, and look after those of our own."""
        messages = self.order(link, key, now)
        each = self._of(key) if self._recoveries else None
        if each is not None and len(each):
            self._carry_out(each.due(now))
        return messages

    def order(self, link: AgentLink, port: PortKey, now: float) -> list[Message]:
        """Let an agent recover the losses of a port as its policy wants it."""
        wanted = self._engine.recovery(port)
        if wanted is not None and not wanted.by_agent:
            wanted = None
        if wanted is None and not link.drops.recovers(port.port):
            return []  # most ports: asked after each of their samples
        thresholds = self._engine.thresholds(port)
        order = SetRecovery(port.port, 0, 0, 0, 0, 0)
        if wanted is not None and thresholds is not None and thresholds.cng:
            order = SetRecovery(
                port=port.port,
                flags=DUPACK * wanted.dupack | REINJECT * wanted.reinject,
                bytes=wanted.bytes,
                age_ms=max(1, round(wanted.age * 1000)),
                below=thresholds.cng,
                lease=self._lease,
            )
        return link.drops.set_recovery(order, now)

    @staticmethod
    def is_agents(link: AgentLink, port: PortKey) -> bool:
        """Whether the agent recovers the losses of a port."""
        return link.drops.recovers(port.port)

    def reported(self, losses: Mapping[str, int]) -> None:
        """An agent has recovered losses; these outcomes are new."""
        self._reported.update(losses)

    @property
    def outcomes(self) -> Counter[str]:
        """The outcomes of all losses (:class:`fairq_ryu.fabric.recovery.actions.Counters`), in segments."""
        found = self._reported.copy()
        for each in self:
            found.update(asdict(each.counters))
        return found

    @property
    def stored(self) -> int:
        """The losses that can still be recovered."""
        agents = sum(link.stored_losses for link in list(self._links.values()))
        return agents + sum(len(each) for each in self)

    # Recovery by the controller

    def used(self, port: PortKey) -> bool:
        """Whether there are losses of a port to recover."""
        return any(each.used(port) for each in self._recoveries.values())

    def packet_dropped(self, port: PortKey, frame: bytes, total_len: int, now: float) -> None:
        """A queue has dropped a frame of ``total_len`` bytes, of which the agent has sent the first ones."""
        each = self._of(port)
        if each is None:
            return
        parsed = parse.parse(frame, self._injector.untagged_vlan(port))
        if parsed is None or parse.is_signed(frame, parsed):
            self._carry_out(each.lost(port, frame, total_len, None, None, now))
        else:
            self._carry_out(each.lost(port, frame, total_len, parsed.tcp, parsed.payload, now))
        link = self._links.get(port.dpid)
        if link is not None:
            link.poll_now.set()

    def segments(self, states: list[SegmentState], now: float) -> None:
        """An agent has reported the last segments of receivers."""
        for each in self._recoveries.values():
            self._carry_out(each.states(states, now))

    def forget_connection(self, key: FlowKey) -> None:
        """A new connection has the ports of an earlier one: losses of that are over."""
        for each in self._recoveries.values():
            each.forget(key)
            each.forget(key.reversed)

    def port_removed(self, key: PortKey) -> None:
        """Forget its losses."""
        for each in self._recoveries.values():
            each.forget_port(key)

    def policies_changed(self, ports: Iterable[PortKey]) -> None:
        """Forget losses that were kept for another recovery."""
        for port in ports:
            for wanted, each in self._recoveries.items():
                if self._engine.recovery(port) != wanted:
                    each.forget_port(port)

    def _of(self, port: PortKey) -> recovery.RecoveryEngine | None:
        wanted = self._engine.recovery(port)
        if wanted is None or wanted.by_agent:
            return None
        if wanted not in self._recoveries:
            engine = recovery.RecoveryEngine(actions.Mode.DUPACK, wanted.bytes, wanted.age)
            self._recoveries[wanted] = engine
        return self._recoveries[wanted]

    def _carry_out(self, due: Iterable[actions.Action]) -> None:
        for action in due:
            match action:
                case actions.SendDuplicates(flow, state):
                    self._injector.send_duplicates(flow, state)
                case actions.Ask(dpid, keys):
                    link = self._links.get(dpid)
                    if link is not None:
                        link.send(link.request_segments(keys))

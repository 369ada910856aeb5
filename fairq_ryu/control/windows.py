"""The policies at work: flows, queues, congestion and losses in; window rules and recovery out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any

from fairq_ryu.channel import congestion, flow_records, flowmod, queue_depth
from fairq_ryu.channel.segment_state import MAX_KEYS
from fairq_ryu.config.loader import Config
from fairq_ryu.control.agents import AgentLink
from fairq_ryu.control.announcement_outcomes import Counted
from fairq_ryu.control.bridges import FabricController
from fairq_ryu.control.event_reporter import EventReporter
from fairq_ryu.control.segment_injector import SegmentInjector
from fairq_ryu.fabric.deadlines.announcements import Announcements, Change, Entry
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.flows.table import FlowEvent, FlowTable
from fairq_ryu.fabric.recovery import recovery
from fairq_ryu.model import Announcement, FlowKey, FlowProgress, PortKey, RuleChange, SegmentState
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import parse, tcp_timestamps
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import PolicyChoice
from fairq_ryu.policies.engine import PolicyEngine

# While there are losses to mend, queues are read this often, seconds: room in them must not go to waste.
_RECOVERY_INTERVAL = 0.001


class WindowController:
    """All agents and what they are told. Every method sends what its event asks for; ``now`` in seconds."""

    def __init__(
        self,
        choice: PolicyChoice,
        config: Config,
        fabric: FabricController,
        flows: FlowTable,
        log: logging.Logger,
        reporter: EventReporter | None = None,
    ) -> None:
        self._log = log
        self._fabric = fabric
        self._flows = flows
        self._reporter = reporter or EventReporter(lambda *_, **__: None, lambda _: "")
        self._default_buffer = int(config.number("fairq_ryu", "default_buffer"))
        self.lease = int(config.number("fairq_ryu", "lease"))
        self.engine = PolicyEngine(choice, self.lease)
        self.links: dict[int, AgentLink] = {}
        self.announcements = Announcements(config.services())
        self._heeded: bool | None = None  # does a policy heed announcements? None: not asked yet
        self.injector = SegmentInjector(fabric, flows, self.links)
        self._recoveries: dict[base.Recovery, recovery.Recovery] = {}
        self._named: dict[PortKey, tuple[str, str]] = {}
        self._unbuffered: set[PortKey] = set()
        self.leases_cut = 0  # rules that stood when the connection to their agent ended

    # Agents

    def agent_came(self, datapath: Any) -> AgentLink:
        """An agent has connected. Whatever stands there is of another life; what should stand is set with
        the next sample.
        """
        link = AgentLink(datapath, bool(self._default_buffer))
        self.links[link.dpid] = link
        datapath.send_msg(pipeline.clear(datapath))
        self.engine.switch_gone(link.dpid)
        self._reporter.agent(link.dpid, came=True)
        return link

    def agent_gone(self, link: AgentLink) -> None:
        """An agent's connection has ended."""
        del self.links[link.dpid]
        link.wake.set()
        self.leases_cut += self.engine.switch_gone(link.dpid)
        self._reporter.agent(link.dpid, came=False)

    def port_gone(self, key: PortKey) -> None:
        """An agent does not watch a port any more."""
        self.engine.port_gone(key)
        self._reporter.port_gone(key)
        link = self.links.get(key.dpid)
        if link is not None:
            link.port_gone(key.port)
        for each in self._recoveries.values():
            each.forget_port(key)
        self._unbuffered.discard(key)
        self._named.pop(key, None)

    def name_ports(self, now: float) -> None:
        """Say what ports are called and lead to, where that has changed: it may decide on their policy."""
        topology = self._fabric.topology
        for dpid in topology.switches:
            for key in topology.ports(dpid):
                role = str(topology.role(key))
                about = self._fabric.names.get(key, ""), role if role in ("host", "link") else ""
                if self._named.get(key) != about:
                    self._named[key] = about
                    self._send(self.engine.named(key, *about, now), now)
                    self._forget_losses([key])

    def interval(self, link: AgentLink) -> float | None:
        """How soon the queues of a switch are to be read again, seconds; None: nothing calls for it."""
        busy = [key for key in link.governed if self.engine.busy(key)]
        if any(each.used(key) for each in self._recoveries.values() for key in busy):
            return _RECOVERY_INTERVAL
        return self.engine.poll_interval(busy) if busy else None

    # Flows

    def apply(self, events: list[FlowEvent], now: float, came: float | None = None) -> list[Any]:
        """Flows start or end on ports: ask the policies, send what they want. Returns whom that told.

        ``came``: what tells of it came then, and has waited. Deadlines count from there.
        """
        changes: list[RuleChange] = []
        # All is worked out before anything is sent: sending may let another greenlet in.
        for event in events:
            if event.started:
                changes += self._started(event, now, came)
            else:
                changes += self.engine.flow_ended(event.port, event.flow.key, now)
                # Its ports may open another connection already, which is no news of this one.
                other = self._flows.get(event.flow.key)
                self._reporter.outcomes.left(event.flow.key, other, now)
                if other is not None and other.again and other.since == now:
                    self.announcements.flow_ended(event.flow.key)
        return self._send(changes, now)

    def deadline_of(self, opener: FlowKey, now: float) -> float | None:
        """The earliest deadline of a connection that ``opener`` opens now; None: it has none."""
        expected = (self.announcements.expected(each, opener, now) for each in (opener, opener.reversed))
        return min((each.deadline for each in expected if each and each.deadline is not None), default=None)

    def _started(self, event: FlowEvent, now: float, came: float | None) -> list[RuleChange]:
        key = event.flow.key
        link = self.links.get(event.port.dpid)
        # If the queue has not been read lately, that is done now, so that the first ACK meets a window.
        lately = link is None or self.engine.busy(event.port)
        if link is not None and not lately and link.governs(link.depths.get(event.port.port)):
            link.wake.set()
        changes = self.engine.flow_started(event.port, event.flow, now)
        connection = self._flows.get(key)
        opener = None if connection is None or connection.opener is None else connection.forward
        since = now if connection is None else connection.since
        if came is not None and since == now:
            since = came
        announced = self.announcements.flow_started(key, opener, since, now)
        if announced is not None:
            changes += self.engine.announced(event.port, key, announced, now)
            self._reporter.deadline(key, announced.deadline)
            self._follow(key, announced, since)
        return changes

    def _follow(self, flow: FlowKey, announcement: Announcement | None, started: float) -> None:
        """What becomes of an announced flow is told, if there is a policy that heeds announcements."""
        if self._heeded is None:
            self._heeded = self.engine.deaf() is None
        connection = self._flows.get(flow)
        if self._heeded and connection is not None:
            asked = self.announcements.asked(flow)
            self._reporter.announced(flow, announcement, connection, started, asked)

    def flow_over(self, flow: FlowKey) -> None:
        """A connection has ended, or is not counted any more."""
        for key in (flow, flow.reversed):
            self.announcements.flow_ended(key)
        self.injector.forget(flow)

    def syn(self, frame: parse.Frame) -> None:
        """A SYN was copied."""
        self.injector.learn(frame)
        if frame.tcp is not None:
            for each in self._recoveries.values():
                each.forget(frame.tcp.key)
                each.forget(frame.tcp.key.reversed)

    # Announcements

    def announce(self, wanted: Request, now: float) -> Entry:
        """An application announces a flow. Raises :class:`fairq_ryu.fabric.deadlines.announcements.Full`."""
        entry, changes = self.announcements.add(wanted, now)
        self._announced(changes, now)
        return entry

    def withdraw(self, number: int, now: float) -> None:
        """An announcement is taken back. KeyError if there is no such."""
        self._announced(self.announcements.withdraw(number, now), now)

    def _announced(self, changes: Iterable[Change], now: float) -> None:
        for flow, announcement in changes:
            connection = self._flows.get(flow)
            if connection is not None:
                for port in connection.directions[flow].ports:
                    self._send(self.engine.announced(port, flow, announcement, now), now)
                self._follow(flow, announcement, connection.since)
            self._reporter.deadline(flow, None if announcement is None else announcement.deadline)

    def prune(self, now: float) -> None:
        """Forget announcements that no flow has taken, and flows that ended when they were on no port."""
        self.announcements.expire(now)
        for flow in self._reporter.outcomes:
            self._reporter.outcomes.left(flow, self._flows.get(flow), now)

    def overdue(self, now: float) -> None:
        """Tell of deadlines that have passed, and of announced flows that have ended without sending all."""
        self._reporter.overdue(now, self.engine.missed)

    # What agents tell

    def depths(self, link: AgentLink, found: Iterable[queue_depth.QueueDepth], now: float) -> None:
        """Queues were read."""
        for record in found:
            before = link.read(record, now)
            key = PortKey(link.dpid, record.port)
            if before is not None and record.drops > before.drops:
                self._reporter.dropped(key, record.drops - before.drops)
            if not link.governs(record) and not (before and before.limit):
                self._leave_alone(key, record)
                continue
            sample = queue_depth.sample(record, before)
            if not sample.limit:
                sample = sample._replace(limit=self._default_buffer)
            self._send(self.engine.sampled(key, sample, now), now)
            self._reporter.incast(key, self.engine.display(key).incast)
            thresholds = self.engine.thresholds(key)
            link.tell_thresholds(record.port, thresholds)
            if thresholds is None or not thresholds.cng:
                self._reporter.unwatched(key)
            if self.engine.wants_progress(key):
                link.ask_progress(record.port, 0.9 * self.engine.interval(key), now)
            self._recover(key, sample.backlog, now)

    def _leave_alone(self, key: PortKey, record: queue_depth.QueueDepth) -> None:
        """Most ports have no queue to govern, and cost no more than this."""
        if record.backlog and key not in self._unbuffered:
            self._unbuffered.add(key)
            self._log.warning(
                "port %s has a queue, but its discipline does not say how many bytes it holds: left alone. "
                "Set [fairq_ryu] default_buffer to govern it",
                key,
            )

    def congestion(self, link: AgentLink, told: congestion.CongestionNotice, now: float) -> None:
        """A queue has crossed a threshold."""
        key = PortKey(link.dpid, told.port)
        self._reporter.congestion(key, told.state, told.backlog)
        self._send(self.engine.congestion(key, told.state, told.backlog, now), now)
        self._recover(key, told.backlog, now)

    def progress(
        self, link: AgentLink, port: int, found: Sequence[flow_records.FlowRecord], now: float
    ) -> None:
        """How far the flows of a port are."""
        flows = {
            record.key: FlowProgress(
                record.acked, record.bytes, record.rtt_us / 1e6, bool(record.flags & flow_records.ESTABLISHED)
            )
            for record in found
            if record.port == port
        }
        self._send(self.engine.progressed(PortKey(link.dpid, port), flows, now), now)
        self.counted(link, found, now)

    def counted(self, link: AgentLink, found: Iterable[flow_records.FlowRecord], now: float) -> None:
        """How far flows are, whatever their port: announced ones may have met their deadline."""
        outcomes = self._reporter.outcomes
        if outcomes:
            wanted = (_counted(link.dpid, each) for each in found if outcomes.wants(each.key))
            self._reporter.counted(wanted, now)

    def segments(self, states: list[SegmentState], now: float) -> None:
        """The last segments of receivers."""
        self.injector.states(states, now)
        for each in self._recoveries.values():
            self._act(each.states(states, now))

    # Losses

    def lost(self, key: PortKey, frame: bytes, total_len: int, now: float) -> None:
        """A queue has dropped a frame."""
        each = self._recovery(key)
        if each is None:
            return
        read = parse.parse(frame)
        if read is None:
            self._act(each.lost(key, frame, total_len, None, None, now))
        else:
            stamped = tcp_timestamps.tsval_at(frame, read) is not None
            self._act(each.lost(key, frame, total_len, read.tcp, read.payload, now, stamped))
        link = self.links.get(key.dpid)
        if link is not None:
            link.wake.set()

    def _recovery(self, key: PortKey) -> recovery.Recovery | None:
        wanted = self.engine.recovery(key)
        if wanted is None:
            return None
        if wanted not in self._recoveries:
            mode = {(True, False): "dupack", (False, True): "reinject", (True, True): "both"}
            self._recoveries[wanted] = recovery.Recovery(
                mode[wanted.dupack, wanted.reinject], wanted.bytes, wanted.age
            )
        return self._recoveries[wanted]

    def _forget_losses(self, ports: Iterable[PortKey]) -> None:
        """The policies of ports may have changed: what is kept for another is nobody's business any more."""
        for key in ports:
            for wanted, each in self._recoveries.items():
                if self.engine.recovery(key) != wanted:
                    each.forget_port(key)

    def _recover(self, key: PortKey, backlog: int, now: float) -> None:
        each = self._recovery(key) if self._recoveries else None
        thresholds = self.engine.thresholds(key) if each is not None and len(each) else None
        if each is not None and thresholds is not None:
            self._act(each.queue(key, backlog, thresholds.cng, now, self.engine.buffer(key)))
            self._act(each.due(now))

    def _act(self, actions: Iterable[recovery.Action]) -> None:
        for action in actions:
            match action:
                case recovery.SendDuplicates(flow, state):
                    self.injector.duplicates(flow, state)
                case recovery.Reinject(port, frame, tsecr):
                    self.injector.put_back(port, frame, tsecr)
                case recovery.Ask(dpid, keys):
                    link = self.links.get(dpid)
                    if link is not None:
                        for at in range(0, len(keys), MAX_KEYS):
                            link.ask_segments(keys[at : at + MAX_KEYS])

    @property
    def recoveries(self) -> list[recovery.Recovery]:
        """For display."""
        return list(self._recoveries.values())

    # Rules

    def _send(self, changes: list[RuleChange], now: float) -> list[Any]:
        """Say rule changes to the agents they are for; returns these."""
        told: dict[int, Any] = {}
        awake: list[FlowKey] = []
        for change in changes:
            link = self.links.get(change.target.port.dpid)
            if link is None:
                if change.wake:  # its rule may still stand there: who is woken now would only fall asleep
                    self.engine.not_woken(change.target)
                continue
            told[link.dpid] = link.datapath
            link.rules_said += 1
            link.datapath.send_msg(flowmod.window_rule(link.datapath, change, self.lease))
            if change.wake and change.target.flow is not None:
                awake.append(change.target.flow)
        if awake:
            self.injector.wake(awake, told.values(), now)
        return list(told.values())

    def use(self, choice: PolicyChoice) -> None:
        """Change the policies of a running controller."""
        now = time.monotonic()
        self._send(self.engine.use(choice, now), now)
        self._heeded = self.engine.deaf() is None
        if not self._heeded:
            self._reporter.outcomes.clear()
        self._forget_losses(self.engine.view())
        for link in self.links.values():
            link.wake.set()  # the queues may be wanted sooner now


def _counted(dpid: int, record: flow_records.FlowRecord) -> tuple[FlowKey, Counted]:
    known, closed = bool(record.flags & flow_records.KNOWN), bool(record.flags & flow_records.CLOSED)
    port, idle = PortKey(dpid, record.port), record.idle_ms / 1000
    return record.key, Counted(port, record.acked, record.bytes, idle, known, closed)

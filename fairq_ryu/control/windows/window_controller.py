"""The policies at work: flows, queues and congestion in; window rules out."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from fairq_ryu.channel import congestion, flow_records, oxm, queue_depth
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.segment_counts import SegmentCounts
from fairq_ryu.channel.window_law import LawState, RefusedLaw
from fairq_ryu.config.loader import Config
from fairq_ryu.control.agents import polling_pace
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.announcement_outcomes import Counted
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.windows.announced_flows import AnnouncedFlows
from fairq_ryu.control.windows.far_orders import FarOrders
from fairq_ryu.control.windows.flow_priorities import FlowPriorities
from fairq_ryu.control.windows.inventory import Inventory
from fairq_ryu.control.windows.law_needs import LawNeeds
from fairq_ryu.control.windows.loss_recovery import LossRecovery
from fairq_ryu.control.windows.mode_changes import ModeChanges
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.control.windows.port_modes import PortModes
from fairq_ryu.control.windows.queue_laws import QueueLaws, beside
from fairq_ryu.control.windows.segment_injector import SegmentInjector
from fairq_ryu.control.windows.tenants import TenantControl
from fairq_ryu.control.windows.turn_deadlines import TurnDeadlines
from fairq_ryu.control.windows.ungoverned_ports import UngovernedPorts
from fairq_ryu.control.windows.uplink_shares import UplinkShares
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.fabric.deadlines.announcements import AnnouncementChange, Announcements, Entry
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.fabric.flows.table import FlowEvent, FlowTable
from fairq_ryu.far_queue import FAR, Why
from fairq_ryu.law_spec import Mode
from fairq_ryu.model import FlowKey, FlowProgress, PortKey, RuleChange
from fairq_ryu.packet import parse
from fairq_ryu.policies.choice import ROLE, PolicyChoice
from fairq_ryu.policies.engine import PolicyEngine

# While the controller has losses to recover, queues are read at this interval, seconds: receivers are asked
# again then, if it is time.
_RECOVERY_INTERVAL = 0.001
# A plain number: an operation on flags takes a microsecond.
_LIMITING = int(Mode.LIMITING)


class WindowController:
    """All agents and their rules. Each method sends the rules that its event requires; ``now`` in seconds."""

    def __init__(
        self,
        choice: PolicyChoice,
        config: Config,
        fabric: FabricController,
        flows: FlowTable,
        log: logging.Logger,
        reporter: EventReporter | None = None,
    ) -> None:
        self._fabric, self._flows = fabric, flows
        self._reporter = reporter or EventReporter(lambda *_, **__: None, lambda _: "")
        self.lease = int(config.number("fairq_ryu", "lease"))
        self.links: dict[int, AgentLink] = {}
        links = self.links
        self._switch_laws = polling_pace.SharedSum(lambda: sum(each.switch_laws for each in links.values()))
        self._records = polling_pace.SharedSum(lambda: sum(each.records for each in links.values()))
        hold = config.value("fairq_ryu", "syn") == "hold"
        self.inventory = Inventory(fabric, self.links, hold)
        self.modes = PortModes(config, self.links, lambda key: self.engine.chosen(key).name)
        self.engine = PolicyEngine(choice, self.lease, self.modes.in_force)
        self.queue_laws = QueueLaws(self.engine, self.lease, beside(config))
        self.tenants = TenantControl(
            config.tenants(), self.engine, self.links, self.lease, self._reporter.share
        )
        self.injector = SegmentInjector(fabric, flows)
        self.recovery = LossRecovery(self.engine, self.links, self.injector, self.lease)
        self.mode_changes = ModeChanges(self.modes, self.engine, self.links, self.recovery, self._send)
        announcements = Announcements(config.services())
        self._turns = TurnDeadlines(announcements, flows, self.links)
        self._priorities = FlowPriorities(self.engine, self.links)
        self._announced = AnnouncedFlows(
            announcements, self.engine, flows, self._reporter, self._turns, self._priorities
        )
        self._ungoverned = UngovernedPorts(log)
        self.far_orders = FarOrders(self.links)
        self.uplinks = UplinkShares(config.uplinks(), self.links, self.lease)
        # In the order of their calls: the thresholds of a port depend on what recovery has ordered there.
        self._parts: tuple[WindowPart, ...] = (
            self.recovery,
            LawNeeds(self.engine, self.recovery, self._reporter),
            self.queue_laws,
            self._ungoverned,
            self._announced,
            self.far_orders,
        )
        self.leases_cut = 0  # rules that were installed when the connection to their agent ended

    @property
    def announcements(self) -> Announcements:
        """The announcements of applications and of the configuration."""
        return self._announced.announcements

    # Agents

    def agent_connected(self, datapath: Any, about: Description) -> AgentLink:
        """An agent has connected, and described itself. Rules of an earlier connection are removed; new ones
        come with the next sample of a queue.
        """
        link = AgentLink(datapath, about)
        self.links[link.dpid] = link
        link.send(link.clear_rules())
        self.engine.switch_gone(link.dpid)
        for part in self._parts:
            part.agent_connected(link.dpid)
        link.send(link.modes.begin(time.monotonic()))
        self.mode_changes.apply(time.monotonic())
        link.send(link.request_counts(0.0, time.monotonic()))
        self._reporter.agent(link.dpid, connected=True)
        return link

    def agent_disconnected(self, link: AgentLink) -> None:
        """An agent's connection has ended."""
        del self.links[link.dpid]
        link.poll_now.set()
        self.leases_cut += self.engine.switch_gone(link.dpid)
        for part in self._parts:
            part.agent_disconnected(link.dpid)
        self._reporter.agent(link.dpid, connected=False)

    def switches(self) -> set[int]:
        """The dpids of the switches of whose ports anything is kept."""
        return self.engine.switches() | self._ungoverned.switches() | self.far_orders.switches()

    def busy(self, dpid: int) -> bool:
        """Whether a port of a switch has flows or windows."""
        return any(map(self.engine.busy, self.engine.ports_of(dpid)))

    def forget_switch(self, dpid: int) -> None:
        """Forget all ports of a switch. They are named again when it comes back."""
        for key in self.engine.ports_of(dpid):
            self.port_removed(key)
            self.engine.unnamed(key)
        self._ungoverned.forget_switch(dpid)
        self.far_orders.forget_switch(dpid)
        self._reporter.forget_switch(dpid)

    def link_of(self, datapath: Any) -> AgentLink | None:
        """The agent whose current connection this is; None: it is a bridge's, or an earlier one."""
        link = self.links.get(oxm.bridge_dpid(datapath.id or 0))
        return link if link is not None and link.datapath is datapath else None

    def port_removed(self, key: PortKey) -> None:
        """An agent does not watch a port any more."""
        self.engine.port_gone(key)
        self._reporter.port_removed(key)
        link = self.links.get(key.dpid)
        if link is not None:
            link.send(link.port_removed(key.port))
        for part in self._parts:
            part.port_removed(key)

    def name_ports(self, now: float) -> None:
        """Inform the policies of ports' names and roles that have changed: they may decide on the policy."""
        for _, ports in self.inventory.listed():
            self._name(ports, now)

    def name_ports_of(self, dpid: int, now: float) -> None:
        """The same for one bridge. The ports of one of the fabric that is away keep theirs."""
        if dpid in self._fabric.bridges or not self._fabric.topology.knows(dpid):
            self._name(self.inventory.ports(dpid), now)

    def _name(self, ports: Iterable[PortKey], now: float) -> None:
        changed = False
        for key in ports:
            role = self.inventory.role(key)
            about = self.inventory.name(key), role if role in ("host", "link") else ""
            if self.engine.known_as(key) != about:
                self._send(self.engine.named(key, *about, now), now)
                self._policies_changed([key])
                changed = True
        if changed:
            self.mode_changes.apply(now)

    def _policies_changed(self, ports: Collection[PortKey]) -> None:
        for part in self._parts:
            part.policies_changed(ports)

    @property
    def roles_matter(self) -> bool:
        """Whether policies of ports are chosen by what the ports lead to."""
        return any(pattern.startswith(ROLE) for pattern, _ in self.engine.choice.rules)

    def interval(self, link: AgentLink) -> float | None:
        """The interval at which the queues of a switch must be read, seconds; None: there is no need."""
        busy = [key for key in link.governed if self.engine.busy(key)]
        link.switch_laws = sum(map(self.engine.decided_in_switch, busy))
        link.only_switch_laws = 0 < link.switch_laws == len(busy)
        ports = self._switch_laws.get(len(self.links))
        self.engine.look_interval = polling_pace.look_interval(ports, self.lease)
        if any(self.recovery.used(key) for key in busy):
            return _RECOVERY_INTERVAL
        return self.engine.poll_interval(busy) if busy else None

    def records_interval(self, link: AgentLink, wanted: float, idle_timeout: float) -> float:
        """The interval at which flows that send are reported again, seconds: ``wanted``, or longer where
        there are many and neither a law in the controller nor an announced flow needs them.
        """
        if not link.only_switch_laws or self.follows_flows or self._announced.expects:
            return wanted
        records = self._records.get(len(self.links))
        return polling_pace.records_interval(wanted, records, idle_timeout)

    @property
    def follows_flows(self) -> bool:
        """Whether the outcomes of announced flows are waited for."""
        return bool(self._reporter.outcomes)

    # Flows

    def apply(self, events: list[FlowEvent], now: float, received: float | None = None) -> list[Any]:
        """Flows start or end on ports: ask the policies, send their rules, and then the deadlines by which
        connections take turns. Returns the agents that were sent any. ``received``: when the segment behind
        the events came, if that was earlier; deadlines count from there.
        """
        changes: list[RuleChange] = []
        # All is computed before anything is sent: sending may let another greenlet run.
        for event in events:
            if event.started:
                changes += self._started(event, now, received)
            else:
                changes += self.engine.flow_ended(event.port, event.flow.key, now)
                self._announced.flow_left(event, now)
        informed = self._send(changes, now)
        return informed + [each for each in self._send_deadlines(now) if each not in informed]

    def _started(self, event: FlowEvent, now: float, received: float | None) -> list[RuleChange]:
        link = self.links.get(event.port.dpid)
        # The queue of a port without flows is read rarely. Read it now, so that the first ACK meets a window.
        changes, wanted = self.engine.flow_starts(event.port, event.flow, now)
        if wanted and link is not None and link.may_govern(event.port.port):
            link.poll_now.set()
        return changes + self._announced.flow_started(event, now, received)

    def flow_over(self, flow: FlowKey) -> None:
        """A connection has ended, or is not counted any more."""
        self._announced.connection_over(flow)
        self.injector.forget(flow)

    def syn_seen(self, frame: parse.Frame) -> None:
        """The controller has received a SYN, copied or held: a new connection begins."""
        if frame.tcp is not None and not self._flows.is_foreign(frame.tcp):
            self.injector.learn(frame)
            self.recovery.forget_connection(frame.tcp.key)

    def syn_left(self, frame: parse.Frame, dpid: int) -> None:
        """An agent has copied a SYN where it has left its bridge."""
        self.syn_seen(frame)
        if frame.tcp is not None and not self._flows.is_foreign(frame.tcp):
            self.injector.learn_at(dpid, frame)

    # Laws that run in the switches

    def laws_reported(self, link: AgentLink, states: Sequence[LawState], now: float) -> None:
        """An agent has reported the states of its laws."""
        link.window_laws.reported(states)
        for state in states:
            if state.port:
                key = PortKey(link.dpid, state.port)
                self._send(self.engine.law_reported(key, bool(state.mode & _LIMITING), now), now)
                self._reporter.incast(key, self.engine.incast(key))

    def law_refused(self, link: AgentLink, refused: RefusedLaw, now: float) -> bool | None:
        """An agent has refused a law. Returns whether ports have no windows because of that: not if they had
        none before, or if the law is requested again. None: no law of a policy is concerned.
        """
        key = PortKey(link.dpid, refused.law)
        if not self.engine.in_switch(key):
            return False if self.engine.law_missing(key) is not None else None
        if refused.others and link.window_laws.conflict(refused.law):
            self.engine.law_lost(key)
            return False
        link.send(link.window_laws.end(refused.law))  # after an error about its rule, the agent still has it
        self._send(self.engine.law_refused(key, refused.reason, now), now)
        return True

    # Tenants

    def tend_tenants(self, now: float) -> None:
        """Send agents the tenants, where they have changed or their lease is to be renewed, and then what has
        changed of the announced priorities of flows.
        """
        for link, messages in (*self.tenants.due(now), *self._priorities.due()):
            link.send(messages)

    # Announcements

    def deadline_of(self, opener: FlowKey, now: float) -> float | None:
        """The earliest deadline of a connection that ``opener`` opens now; None: it has none."""
        return self._announced.deadline_of(opener, now)

    def syn_copied(self, opener: FlowKey, dpid: int, now: float) -> None:
        """A SYN has entered the network at a switch. Its turn there depends on its deadline."""
        deadline, link = self.deadline_of(opener, now), self.links.get(dpid)
        if deadline is not None and link is not None:
            link.send(self._turns.begins(link, opener, deadline, now))

    def announce(self, wanted: Request, now: float, number: int | None = None) -> Entry:
        """An application announces a flow, with this ``number`` (None: the next). Other greenlets may run
        before it counts. Raises :class:`fairq_ryu.fabric.deadlines.announcements.Full`.
        """
        for _ in in_steps(self.announcements.prepare(wanted), LOOKS_PER_STEP):
            pass
        entry, changes = self.announcements.add(wanted, now, number)
        self._announcements_changed(changes, now)
        return entry

    def withdraw(self, number: int, now: float) -> None:
        """An announcement is withdrawn. Raises KeyError if there is none with this number."""
        self._announcements_changed(self.announcements.withdraw(number, now), now)

    def _announcements_changed(self, changes: Iterable[AnnouncementChange], now: float) -> None:
        for rules in self._announced.changed(changes, now):
            self._send(rules, now)
        self._send_deadlines(now)

    def prune(self, now: float) -> None:
        """Forget announcements and outcomes that concern no flow any more."""
        self._announced.prune(now)

    def report_overdue(self, now: float) -> None:
        """Report deadlines that have passed, and announced flows that have ended with bytes missing."""
        self._reporter.report_overdue(now, self.engine.missed)

    # Reports of agents

    def queues_read(self, link: AgentLink, found: Iterable[queue_depth.QueueDepth], now: float) -> None:
        """An agent has reported queue depths."""
        for record in found:
            before = link.replace_reading(record, now)
            key = PortKey(link.dpid, record.port)
            if before is not None and record.drops > before.drops:
                self._reporter.dropped(key, record.drops - before.drops)
            if not link.governs(record) and not (before and before.buffer):
                self._ungoverned.not_governed(key, record)
                continue
            sample = queue_depth.sample(record, before)
            self._send(self.engine.sampled(key, sample, now), now)
            self._reporter.incast(key, self.engine.incast(key))
            self._reporter.law_missing(key, self.engine.law_missing(key))
            for part in self._parts:
                link.send(part.queue_read(link, key, sample, now))

    def hidden_queues_reported(self, link: AgentLink, found: Iterable[HiddenQueue]) -> None:
        """An agent has reported what it has inferred about hidden queues."""
        for record in found:
            port = link.ports.get(record.port)
            if port is None:
                continue  # it was never listed
            port.hidden, port.hidden_delay = record, record.delay_s(port.hidden)
            key, others = PortKey(link.dpid, record.port), record.why == Why.OTHERS
            # A leased part of an uplink is no rate that was found; it follows the flows.
            leased = self.uplinks.uplink_of(link, link.name(record.port - FAR))
            self._reporter.hidden_queue(key, 0 if leased else record.line, record.rate, others)

    def threshold_crossed(self, link: AgentLink, notice: congestion.CongestionNotice, now: float) -> None:
        """A queue has crossed a threshold."""
        key = PortKey(link.dpid, notice.port)
        self._reporter.congestion(key, notice.state, notice.backlog)
        self._send(self.engine.congestion(key, notice.state, notice.backlog, now), now)

    def port_flows_reported(
        self, link: AgentLink, port: int, found: Sequence[flow_records.FlowRecord], now: float
    ) -> None:
        """An agent has reported the records of a port's flows: their progress."""
        flows = {
            record.key: FlowProgress(
                record.acked, record.bytes, record.rtt_us / 1e6, bool(record.flags & flow_records.ESTABLISHED)
            )
            for record in found
            if record.port == port
        }
        self._send(self.engine.progressed(PortKey(link.dpid, port), flows, now), now)
        self.flows_counted(link, found, now)

    def flows_counted(self, link: AgentLink, found: Iterable[flow_records.FlowRecord], now: float) -> None:
        """Records of flows of any port: announced flows may have met their deadlines."""
        outcomes = self._reporter.outcomes
        if outcomes:
            wanted = (_counted(link.dpid, each) for each in found if outcomes.wants(each.key))
            self._reporter.counted(wanted, now)

    def segments_counted(self, link: AgentLink, counts: SegmentCounts) -> None:
        """An agent has reported how many segments it has sent by itself."""
        grown = link.replace_counts(counts)
        self.recovery.reported(grown.losses)
        self.injector.counts.update(grown.sent)

    def packet_dropped(self, key: PortKey, frame: bytes, total_len: int, now: float) -> None:
        """A queue has dropped a packet, which its agent has sent."""
        self.recovery.packet_dropped(key, frame, total_len, now)

    # What is sent

    def _send_deadlines(self, now: float) -> list[Any]:
        """Send the deadlines by which connections take turns, where they have changed; returns the datapaths
        of the agents that were sent any.
        """
        due = self._turns.due(now)
        for link, messages in due:
            link.send(messages)
        return [link.datapath for link, _ in due]

    def _send(self, changes: list[RuleChange], now: float) -> list[Any]:
        """Send rule changes to the agents they are for; returns these agents' datapaths."""
        if not changes:
            return []
        informed: dict[int, Any] = {}
        awake: dict[AgentLink, list[FlowKey]] = {}
        for change in changes:
            link = self.links.get(change.target.port.dpid)
            if link is None:
                if change.wake:  # a rule that pauses it may still be installed there: it would pause again
                    self.engine.not_woken(change.target)
                continue
            informed[link.dpid] = link.datapath
            if change.rule is not None:
                link.send(link.modes.ensure(change.target.port.port, self.engine.mode(change.target.port)))
            link.send(link.change_rule(change, self.lease))
            if change.wake and change.target.flow is not None:
                awake.setdefault(link, []).append(change.target.flow)
        for link, flows in awake.items():
            link.send(self.injector.wake(link, flows))
        return list(informed.values())

    def use(self, choice: PolicyChoice) -> None:
        """Change the policies of a running controller."""
        now = time.monotonic()
        self._send(self.engine.use(choice, now), now)
        self.mode_changes.apply(now)
        self._policies_changed(self.engine.view())
        for link in self.links.values():
            link.poll_now.set()  # the queues may be needed sooner now


def _counted(dpid: int, record: flow_records.FlowRecord) -> tuple[FlowKey, Counted]:
    known, closed = bool(record.flags & flow_records.KNOWN), bool(record.flags & flow_records.CLOSED)
    port, idle = PortKey(dpid, record.port), record.idle_ms / 1000
    return record.key, Counted(port, record.acked, record.bytes, idle, known, closed)

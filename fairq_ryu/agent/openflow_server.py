"""The agent as an OpenFlow 1.3 switch, without sockets: its state, shared by the sessions of its controllers.

An :class:`OpenFlowServer` is one bridge; a
:class:`~fairq_ryu.agent.controller_session.ControllerSession` is one controller's connection to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fairq_ryu.agent import messages
from fairq_ryu.agent.congestion_monitor import DROP_RATE, GAP, CongestionMonitor
from fairq_ryu.agent.law_table import LawTable
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.port_recovery import PortRecovery
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.agent.queue_law_table import QueueLawTable
from fairq_ryu.agent.rule_table import Rule, RuleTable
from fairq_ryu.agent.segment_copier import CopyRule, SegmentCopier
from fairq_ryu.agent.segment_injector import SegmentInjector
from fairq_ryu.channel import oxm, port_mode, port_settings, queue_depth
from fairq_ryu.channel.far_queues import ERROR_FAR_QUEUE, FarQueueState, RateLease, Told
from fairq_ryu.channel.flow_match import MatchFields
from fairq_ryu.channel.flowmod import QUEUE_TABLE_ID, TABLE_ID
from fairq_ryu.channel.flowmod_decoder import FlowMod
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.queue_law import SetQueueLaw
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.window_law import SetLaw
from fairq_ryu.port_settings import PortSettings

InstalledRule = Rule | CopyRule


class FarPorts(Protocol):
    """Where far queues are added and removed: the ports of the bridge, or a fake. The first two methods raise
    :class:`OpenFlowError`, and change nothing then.
    """

    def tell_far_queues(self, told: Told) -> None:
        """A controller changes this, and nothing else any more."""

    def lease_far_rates(self, lease: RateLease, now_ns: int) -> None:
        """A controller leases rates to far queues."""

    def far_queues(self) -> list[FarQueueState]:
        """The far queues that there are."""


class NoPorts:
    """A bridge whose ports nobody follows: it has no far queues."""

    def tell_far_queues(self, told: Told) -> None:
        """It can have none."""
        if told:
            raise OpenFlowError(ofp.OFPET_EXPERIMENTER, ERROR_FAR_QUEUE, "nobody follows the ports")

    def lease_far_rates(self, lease: RateLease, now_ns: int) -> None:
        """Nothing has a rate."""

    def far_queues(self) -> list[FarQueueState]:
        """None."""
        return []


class Session(Protocol):
    """One controller's connection, as the server and the handlers of requests see it."""

    @property
    def server(self) -> OpenFlowServer:
        """The server it is connected to."""

    role: int
    """``OFPCR_ROLE_...``"""
    greeted: bool
    """The controller's HELLO has arrived."""

    @property
    def ready(self) -> bool:
        """Whether packets may be sent to it."""

    def send(self, data: bytes) -> None:
        """Send the answer to a request."""

    def send_all(self, answer: Iterator[bytes]) -> None:
        """Send the messages of a long answer as the controller reads them. No other request is answered
        before.
        """

    def push(self, data: bytes) -> None:
        """Send an asynchronous message, if the HELLO exchange is complete."""

    def keep_peaks(self, states: dict[int, QueueState]) -> None:
        """Keep peaks that the datapath resets because another session has read them."""

    def take_peak(self, port: int, backlog: int) -> int:
        """The peak since this was last called, bytes."""


class OpenFlowServer:
    """One bridge's tables of window rules and queue laws, and its controllers' sessions."""

    def __init__(
        self,
        bridge: str,
        dpid: int,
        data: BridgePrograms,
        rule_capacity: int,
        congestion_gap: float = GAP,
        drop_rate: float = DROP_RATE,
    ) -> None:
        """``dpid`` is the bridge's own; see :class:`CongestionMonitor` for the last two. Raises ValueError if
        the marker does not fit in ``dpid``.
        """
        self.bridge, self.data = bridge, data
        self.dpid = oxm.agent_dpid(dpid)
        self.laws = LawTable(data, rule_capacity)
        self.table = RuleTable(self.laws, rule_capacity)
        self.queue_laws = QueueLawTable(data, rule_capacity)
        self.queue_table = RuleTable(self.queue_laws, rule_capacity)
        self.far: FarPorts = NoPorts()
        """whoever follows the ports takes this place"""
        self.sessions: list[Session] = []
        self.port_settings: Mapping[int, PortSettings] = {}
        self.master: Session | None = None
        self.generation: int | None = None
        self.copier = SegmentCopier(data)
        self.congestion = CongestionMonitor(data, self, congestion_gap, drop_rate)
        self.injector = SegmentInjector(data)
        self.recovery = PortRecovery(data, self.injector, self.congestion.watch_drops)
        self._born_ns = time.monotonic_ns()

    def age_ns(self, now_ns: int) -> int:
        """The time since the server started, ns."""
        return now_ns - self._born_ns

    def send_to_all(self, data: bytes) -> None:
        """Send a message to every controller."""
        for session in self.sessions:
            session.push(data)

    def send_to_ready(self, data: bytes) -> bool:
        """Send a message to the controllers that are not slaves and read fast enough; False if none do."""
        ready = [session for session in self.sessions if session.ready]
        for session in ready:
            session.push(data)
        return bool(ready)

    def send_port_status(self, reason: int, port: BridgePort) -> None:
        """Send every controller the PORT_STATUS of a port that was added, removed or changed."""
        self.send_to_all(messages.port_status(reason, port))

    def set_port_settings(self, settings: Mapping[int, PortSettings]) -> None:
        """The settings of all ports of the bridge. Controllers get them if they have changed."""
        if settings != self.port_settings:
            self.port_settings = dict(settings)
            for message in port_settings.messages(settings):
                self.send_to_all(message)

    def change_rules(self, mod: FlowMod, session: Session, now_ns: int) -> None:
        """Carry out a FlowMod of a controller. Raises :class:`OpenFlowError`, and changes nothing then."""
        if mod.copy is not None:
            self.copier.apply(mod, session, now_ns)
            return
        removed: list[InstalledRule] = []
        for number, table in ((TABLE_ID, self.table), (QUEUE_TABLE_ID, self.queue_table)):
            if mod.table in (number, ofp.OFPTT_ALL):
                removed += table.apply(mod, now_ns)
        deletes = mod.command in (ofp.OFPFC_DELETE, ofp.OFPFC_DELETE_STRICT)
        if deletes and mod.table in (TABLE_ID, ofp.OFPTT_ALL):
            removed += self.copier.delete(mod)
        self.send_flow_removed(removed, ofp.OFPRR_DELETE, now_ns)

    def selected_rules(self, match: MatchFields, cookie: int, cookie_mask: int) -> list[InstalledRule]:
        """The rules that a statistics request selects."""
        selected = (match, cookie, cookie_mask)
        windows, queues = self.table.select(*selected), self.queue_table.select(*selected)
        return [*windows, *queues, *self.copier.select(*selected)]

    def rules(self) -> list[InstalledRule]:
        """The rules of all tables."""
        return [*self.table.rules(), *self.queue_table.rules(), *self.copier.rules()]

    def rule_counts(self, rule: InstalledRule) -> tuple[int, int]:
        """The number of ACKs that a rule applied to, and of those it lowered; with a rule for copies, of
        segments that it matched, and of those it copied.
        """
        if isinstance(rule, CopyRule):
            return self.data.copy_counts(rule.target)
        return (self.queue_laws if rule.table == QUEUE_TABLE_ID else self.data).counters(rule.slot)

    def forget_session(self, session: Session, now_ns: int) -> None:
        """The connection to a controller has ended: remove what only it has asked for."""
        self.send_flow_removed(self.copier.forget(session), ofp.OFPRR_DELETE, now_ns)
        if not any(each.greeted for each in self.sessions):
            self.congestion.clear()

    def send_flow_removed(self, rules: Sequence[InstalledRule], reason: int, now_ns: int) -> None:
        """Send FLOW_REMOVED for the removed rules that ask for it to every controller that is not a slave."""
        for rule in rules:
            if rule.flags & ofp.OFPFF_SEND_FLOW_REM:
                counts = self.rule_counts(rule)
                for session in self.sessions:
                    if session.role != ofp.OFPCR_ROLE_SLAVE:
                        session.push(messages.flow_removed(rule, reason, *counts, now_ns))

    def set_port_mode(self, wanted: port_mode.SetPortMode) -> None:
        """Let ports act, or only be observed. Raises :class:`OpenFlowError`."""
        if wanted.mode not in port_mode.MODES:
            raise OpenFlowError(ofp.OFPET_EXPERIMENTER, port_mode.ERROR_MODE, f"mode {wanted.mode}")
        observed = wanted.mode == port_mode.OBSERVE
        for port in self.requested_ports(wanted.port):
            if observed:
                self.recovery.forget_port(port.ofport)
            self.data.observe(port.ofport, observed)

    def port_modes(self, number: int) -> list[port_mode.PortWindows]:
        """The modes of ports, and what their windows have done. Raises :class:`OpenFlowError`."""
        observed, ports = self.data.observed, self.requested_ports(number)
        return [
            port_mode.PortWindows(
                port.ofport,
                port_mode.OBSERVE if port.ofport in observed else port_mode.ACT,
                *self.data.window_counts(port.ofport),
            )
            for port in ports
        ]

    def set_law(self, wanted: SetLaw, now_ns: int) -> None:
        """Add, change or delete a law; the rules that refer to a deleted one are removed. Raises
        :class:`OpenFlowError`.
        """
        for port in self.laws.set(wanted):
            self.send_flow_removed(self.table.forget_port(port), ofp.OFPRR_DELETE, now_ns)

    def set_queue_law(self, wanted: SetQueueLaw, now_ns: int) -> None:
        """Likewise with a queue law."""
        for port in self.queue_laws.set(wanted):
            self.send_flow_removed(self.queue_table.forget_port(port), ofp.OFPRR_DELETE, now_ns)

    def requested_ports(self, number: int) -> list[BridgePort]:
        """The ports that a request names; OFPP_ANY names all. Raises :class:`OpenFlowError` if there is no
        such port.
        """
        ports = self.data.ports
        if number == ofp.OFPP_ANY:
            return list(ports.values())
        if number not in ports:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT, f"no port {number} here")
        return [ports[number]]

    def expire_rules(self, now_ns: int) -> None:
        """Remove the rules, and end the recoveries, whose lease has ended."""
        self.recovery.expire(now_ns)
        expired: list[InstalledRule] = [
            *self.table.expire(now_ns),
            *self.queue_table.expire(now_ns),
            *self.copier.expire(now_ns),
        ]
        self.send_flow_removed(expired, ofp.OFPRR_HARD_TIMEOUT, now_ns)

    def forget_port(self, port: int, now_ns: int) -> None:
        """Remove the rules, the thresholds and the recovery of a port that has gone."""
        rules = [*self.table.forget_port(port), *self.queue_table.forget_port(port)]
        self.send_flow_removed(rules, ofp.OFPRR_DELETE, now_ns)
        self.recovery.forget_port(port)
        self.congestion.forget_port(port)
        for session in self.sessions:
            session.take_peak(port, 0)  # another port may get the number

    def hidden_queues(self, number: int) -> list[HiddenQueue]:
        """What is known of the hidden queues of the far queues among these ports. Raises
        :class:`OpenFlowError` as :meth:`requested_ports`.
        """
        return [self.data.hidden_queue(port) for port in self.requested_ports(number) if port.far is not None]

    def read_queue_depths(self, session: Session, ports: list[BridgePort]) -> list[queue_depth.QueueDepth]:
        """Read the queues of all ports and restart their peaks; returns records of ``ports``, with the peaks
        since this session read them last.
        """
        found = {port.ofport: self.data.queue(port) for port in self.data.ports.values()}
        self.data.restart_peaks()
        for each in self.sessions:
            each.keep_peaks(found)
        answer = []
        for port in ports:
            state, limits = found[port.ofport], self.data.queue_limits(port)
            answer.append(
                queue_depth.QueueDepth(
                    port=port.ofport,
                    active=min(self.data.active_flows(port), 0xFFFFFFFF),
                    backlog=state.backlog,
                    peak=session.take_peak(port.ofport, state.backlog),
                    limit=limits.limit if limits.measured else queue_depth.UNMEASURED,
                    rate=limits.rate,
                    drops=state.drops,
                    byte_ns=state.byte_ns,
                    clock_ns=state.clock_ns,
                )
            )
        return answer

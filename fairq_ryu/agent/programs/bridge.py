"""What the eBPF programs are asked for one bridge: its rules, copies, thresholds, queues and flows, by the
OpenFlow numbers of its ports.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, cast

from fairq_ryu.agent import layout
from fairq_ryu.agent.flow_changes import FlowChanges
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge_ports import BridgePorts
from fairq_ryu.agent.programs.copies import CopyRecord
from fairq_ryu.agent.programs.drops import DropRecord
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.flow_map import KEY_WIDTH
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.rule_table import PortOrFlow
from fairq_ryu.agent.segment_copier import CopiedSegment
from fairq_ryu.agent.turn_queue import TurnCounts
from fairq_ryu.agent.unanswered_flows import Unanswered
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.description import Capability
from fairq_ryu.channel.flow_changes import ChangeRequest, Changes
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.segment_copies import SegmentMatch
from fairq_ryu.channel.tenants import LEFT_OUT, SetTenants, TenantState
from fairq_ryu.errors import UserError
from fairq_ryu.model import Congestion, FlowKey, SegmentState, Thresholds, WindowRule

log = logging.getLogger(__name__)
# On a port without a queue no decision depends on the number of active flows: it is counted less often there.
_UNQUEUED_MAX_AGE_NS = 50_000_000
# Of a frame that the agent sends itself.
_SENT = layout.CONSTANTS["FQ_SENT_MARK"] << layout.CONSTANTS["FQ_TURN_SHIFT"]
# Numbers of ports of other bridges of this host: beyond all numbers of OpenFlow, with the interface index.
_ELSEWHERE = 1 << 32


class BridgePrograms(BridgePorts):
    """One bridge, as the programs of the host see it. :meth:`HostPrograms.close` closes it.

    Ports are OpenFlow numbers here, and interface indices in the programs. The ports of other bridges of the
    host have numbers beyond those of OpenFlow: ACKs of a flow whose data leaves by this bridge may leave by
    them.
    """

    def __init__(self, host: HostPrograms) -> None:
        """``host``: the loaded programs."""
        super().__init__(host)
        self.changes = FlowChanges(KEY_WIDTH)
        """The changes of the flows that leave by its ports."""
        first, counters = self.number * self.limits.counters, self.limits.counters
        self._slots = range(first, first + counters)
        self._thresholds: dict[int, Thresholds] = {}  # as they were asked for
        host.bridges.append(self)

    def stop_all_turns(self) -> None:
        """New connections of all ports take no turns any more; those that wait leave."""
        for port in self._ports.values():
            self._stop_turns(port.ifindex)

    def remove_port(self, ofport: int) -> None:
        """Stop on a port, which may have been deleted already."""
        self._thresholds.pop(ofport, None)
        self._stop_turns(self._ports[ofport].ifindex)
        super().remove_port(ofport)
        self.host.watch_kernel_drops()

    # Ports of other bridges

    def _others(self) -> list[BridgePrograms]:
        bridges = cast("list[BridgePrograms]", self.host.bridges)
        return [each for each in bridges if each is not self]

    def _everywhere(self) -> dict[int, int]:
        """As :meth:`numbers`, with the ports of other bridges."""
        found = self.numbers()
        for other in self._others():
            found |= {
                known: _ELSEWHERE | other.ports[ofport].ifindex for known, ofport in other.numbers().items()
            }
        return found

    def _owner(self, port: int) -> tuple[BridgePrograms, int]:
        """The bridge that has a port, and the number that it has there."""
        for other in self._others() if port >= _ELSEWHERE else ():
            ofport = other.numbers().get(port - _ELSEWHERE)
            if ofport is not None:
                return other, ofport
        return self, port

    # Modes

    @property
    def observed(self) -> frozenset[int]:
        """The ports that are only observed, by number; also those of other bridges."""
        elsewhere = {
            _ELSEWHERE | other.ports[ofport].ifindex
            for other in self._others()
            for ofport in other._observed & other.ports.keys()
        }
        return frozenset(self._observed | elsewhere)

    def observe(self, port: int, observed: bool) -> None:
        """Whether a port is only observed: nothing is written in its packets, no handshake waits at it, and
        nothing is dropped before its queue is full. It remains so when the port is removed and added again.
        Raises :class:`BpfError`; then nothing is changed.
        """
        ifindex = self._ports[port].ifindex
        self.window.observe(ifindex, observed)
        self.queue_laws.observe(ifindex, observed)
        if observed:
            self._stop_turns(ifindex)  # before it is observed: what it has paused is started
            self._observed.add(port)
        else:
            self._observed.discard(port)
        if port in self._thresholds:
            self.set_thresholds(port, self._thresholds[port])

    def window_counts(self, port: int) -> tuple[int, int, int]:
        """The ACKs of a port's data to which a rule applied; of these, those that were lowered, and those
        that would have been if the port was not only observed.
        """
        state = self.window.port_state(self._ports[port].ifindex)
        return int(state.acks), int(state.rewritten), int(state.would_lower)

    # Rules

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Install a rule, or change it. Raises :class:`BpfError`."""
        slot = self._slots[slot]
        if isinstance(target, int):
            self.window.install_port_rule(self._ports[target].ifindex, window, expires_ns, slot)
        else:
            self.window.flow_rules.install(target, window, expires_ns, slot, self._slots)

    def install_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        """Install the law of a port (an ``fq_law``), change it, or renew its lease. Raises
        :class:`BpfError`.
        """
        ifindex = self._ports[port].ifindex
        self.laws.install(ifindex, law_id, law, expires_ns)
        # A packet's queue is not known before it is there, so it cannot wait until that queue has room.
        several = self.window.ids(ifindex) != (ifindex,)
        takes_turns = law.flags & layout.CONSTANTS["FQ_LAW_TURNS"]
        if several or port in self._observed or not takes_turns:
            self._stop_turns(ifindex)
        elif self.turn_program.start(ifindex):
            self.turns.start(ifindex)

    def remove_law(self, port: int) -> None:
        """Remove the law of a port."""
        if port in self._ports:
            self._stop_turns(self._ports[port].ifindex)
            self.laws.remove(self._ports[port].ifindex)

    def install_queue_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        """Install the queue law of a port (an ``fq_queue_law``), change it, or renew its lease. Raises
        :class:`BpfError`.
        """
        try:
            self.queue_laws.install(self._ports[port].ifindex, law_id, law, expires_ns)
        except UserError as error:
            raise BpfError(str(error)) from error

    def remove_queue_law(self, port: int) -> None:
        """Remove the queue law of a port."""
        if port in self._ports:
            self.queue_laws.remove(self._ports[port].ifindex)

    def queue_law_state(self, port: int) -> Any | None:
        """The state of a port's queue law, an ``fq_queue_law_state``; None: it has none."""
        return self.queue_laws.state(self._ports[port].ifindex) if port in self._ports else None

    def queue_law_counts(self, port: int) -> Any:
        """What all queue laws of a port have counted so far, an ``fq_queue_law_counts``."""
        if port not in self._ports:
            return layout.fq_queue_law_counts()
        return self.queue_laws.counts(self._ports[port].ifindex)

    def _stop_turns(self, ifindex: int) -> None:
        """New connections of a port take no turns any more; those that wait leave."""
        self.turns.stop(ifindex, time.monotonic_ns())
        self.turn_program.remove_port(ifindex)

    def turn_counts(self, port: int) -> TurnCounts:
        """How the new connections of a port have taken turns."""
        ifindex = self._ports[port].ifindex
        held, lost = self.turn_program.handed_over(ifindex)
        counts = self.turns.counts(ifindex)
        return dataclasses.replace(counts, held=held, full=counts.full + lost)

    def set_deadline(self, flow: FlowKey, deadline_ns: int | None, now_ns: int) -> None:
        """The connection of a flow has this deadline (None: none any more): its turn comes earlier."""
        self.turns.set_deadline(bytes(flow_key(flow)), deadline_ns, now_ns)

    def set_tenants(self, wanted: SetTenants, now_ns: int) -> None:
        """Set the tenants of the host, or renew their lease. Raises :class:`BpfError`."""
        self.window.set_tenants(wanted, now_ns)

    def set_priorities(self, wanted: Sequence[FlowPriority]) -> None:
        """Set or remove the priorities of flows within their tenants; none: remove all that were set here.
        Raises :class:`BpfError`.
        """
        self.window.set_priorities(self, wanted)

    def tenant_states(self, port: int) -> list[TenantState]:
        """What the tenants have at a port, and last what met none of them for want of room."""
        table, ifindex = self.window.tenants_in_force, self._ports[port].ifindex
        left_out = self.window.left_out_of(ifindex)
        states = [
            TenantState(
                table,
                port,
                tenant,
                flows,
                state.acks,
                state.bytes,
                state.floored,
                state.part_q16,
                state.pool,
            )
            for tenant, flows, state in self.window.tenant_counts(ifindex)
        ]
        if left_out is not None:
            states.append(TenantState(table, port, LEFT_OUT, 0, left_out, 0, 0, 0, 0))
        return states

    def law_state(self, port: int) -> Any | None:
        """The state of a port's law, an ``fq_law_state``; None: it has none."""
        return self.laws.state(self._ports[port].ifindex)

    def remove_rule(self, target: PortOrFlow) -> None:
        """Remove a rule. The rule of a port is also removed with the port."""
        if not isinstance(target, int):
            self.window.flow_rules.remove(target, self._slots)
        elif target in self._ports:
            self.window.remove_port_rule(self._ports[target].ifindex)

    def counters(self, slot: int) -> tuple[int, int]:
        """The number of ACKs that the rule in this slot applied to, and of those it lowered."""
        return self.window.counters(self._slots[slot])

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0."""
        self.window.reset_counters(self._slots[slot])

    # Copies

    def install_copies(self, rule: SegmentMatch, expires_ns: int) -> None:
        """Copy these segments until then. Raises :class:`BpfError`."""
        self.copies.install(rule, expires_ns, self.number)

    def remove_copies(self, rule: SegmentMatch) -> None:
        """Copy these segments no longer."""
        self.copies.remove(rule, self.number)

    def copy_counts(self, rule: SegmentMatch) -> tuple[int, int]:
        """The number of segments that the rule matched, and of those it copied."""
        return self.copies.counts(rule, self.number)

    def reset_copy_counts(self, rule: SegmentMatch) -> None:
        """Start the counts of a rule at 0."""
        self.copies.reset_counts(rule, self.number)

    @property
    def not_copied(self) -> tuple[int, int]:
        """Segments that were not copied: beyond a rate, and because the ring buffer had no room."""
        return self.copies.not_copied(self.number)

    def copied(self, copies: Iterable[CopyRecord]) -> list[CopiedSegment]:
        """Those of the copies that left by ports of this bridge, in the same order."""
        ofports = self.numbers()
        return [
            CopiedSegment(copy.rule, ofports[copy.ifindex], copy.frame, copy.length)
            for copy in copies
            if copy.ifindex in ofports
        ]

    # Congestion and drops

    def set_thresholds(self, ofport: int, thresholds: Thresholds | None) -> None:
        """When a port is congested, and whether its drops are reported; None removes both.

        Raises :class:`BpfError`.
        """
        if thresholds is None:
            self._thresholds.pop(ofport, None)
            if ofport not in self._ports:
                return  # they were removed with the port
        ifindex = self._ports[ofport].ifindex
        if thresholds is not None:
            self._thresholds[ofport] = thresholds
            # What a far queue has dropped never comes here.
            if ofport in self._observed or self._ports[ofport].far is not None:
                thresholds = thresholds._replace(drops=False)
        self.queues.set_thresholds(ifindex, thresholds)
        self.drops.report(ifindex, thresholds is not None and thresholds.drops)
        self.host.watch_kernel_drops()

    @property
    def reports_drops(self) -> bool:
        """Whether this kernel can report dropped packets."""
        return self.drops.available

    @property
    def capabilities(self) -> Capability:
        """As of the host."""
        return self.host.capabilities

    def congestion(self, ofport: int) -> CongestionNotice:
        """The state of a port now, by its thresholds."""
        congested, backlog = self.queues.congested(self._ports[ofport].ifindex)
        state = Congestion.CNG if congested else Congestion.NOM
        return CongestionNotice(ofport, state, backlog, time.monotonic_ns())

    def crossed(self, interfaces: Iterable[int]) -> list[int]:
        """Those of the interfaces, whose queues have crossed a threshold, that are ports of this bridge."""
        ofports = self.numbers()
        return [ofports[ifindex] for ifindex in interfaces if ifindex in ofports]

    def dropped(self, packets: Iterable[DropRecord]) -> list[tuple[int, bytes, int]]:
        """Those of the dropped packets that ports of this bridge have dropped: port, the packet or its
        beginning, its length in bytes.
        """
        ofports = self.numbers()
        return [
            (ofports[packet.ifindex], packet.frame, packet.length)
            for packet in packets
            if packet.ifindex in ofports
        ]

    # Queues

    def queue(self, port: BridgePort) -> QueueState:
        """The queue of a port now. Its drops include those of the drop program, before the queue was full,
        and those of queue laws; those of a far queue are the segments that came late.
        """
        state = self.queues.state(port.ifindex)
        if port.far is not None:
            return state._replace(drops=int(self.window.port_state(port.ifindex).lost_above))
        by_laws = int(self.queue_laws.counts(port.ifindex).dropped)
        others = self.drops.dropped_before_full(port.ifindex) + by_laws
        return state._replace(drops=state.drops + others) if others else state

    def hidden_queue(self, port: BridgePort) -> HiddenQueue:
        """What is known of the queue that a far queue stands for."""
        found = self.host.far.hidden(port.ifindex)
        return HiddenQueue(
            port=port.ofport,
            why=found.why,
            standing=found.standing,
            mean=found.mean,
            line=self.line_of(port),
            rate=found.rate,
            peak=max(found.peak, found.peak_before),
            excess_ns=found.excess_ns,
            samples=found.samples,
        )

    def queue_limits(self, port: BridgePort) -> QueueLimits:
        """Buffer and rate of a port; the link's own speed where no qdisc limits it. Each of several transmit
        queues has these limits, or an equal part of the link's speed.
        """
        limits = self.queues.limits(port.ifindex)
        if limits.rate or port.far is not None:
            return limits
        rate = port.speed // 8 // max(1, limits.queues)
        return dataclasses.replace(limits, rate=rate)

    def limits_of(self, port: int) -> QueueLimits:
        """The same, by OpenFlow number."""
        return self.queue_limits(self._ports[port])

    def set_queue_limits(self, limits: dict[int, QueueLimits], read: list[int]) -> None:
        """Store the ``limits`` that were read of interfaces ``read``; those without an entry have none."""
        judged = dict(limits)
        for ifindex in read:
            found = limits.get(ifindex)
            if ifindex in self.window.slots and not self._set_queues(ifindex, found.queues if found else 0):
                reason = "there is no room for its transmit queues: raise [agent] ports"
                judged[ifindex] = QueueLimits(found.kind if found else "", 0, 0, reason, measured=False)
        self.queues.set_limits(judged, read)

    def _set_queues(self, ifindex: int, count: int) -> bool:
        """A port has that number of transmit queues with a qdisc each (0: one for all). Returns False if
        there is no room for them.
        """
        try:
            if self.window.set_queues(ifindex, count):
                self.queue_laws.remove(ifindex)
                self._stop_turns(ifindex)
                ids = self.window.ids(ifindex)
                self.queues.set_queues(ifindex, ids if count else ())
        except BpfError as error:
            log.debug("transmit queues of interface %d: %s", ifindex, error)
            self.window.set_queues(ifindex, 0)
            self.queues.set_queues(ifindex, ())
            return False
        return True

    def tx_queues(self, port: BridgePort) -> list[QueueState]:
        """The transmit queues of a port with several, in order; of another port none."""
        return self.queues.tx_states(port.ifindex)

    def silent_queues(self, now_ns: int) -> dict[int, int]:
        """As :meth:`fairq_ryu.agent.programs.queue.QueueProgram.silent`: by interface index."""
        ofports = self.numbers()
        return {known: last for known, last in self.queues.silent(now_ns).items() if known in ofports}

    def correct_backlogs(self, silent: dict[int, int], read_ns: int, found: dict[int, int]) -> list[int]:
        """The qdiscs of these :meth:`silent_queues` were read at ``read_ns`` or later; ``found``: their
        backlogs. Returns the ports whose queues have missed events.
        """
        ofports = self.numbers()
        return [
            ofports[ifindex]
            for ifindex, size in found.items()
            if ifindex in ofports and self.queues.correct(ifindex, silent[ifindex], read_ns, size)
        ]

    def restart_peaks(self) -> None:
        """Let all peaks start again from the present backlog. Other bridges keep theirs."""
        self.queues.restart_peaks(self.number)

    def histogram(self, port: BridgePort) -> list[tuple[int, int, int]]:
        """Time spent at each depth: ``(lowest, highest, ns)`` for the depths that were seen, in bytes."""
        return self.queues.histogram(port.ifindex)

    # Flows

    def port_state(self, port: BridgePort) -> Any:
        """The port's counters: an ``fq_port`` (see ``layout.h``)."""
        return self.window.port_state(port.ifindex)

    def unanswered(self, port: BridgePort) -> Unanswered:
        """The flows whose data leaves by the port, and whose ACKs leave by no port of the host."""
        return self.window.unanswered(port.ifindex)

    def active_flows(self, port: BridgePort) -> int:
        """Flows without a rule of their own whose data left by the port within the activity timeout."""
        unqueued = self.queues.is_unqueued(port.ifindex)
        return self.window.active_flows(port.ifindex, _UNQUEUED_MAX_AGE_NS if unqueued else 0)

    def flow_records(self, idle_ms: int, ports: list[BridgePort]) -> list[bytes]:
        """Records of every flow that leaves by ``ports`` and was not silent for ``idle_ms`` (0: of every such
        flow), encoded, in parts that fit in a message each.
        """
        return self.window.flow_records(idle_ms, {port.ifindex: port.ofport for port in ports})

    def segment_state(self, key: FlowKey) -> SegmentState:
        """The last segment of one direction of a flow, which may have left by another bridge of the host."""
        return self.window.segment_state(key, self._everywhere())

    def send_frame(self, port: int, frame: bytes) -> bool:
        """Send a frame out of a port, through its programs and its queue. False if it could not be sent."""
        owner, number = self._owner(port)
        known = owner.ports.get(number)
        return known is not None and known.far is None and self.host.frames.send(known.name, frame, _SENT)

    def untagged_vlan(self, port: int) -> int:
        """The VLAN of frames that have no tag at a port; 0: none."""
        owner, number = self._owner(port)
        return owner._untagged.get(number, 0)

    def flow_changes(self, wanted: ChangeRequest) -> Changes:
        """The changes of flow records that a controller asks for, as one message."""
        return self.window.flow_changes(self.changes, wanted, self.numbers())

"""The link to a connected agent: requests to it, readings and partial replies from it.

The one place that sends to agents: what is to be sent, the methods of a link and of its parts return, and
:meth:`AgentLink.send` sends it. Exceptions are barriers and requests for copies of segments
(:mod:`~fairq_ryu.control.agents.agent_copies`), and what an agent is sent before it has described itself:
:class:`~fairq_ryu.control.sender.Sender` sends those.
Bounded: one request for queues is under way at a time, and one object is kept for each port
(:mod:`~fairq_ryu.control.agents.agent_port`). Requests for flow records are in
:mod:`~fairq_ryu.control.agents.record_requests`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import (
    deadlines,
    flow_priorities,
    flowmod,
    hidden_queue,
    oxm,
    port_settings,
    queue_depth,
    segment_counts,
    segment_state,
    waking,
)
from fairq_ryu.channel.description import Capability, Description
from fairq_ryu.channel.segment_counts import SegmentCounts
from fairq_ryu.channel.segment_state import MAX_KEYS
from fairq_ryu.control.agents.agent_drops import AgentDrops
from fairq_ryu.control.agents.agent_far_queues import AgentFarQueues
from fairq_ryu.control.agents.agent_modes import AgentModes
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.control.agents.agent_queue_laws import AgentQueueLaws
from fairq_ryu.control.agents.agent_window_laws import AgentWindowLaws
from fairq_ryu.control.agents.record_requests import RecordRequests
from fairq_ryu.control.reports.counters import ROUND_TRIPS, Histogram, Peak
from fairq_ryu.far_queue import is_far
from fairq_ryu.model import FlowKey, PortKey, RuleChange
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.packet.tcp_build import Addressing

T = TypeVar("T")
_QUEUE_XID = 0xFA17
# All ports of a switch are read at least this often, seconds.
_ALL_PORTS_INTERVAL = 0.25
# A reply that does not come within this many seconds is no longer waited for.
_REPLY_TIMEOUT = 1.0


class AgentLink:
    """One agent. Times in seconds."""

    def __init__(self, datapath: Any, about: Description) -> None:
        self.datapath = datapath
        self.dpid = oxm.bridge_dpid(datapath.id)
        self.ports = AgentPorts()
        self.modes = AgentModes(datapath, self.ports, about.bridge)
        self.unifies_scales = Capability.UNIFIES_SCALES in about.capabilities
        self.drops = AgentDrops(datapath, self.ports, Capability.DROP_REPORTS in about.capabilities)
        self.window_laws = AgentWindowLaws(datapath, self.ports)
        self.queue_laws = AgentQueueLaws(datapath, self.ports)
        self.far_queues = AgentFarQueues(datapath)
        self.poll_now = hub.Event()  # set: an idle poll loop reads the queues at once
        self._queues_requested_at: float | None = None
        self._all_ports_requested_at = 0.0
        self._all_queues_request = self._pack(int(ofp.OFPP_ANY))
        self.port_settings = port_settings.Assembly()
        self.flow_records = RecordRequests(datapath, self.ports)
        self._counts: SegmentCounts | None = None  # as it has reported them last
        self._counts_requested_at = self._hidden_requested_at = 0.0
        # Busy ports whose law runs in the switch, whether all busy ones are such, and flow records that the
        # agent reports again and again: those of flows that send.
        self.switch_laws = self.records = 0
        self.only_switch_laws = False
        # Counters. A round trip is from a request for queues to the moment when its reply is handled,
        # seconds; flows_unscaled are directions whose handshake the agent has not seen.
        self.round_trip = Histogram(ROUND_TRIPS)
        self.unanswered = 0
        self.rule_messages = 0
        self.flows_unscaled: int | None = None

    @property
    def named(self) -> list[int]:
        """The numbers of the ports whose names the agent lists."""
        return [number for number, port in self.ports.items() if port.name is not None]

    def name(self, number: int) -> str:
        """The name of a port's interface; "" if it is not known."""
        port = self.ports.get(number)
        return (port.name or "") if port is not None else ""

    def send(self, messages: Iterable[Message]) -> None:
        """Send messages in their order."""
        for message in messages:
            self.datapath.send_msg(message)

    # Rules

    def clear_rules(self) -> list[Message]:
        """Remove all rules and laws."""
        return [self.queue_laws.begin(), self.window_laws.begin(), flowmod.clear(self.datapath)]

    def change_rule(self, change: RuleChange, lease: int) -> list[Message]:
        """Install, change or remove a window rule. The law that a rule refers to comes before the rule, if
        the agent does not have it; a law is deleted after the rule that referred to it.
        """
        self.rule_messages += 1
        rule = change.rule
        messages = [] if rule is None else self.window_laws.ensure(rule)
        if change.target.flow is None and rule is not None and rule.law is not None:
            messages.append(self.window_laws.rule_message(change, rule, lease))
        else:
            messages.append(flowmod.window_rule(self.datapath, change, lease))
            if change.target.flow is None:
                messages += self.window_laws.end(change.target.port.port)
        return messages

    # Queues

    def request_queues(self, now: float) -> None:
        """Request queue depths, unless a reply is under way. The request of a port is packed only once, and
        sent here: the time of the request counts.
        """
        if self._queues_requested_at is not None:
            if now - self._queues_requested_at <= _REPLY_TIMEOUT:
                return
            self.unanswered += 1
        self._queues_requested_at = now
        number = self._port_to_read(now)
        if number is None:
            request = self._all_queues_request
        else:
            port = self.ports[number]
            request = port.queue_request = port.queue_request or self._pack(number)
        self.datapath.send(request)

    def _pack(self, number: int) -> bytes:
        message = queue_depth.request(self.datapath, number)
        message.set_xid(_QUEUE_XID)
        message.serialize()
        return bytes(message.buf)

    def queue_reply_complete(self, now: float) -> None:
        """The last part of a reply has come."""
        if self._queues_requested_at is not None:
            self.round_trip.observe(max(0.0, now - self._queues_requested_at))
        self._queues_requested_at = None

    def replace_reading(self, record: queue_depth.QueueDepth, now: float) -> queue_depth.QueueDepth | None:
        """Store the reading of a queue. Returns the previous one."""
        port = self.ports[record.port]
        before, port.depth = port.depth, record
        if port.peak is None:
            port.peak = Peak(now)
        port.peak.note(record.peak, now)
        port.peak_since_taken = max(port.peak_since_taken, record.peak)
        return before

    def request_hidden_queues(self, interval: float, now: float) -> list[Message]:
        """Request what is known of the hidden queues of far queues, if there are any, unless that was done
        within the ``interval``.
        """
        if now - self._hidden_requested_at < interval or not any(map(is_far, self.ports)):
            return []
        self._hidden_requested_at = now
        return [hidden_queue.request(self.datapath)]

    def take_peak(self, number: int) -> int:
        """The longest queue of a port since the last call, bytes; 0 if none was read since."""
        port = self.ports.get(number)
        if port is None:
            return 0
        found, port.peak_since_taken = port.peak_since_taken, 0
        return found

    @property
    def governed(self) -> list[PortKey]:
        """The ports with a queue to govern."""
        read = ((number, port.depth) for number, port in self.ports.items() if port.depth is not None)
        return [PortKey(self.dpid, number) for number, depth in read if self.governs(depth)]

    def governs(self, record: queue_depth.QueueDepth) -> bool:
        """Whether a queue is governed: its size is known."""
        return bool(record.buffer)

    def may_govern(self, number: int) -> bool:
        """Whether the queue of a port is governed. True if nothing is known of it yet."""
        port = self.ports.get(number)
        return port is None or port.depth is None or self.governs(port.depth)

    def _port_to_read(self, now: float) -> int | None:
        """The port with a governed queue, if there is only one; otherwise all ports (None). All ports also
        once in :data:`_ALL_PORTS_INTERVAL`, because queues are added and removed.
        """
        governed = self.governed
        if len(governed) == 1 and now - self._all_ports_requested_at < _ALL_PORTS_INTERVAL:
            return governed[0].port
        self._all_ports_requested_at = now
        return None

    def port_removed(self, number: int) -> list[Message]:
        """The agent does not watch a port any more. One that is added again is told everything again."""
        messages = [*self.window_laws.end(number), *self.queue_laws.end(number)]
        self.ports.pop(number, None)
        return messages

    # Turns of new connections

    def set_deadlines(self, wanted: Sequence[deadlines.HandshakeDeadline]) -> list[Message]:
        """Let the handshakes of connections have their turns by these deadlines."""
        parts = _parts(wanted, deadlines.MAX_CONNECTIONS)
        return [deadlines.set_deadlines(self.datapath, part) for part in parts]

    # Tenants

    def set_priorities(self, wanted: Sequence[flow_priorities.FlowPriority]) -> list[Message]:
        """Let flows have shares by these priorities within their tenants."""
        parts = _parts(wanted, flow_priorities.MAX_FLOWS)
        return [flow_priorities.set_priorities(self.datapath, part) for part in parts]

    def forget_priorities(self) -> list[Message]:
        """No flow has a priority any more that was set through this bridge."""
        return [flow_priorities.set_priorities(self.datapath, ())]

    # Segments that the agent sends by itself

    def request_counts(self, interval: float, now: float) -> list[Message]:
        """Request the counts of the segments that the agent sends by itself, unless that was done within the
        ``interval``.
        """
        if now - self._counts_requested_at < interval:
            return []
        self._counts_requested_at = now
        return [segment_counts.request(self.datapath)]

    def replace_counts(self, counts: SegmentCounts) -> SegmentCounts:
        """Store the counts that an agent has reported. Returns by how much they have grown in this
        connection: what was counted before the first reply is not returned.
        """
        before, self._counts = self._counts or counts, counts
        return SegmentCounts(
            {name: count - before.losses.get(name, 0) for name, count in counts.losses.items()},
            {name: count - before.sent.get(name, 0) for name, count in counts.sent.items()},
            counts.stored,
        )

    @property
    def stored_losses(self) -> int:
        """The losses that the agent can still recover."""
        return self._counts.stored if self._counts is not None else 0

    def wake(self, flows: Sequence[Addressing]) -> list[Message]:
        """Let the agent end the pauses of flows, in this order; the keys are the directions of their ACKs. To
        be sent after the rules that end the pauses.
        """
        return [waking.wake(self.datapath, part) for part in _parts(flows, waking.MAX_FLOWS)]

    def request_port_settings(self) -> list[Message]:
        """Ask for the settings of all ports; the agent sends them again whenever they change."""
        return [port_settings.request(self.datapath)]

    def request_segments(self, keys: Sequence[FlowKey]) -> list[Message]:
        """Request the last segments of single directions, with as many requests as needed."""
        return [segment_state.request(self.datapath, part) for part in _parts(keys, MAX_KEYS)]


def _parts(wanted: Sequence[T], most: int) -> list[Sequence[T]]:
    """The same in their order, ``most`` of them in a message."""
    return [wanted[start : start + most] for start in range(0, len(wanted), most)]

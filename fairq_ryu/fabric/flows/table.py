"""The flow table: one entry for each TCP connection, updated from copies of SYN, FIN and RST and from the
flow records of the switches.

Pure. Every method returns the effects on ports, as events: directions of connections whose data starts or
stops leaving through a port. Times are seconds of one monotonic clock.

The table combines two sources. A *copy* of a segment is made where the segment enters the network; it arrives
immediately, but may be lost, and copies of different switches may arrive in the wrong order (see
:mod:`~fairq_ryu.fabric.flows.reorder_buffer`). A *record* is sent by each switch for the flows it has seen,
about once a second or when they change (see :mod:`~fairq_ryu.fabric.flows.reconcile`).

Connections are identified by their addresses and ports only: if two VLANs use the same addresses, two
connections with the same ports share an entry.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from fairq_ryu.fabric.flows.connection import (
    DEFAULT_MSS,
    Connection,
    CopiedSegment,
    Direction,
    FlowEvent,
    FlowState,
    SeenFlow,
    answers,
    is_after,
)
from fairq_ryu.fabric.flows.entries import SYN_TIMEOUT, Entries
from fairq_ryu.fabric.flows.flow_ports import FlowPorts
from fairq_ryu.fabric.flows.listing import LAG
from fairq_ryu.fabric.flows.parked_syns import ParkedSyns
from fairq_ryu.fabric.flows.reconcile import GRACE
from fairq_ryu.fabric.flows.reorder_buffer import ReorderBuffer, is_answer
from fairq_ryu.fabric.flows.switch_reports import REMOVED_PER_SLICE, SwitchReports
from fairq_ryu.model import FlowKey, FlowPath, PortKey, TcpSegment, new_tuple

__all__ = [
    "DEFAULT_MSS",
    "GRACE",
    "IDLE_TIMEOUT",
    "LAG",
    "SYN_TIMEOUT",
    "Connection",
    "Direction",
    "FlowEvent",
    "FlowState",
    "FlowTable",
    "SeenFlow",
]

IDLE_TIMEOUT = 60.0
"""A connection is removed when its switch has seen no packet of it for this long, seconds. With its next
packet it is there again: this only bounds what is kept of connections whose end nobody has seen.
"""

# Connections that are looked at in a slice of work that may be long.
_SEEN_PER_SLICE = 400


class FlowTable(SwitchReports):
    """All connections. What switches report of their flows is in the base class.

    ``idle_timeout``: an idle connection is removed after this time. ``closed_timeout``: the entry of a
    connection that has ended is kept for this time, without being counted. Both in seconds. ``capacity``: the
    maximum number of entries; a full table removes the connection that was closed first, or else the oldest
    unanswered SYN. ``refused`` counts connections for which there was still no room.

    A port through which many unanswered SYNs have entered is *crowded*: its further SYNs are parked until
    they are answered, see :mod:`~fairq_ryu.fabric.flows.parked_syns`.

    Raises ValueError if ``capacity`` is less than 1, or ``closed_timeout`` not more than :data:`LAG`.
    """

    def __init__(self, idle_timeout: float, capacity: int = 1_000_000, closed_timeout: float = 2.0) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        if closed_timeout <= LAG:
            raise ValueError(f"closed_timeout must be more than {LAG} s, not {closed_timeout}")
        self.idle_timeout = idle_timeout
        self._entries = Entries(capacity, closed_timeout)
        self._reorder_buffer = ReorderBuffer()
        self._parked = ParkedSyns()

    def __len__(self) -> int:
        return len(self._entries.all)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._entries.all.values()))

    @property
    def open(self) -> int:
        """The number of connections that have not ended."""
        return self._entries.open

    @property
    def refused(self) -> int:
        """The number of connections for which there was no room."""
        return self._entries.refused

    @property
    def opened(self) -> int:
        """The number of connections that were ever entered."""
        return self._entries.opened

    @property
    def parked(self) -> int:
        """The number of SYNs that are parked."""
        return len(self._parked)

    @property
    def states(self) -> dict[FlowState, int]:
        """The number of connections in each state."""
        return self._entries.states

    def get(self, flow: FlowKey) -> Connection | None:
        """The connection that a direction belongs to; it may have ended just now."""
        return self._entries.by_flow.get(flow)

    # Copies of segments

    def is_foreign(self, segment: TcpSegment) -> bool:
        """Whether this is a SYN or SYN-ACK that does not belong to the open connection with its ports:
        anybody may have sent it.
        """
        connection = self.get(segment.key) if segment.syn else None
        if connection is None or connection.state in (FlowState.SYN_SEEN, FlowState.CLOSED):
            return False
        return connection.directions[segment.key].isn not in (None, segment.seq)

    def parks(self, segment: TcpSegment, in_port: PortKey) -> bool:
        """Whether :meth:`segment` would park this SYN: then it needs no path yet."""
        opens = segment.syn and not segment.ack and not segment.rst
        return opens and self._entries.crowded(in_port) and self.get(segment.key) is None

    def segment(
        self, segment: TcpSegment, in_port: PortKey, path: FlowPath | None, now: float
    ) -> list[FlowEvent]:
        """A SYN, FIN or RST was copied at its sender's port, ``in_port``.

        ``path``: the path of the segment's direction; None: not known. A path that does not lead back to
        ``in_port`` is from before its host moved, and is ignored.
        """
        if path is not None and path.backward[-1:] != (in_port,):
            path = None
        return self._copied(new_tuple(CopiedSegment, (segment, in_port, path, None)), now)

    def left(self, segment: TcpSegment, out_port: PortKey, now: float) -> list[FlowEvent]:
        """A SYN, FIN or RST was copied where it left a switch, by ``out_port``: its direction is counted
        there. Each switch on its way may copy it.
        """
        return self._copied(CopiedSegment(segment, None, None, out_port), now)

    def _copied(self, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        if segment.rst:
            return self._rst(arrival, now)
        if segment.syn and segment.ack:
            return self._syn_ack(arrival, now)
        if segment.syn:
            events = self._syn(arrival, now)
            for answer in self._reorder_buffer.take(segment, now):
                events += self._copied(answer, now)
            return events
        return self._fin(arrival, now) if segment.fin else []

    def _syn(self, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None:
            if self._entries.crowded(arrival.in_port):
                self._parked.park(segment, arrival.in_port, now, arrival.out_port)
                return []
            return self._open(arrival, now)
        own = connection.directions[segment.key]
        if connection.state is FlowState.CLOSED:
            if own.isn == segment.seq:
                return []  # late
            # RFC 6191: a newer number ends TIME-WAIT; after a reset there is no TIME-WAIT. Any other SYN
            # counts only when it is answered.
            if own.isn is None or own.reset or is_after(segment.seq, own.isn):
                return self._open_again(connection, arrival, now)
        elif own.isn is None and _awaits_syn(connection, now):
            own.announce(segment)
            if connection.opener is None and segment.key == connection.forward:
                connection.opener = arrival.in_port
            connection.copied_at = now
            self._entries.note_segment(connection, now)
            return self._place(connection, arrival, now)
        elif own.isn == segment.seq:  # a retransmission
            self._entries.note_segment(connection, now)
            return self._place(connection, arrival, now)
        elif connection.state is FlowState.SYN_SEEN:
            self._entries.note_segment(connection, now)
        connection.pending = arrival
        return []

    def _open(self, arrival: CopiedSegment, now: float, ports_reused: bool = False) -> list[FlowEvent]:
        key = arrival.segment.key
        connection = Connection.new(key, FlowState.SYN_SEEN, now, now)
        connection.opener = arrival.in_port
        connection.copied_at, connection.ports_reused = now, ports_reused
        connection.directions[key].announce(arrival.segment)
        events = self._entries.add(connection)
        return [] if events is None else events + self._place(connection, arrival, now)

    def _open_again(self, old: Connection, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        return self._entries.remove(old) + self._open(arrival, now, ports_reused=True)

    def _syn_ack(self, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        events: list[FlowEvent] = []
        if connection is None:
            events = self._open_parked(arrival, now)
            connection = self.get(segment.key)
        if connection is None:
            self._reorder_buffer.keep(arrival, now)
            return events
        pending = _answered_pending(connection, segment)
        if pending is not None:
            # The ports were reused before the end of the old connection was seen.
            events += self._open_again(connection, pending, now)
            connection = self._entries.by_flow[segment.key]
        own, opener = connection.directions[segment.key], connection.directions[segment.key.reversed]
        if opener.isn is None or not answers(segment, opener.isn, opener.carried):
            self._reorder_buffer.keep(arrival, now)
            return events
        if connection.state is FlowState.CLOSED:
            if own.isn is not None or not own.reset:
                return []  # late
            # The SYN is accepted after all: the reset was forged.
            for flow in connection.directions:
                events += self._entries.revive(connection, flow, now)
        own.announce(segment)
        connection.copied_at = connection.last_seen = now
        if connection.state is FlowState.SYN_SEEN:
            self._entries.set_state(connection, FlowState.ESTABLISHED)
        return events + self._place(connection, arrival, now)

    def _open_parked(self, answer: CopiedSegment, now: float) -> list[FlowEvent]:
        """Open the connection of the parked SYN that a SYN-ACK answers."""
        syn = self._parked.take(answer.segment.key.reversed)
        if syn is None:
            return []
        if not answers(answer.segment, syn.segment.seq, syn.segment.payload):
            self._parked.park(syn.segment, syn.in_port, now, syn.out_port)
            return []
        # The path is set with the answer.
        return self._open(syn, now)

    def _fin(self, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None or connection.state is FlowState.CLOSED:
            self._reorder_buffer.keep(arrival, now)
            # A FIN ends its direction also after a reset, which may have been forged.
            return [] if connection is None else self._entries.finish(connection, segment.key, now)
        if self._is_late(connection, segment, now):
            return []
        connection.last_seen = now
        events = self._entries.finish(connection, segment.key, now)
        return events + self._place(connection, arrival, now)

    def _rst(self, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None or not self._may_reset(connection, segment, now):
            self._reorder_buffer.keep(arrival, now)
            return []
        return self._entries.reset(connection, now)

    def _may_reset(self, connection: Connection, segment: TcpSegment, now: float) -> bool:
        """Whether a reset may belong to this connection. The receive windows are not known here, so only the
        numbers of the handshake are checked (RFC 9293, sections 3.5.2 and 3.10.7.3).
        """
        opener = connection.directions[segment.key.reversed]
        waiting = connection.state is FlowState.SYN_SEEN
        if is_answer(segment):
            refused = waiting and opener.isn is not None and answers(segment, opener.isn, opener.carried)
            return refused or _answered_pending(connection, segment) is not None
        if waiting and segment.ack and opener.isn is not None:
            return is_after(segment.ack_number, opener.isn)
        return not self._is_late(connection, segment, now)

    def _is_late(self, connection: Connection, segment: TcpSegment, now: float) -> bool:
        """Whether a segment belongs to the previous connection with the same ports: its number is before the
        first one of this connection. Valid for a young connection only, because numbers wrap.
        """
        if not connection.ports_reused or now - connection.since > self._entries.closed_timeout:
            return False
        isn = connection.directions[segment.key].isn
        return isn is not None and is_after(isn, segment.seq)

    def _place(self, connection: Connection, arrival: CopiedSegment, now: float) -> list[FlowEvent]:
        """Update the ports of a connection from the port and the path of a segment."""
        key, path = arrival.segment.key, arrival.path
        if arrival.out_port is not None:
            return self._flow_ports.depart(connection, key, arrival.out_port, now)
        if path is not None and path != connection.path_for(key):
            return self._flow_ports.route(connection, key, path, now)
        if path is None and arrival.in_port is not None:
            return self._flow_ports.locate_sender(connection, key, arrival.in_port, now)
        return []

    @property
    def _flow_ports(self) -> FlowPorts:
        return self._entries.flow_ports

    # Inputs from the controller and from switches

    def repath(self, key: FlowKey, path: FlowPath, now: float) -> list[FlowEvent]:
        """The connection takes another path (``path`` for the direction ``key``). No effect if the connection
        is not known or has ended.
        """
        connection = self.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            return []
        return self._flow_ports.route(connection, key, path, now)

    def removed(self, key: FlowKey, now: float) -> list[FlowEvent]:
        """A switch has removed its rule for a direction: the rule was idle, or a FIN has passed.

        This alone does not end a connection, because its segments may use other rules or another path. The
        connection has ended if this was reported of both directions (a direction that has ended needs no
        rule), no segment was seen since, and no switch has a record of it. Records have precedence.
        """
        connection = self.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            return []
        connection.directions[key].silent_at = now
        changed_at = max(connection.last_seen, connection.path_since)
        if not all(each.closed or each.silent_at >= changed_at for each in connection.directions.values()):
            return []
        listed = now - connection.listed_at <= GRACE
        listed = listed or self._entries.listed(connection, now - GRACE, now - self.idle_timeout)
        return [] if listed else self._entries.remove(connection)

    def forget_port(self, port: PortKey) -> list[FlowEvent]:
        """A port was removed: no flow is counted at it. Its connections stay until records show their end."""
        return self._forget(port.dpid, lambda other: other == port)

    def forget_switch(self, dpid: int) -> list[FlowEvent]:
        """A switch was removed with all its ports."""
        self._entries.reporting_switches.discard(dpid)
        self._entries.listings.pop(dpid, None)
        self._flow_ports.forget_switch(dpid)
        return self._forget(dpid, lambda port: port.dpid == dpid)

    def hand_over(self, dpid: int) -> list[FlowEvent]:
        """Another controller knows the connections of a switch from now on. Those that are at no other switch
        are removed; they have not ended.
        """
        events: list[FlowEvent] = []
        for flow in self._flow_ports.flows_of(dpid):
            connection = self._entries.by_flow.get(flow)
            if connection is None:
                continue  # it was removed with its other direction
            directions = connection.directions.values()
            if {port.dpid for each in directions for port in each.ports} <= {dpid}:
                events += self._entries.remove(connection)
            else:
                events += self._flow_ports.remove_ports(connection, lambda port: port.dpid == dpid)
        return events + self.forget_switch(dpid)

    def switches(self) -> set[int]:
        """The switches of which anything is kept, by dpid."""
        entries = self._entries
        return entries.reporting_switches | entries.listings.keys() | self._flow_ports.switches()

    def has_flows(self, dpid: int) -> bool:
        """Whether a connection is counted at any port of a switch."""
        return bool(self._flow_ports.flows_of(dpid))

    def _forget(self, dpid: int, gone: Callable[[PortKey], bool]) -> list[FlowEvent]:
        return [
            event
            for flow in self._flow_ports.flows_of(dpid)
            for event in self._flow_ports.remove_ports(self._entries.by_flow[flow], gone)
        ]

    def drop_expired(self, now: float) -> Iterator[list[FlowEvent]]:
        """Remove closed and unanswered connections whose time limit has passed, and parked SYNs. Each item is
        a slice of the work, with its events: other work may be done between two.
        """
        self._reorder_buffer.expire(now)
        self._parked.expire(now - SYN_TIMEOUT)
        removed = REMOVED_PER_SLICE
        while removed == REMOVED_PER_SLICE:
            removed, events = self._entries.drop_expired(now, REMOVED_PER_SLICE)
            yield events

    def drop_idle(self, now: float) -> Iterator[list[FlowEvent]]:
        """Remove idle connections, in slices as :meth:`drop_expired`."""
        events: list[FlowEvent] = []
        removed = 0
        for turn, connection in enumerate(self, 1):
            waits = connection.state in (FlowState.CLOSED, FlowState.SYN_SEEN)
            known = self._entries.all.get(connection.forward) is connection  # it may have ended since
            if known and not waits and now - connection.last_seen > self.idle_timeout:
                events += self._entries.remove(connection)
                removed += 1
            if removed == REMOVED_PER_SLICE or turn % _SEEN_PER_SLICE == 0:
                yield events
                events, removed = [], 0
        yield events

    def expire(self, now: float) -> list[FlowEvent]:
        """All of :meth:`drop_expired` and :meth:`drop_idle` at once."""
        slices = itertools.chain(self.drop_expired(now), self.drop_idle(now))
        return [event for events in slices for event in events]


def _awaits_syn(connection: Connection, now: float) -> bool:
    """Whether the SYN of this direction may still arrive: in a simultaneous open (RFC 9293, section 3.5), or
    if a record of the connection was handled before the copy of its SYN.
    """
    record_first = connection.copied_at < connection.since and now - connection.since <= GRACE
    return connection.state is FlowState.SYN_SEEN or record_first


def _answered_pending(connection: Connection, segment: TcpSegment) -> CopiedSegment | None:
    """The pending SYN of a connection, if the segment answers it."""
    pending = connection.pending
    if pending is None or pending.segment.key != segment.key.reversed:
        return None
    syn = pending.segment
    return pending if answers(segment, syn.seq, syn.payload) else None

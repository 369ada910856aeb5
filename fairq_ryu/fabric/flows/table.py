"""The flow table: one entry a TCP connection, kept true from copies of SYN, FIN and RST and from the
switches' own flow records.

Pure. Every method returns what it means for the ports: directions of connections whose data starts
or stops leaving by a port. Times are seconds of any one clock that does not go back.

Two sources are weighed against each other. A *copy* of a segment is made where it enters the network; it
comes at once, but may be lost, and copies from different switches may come in the wrong order (see
:mod:`~fairq_ryu.fabric.flows.reorder_buffer`). A *record* is told by each switch about once a second for
every flow it has seen (see :mod:`~fairq_ryu.fabric.flows.reconcile`).

Connections are known by their addresses and ports only: in two VLANs that use the same addresses, two
connections with the same ports share an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fairq_ryu.fabric.flows.connection import (
    DEFAULT_MSS,
    Arrival,
    Connection,
    Direction,
    FlowEvent,
    FlowState,
    SeenFlow,
    answers,
    is_after,
)
from fairq_ryu.fabric.flows.entries import SYN_TIMEOUT, Entries
from fairq_ryu.fabric.flows.flow_ports import Placement
from fairq_ryu.fabric.flows.reconcile import GRACE, LAG, reconcile
from fairq_ryu.fabric.flows.reorder_buffer import EarlyAnswers, is_answer
from fairq_ryu.model import FlowKey, FlowPath, PortKey, TcpSegment

__all__ = [
    "DEFAULT_MSS",
    "GRACE",
    "LAG",
    "SYN_TIMEOUT",
    "Connection",
    "Direction",
    "FlowEvent",
    "FlowState",
    "FlowTable",
    "SeenFlow",
]


class FlowTable:
    """All connections.

    ``idle_timeout``: a connection silent for longer is over. ``closed_timeout``: one that has ended stays
    listed, counted nowhere, for so long. Seconds both. ``capacity``: so many entries at most; when they
    are all taken, the one closed longest makes room, or else the SYN that has waited longest for its
    answer. ``refused`` counts connections for which there was no room even so.

    Raises ValueError if ``capacity`` is less than 1, or ``closed_timeout`` not more than :data:`LAG`.
    """

    def __init__(self, idle_timeout: float, capacity: int = 1_000_000, closed_timeout: float = 2.0) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        if closed_timeout <= LAG:
            raise ValueError(f"closed_timeout must be more than {LAG} s, not {closed_timeout}")
        self.idle_timeout = idle_timeout
        self._entries = Entries(capacity, closed_timeout)
        self._early = EarlyAnswers()

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
    def states(self) -> dict[FlowState, int]:
        """The number of connections in each state."""
        return self._entries.states

    def get(self, flow: FlowKey) -> Connection | None:
        """The connection that a direction belongs to; it may have ended just now."""
        return self._entries.by_flow.get(flow)

    # Copies of segments

    def segment(
        self, segment: TcpSegment, in_port: PortKey, path: FlowPath | None, now: float
    ) -> list[FlowEvent]:
        """A SYN, FIN or RST was copied where it came in, at its sender's port.

        ``path`` is the one that this segment's direction takes; None if it is not known. A path that does
        not lead back to ``in_port`` is of before its host moved, and counts as not known.
        """
        if path is not None and path.backward[-1:] != (in_port,):
            path = None
        arrival = Arrival(segment, in_port, path)
        if segment.rst:
            return self._rst(arrival, now)
        if segment.syn and segment.ack:
            return self._syn_ack(arrival, now)
        if segment.syn:
            events = self._syn(arrival, now)
            for answer in self._early.take(segment, now):
                events += self.segment(*answer, now)
            return events
        return self._fin(arrival, now) if segment.fin else []

    def _syn(self, arrival: Arrival, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None:
            return self._open(arrival, now)
        own = connection.directions[segment.key]
        if connection.state is FlowState.CLOSED:
            if own.isn == segment.seq:
                return []  # late
            # RFC 6191: a newer number ends TIME-WAIT; a reset connection has none. Others must be answered.
            if own.isn is None or own.reset or is_after(segment.seq, own.isn):
                return self._open_again(connection, arrival, now)
        elif own.isn is None and _awaits_syn(connection, now):
            own.announce(segment)
            if connection.opener is None and segment.key == connection.forward:
                connection.opener = arrival.in_port
            connection.heard_at = now
            self._entries.awake(connection, now)
            return self._place(connection, arrival, now)
        elif own.isn == segment.seq:  # sent again
            self._entries.awake(connection, now)
            return self._place(connection, arrival, now)
        elif connection.state is FlowState.SYN_SEEN:
            self._entries.awake(connection, now)
        connection.pending = arrival
        return []

    def _open(self, arrival: Arrival, now: float, again: bool = False) -> list[FlowEvent]:
        key = arrival.segment.key
        connection = Connection.new(key, FlowState.SYN_SEEN, now, now)
        connection.opener = arrival.in_port
        connection.heard_at, connection.again = now, again
        connection.directions[key].announce(arrival.segment)
        events = self._entries.add(connection)
        return [] if events is None else events + self._place(connection, arrival, now)

    def _open_again(self, old: Connection, arrival: Arrival, now: float) -> list[FlowEvent]:
        return self._entries.remove(old) + self._open(arrival, now, again=True)

    def _syn_ack(self, arrival: Arrival, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None:
            self._early.keep(arrival, now)
            return []
        events: list[FlowEvent] = []
        pending = _answered_pending(connection, segment)
        if pending is not None:
            # The ports were used again before the end of the old connection was seen.
            events = self._open_again(connection, pending, now)
            connection = self._entries.by_flow[segment.key]
        own, opener = connection.directions[segment.key], connection.directions[segment.key.reversed]
        if opener.isn is None or not answers(segment, opener.isn):
            self._early.keep(arrival, now)
            return events
        if connection.state is FlowState.CLOSED:
            if own.isn is not None or not own.reset:
                return []  # late
            # It was never refused: the reset was forged.
            for flow in connection.directions:
                events += self._entries.revive(connection, flow, now)
        own.announce(segment)
        connection.heard_at = connection.last_seen = now
        if connection.state is FlowState.SYN_SEEN:
            self._entries.set_state(connection, FlowState.ESTABLISHED)
        return events + self._place(connection, arrival, now)

    def _fin(self, arrival: Arrival, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None or connection.state is FlowState.CLOSED:
            self._early.keep(arrival, now)
            # After a reset, which may have been forged, it is the end of its direction all the same.
            return [] if connection is None else self._entries.finish(connection, segment.key, now)
        if self._is_of_before(connection, segment, now):
            return []
        connection.last_seen = now
        events = self._entries.finish(connection, segment.key, now)
        return events + self._place(connection, arrival, now)

    def _rst(self, arrival: Arrival, now: float) -> list[FlowEvent]:
        segment = arrival.segment
        connection = self.get(segment.key)
        if connection is None or not self._may_reset(connection, segment, now):
            self._early.keep(arrival, now)
            return []
        return self._entries.reset(connection, now)

    def _may_reset(self, connection: Connection, segment: TcpSegment, now: float) -> bool:
        """Whether a reset may be of this connection. Windows are not known here, so what is checked is its
        place in a handshake (RFC 9293 sections 3.5.2 and 3.10.7.3).
        """
        opener = connection.directions[segment.key.reversed]
        waiting = connection.state is FlowState.SYN_SEEN
        if is_answer(segment):
            refused = waiting and opener.isn is not None and answers(segment, opener.isn)
            return refused or _answered_pending(connection, segment) is not None
        if waiting and segment.ack and opener.isn is not None:
            return is_after(segment.ack_number, opener.isn)
        return not self._is_of_before(connection, segment, now)

    def _is_of_before(self, connection: Connection, segment: TcpSegment, now: float) -> bool:
        """Late, of the last connection of these ports: a number from before this one's first. Only while
        that is young: after 2 GiB the numbers have wrapped.
        """
        if not connection.again or now - connection.since > self._entries.closed_timeout:
            return False
        isn = connection.directions[segment.key].isn
        return isn is not None and is_after(isn, segment.seq)

    def _place(self, connection: Connection, arrival: Arrival, now: float) -> list[FlowEvent]:
        """Where a segment came from, and where it goes, is where the connection is."""
        key, path = arrival.segment.key, arrival.path
        if path is None:
            return self._placement.sender_at(connection, key, arrival.in_port, now)
        if path == connection.path_for(key):
            return []
        return self._placement.route(connection, key, path, now)

    @property
    def _placement(self) -> Placement:
        return self._entries.placement

    # What the controller and the switches say

    def repath(self, key: FlowKey, path: FlowPath, now: float) -> list[FlowEvent]:
        """The connection takes this path from now on (``path`` for the direction ``key``). Nothing for a
        connection that is not known, or has ended.
        """
        connection = self.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            return []
        return self._placement.route(connection, key, path, now)

    def reconcile(self, dpid: int, seen: Iterable[SeenFlow], now: float) -> list[FlowEvent]:
        """A switch has told all flows it knows.

        Those that are news are added (they are older than the controller, or their SYN's copy was lost),
        ends that were missed are noted, and what the switch does not list leaves its ports. A connection
        that leaves by no port of any switch then is over. Closed and unanswered ones whose time has come
        are dropped.
        """
        events = reconcile(self._entries, dpid, seen, self.idle_timeout, now)
        return events + self._entries.drop_waiting(now)

    def removed(self, key: FlowKey, now: float) -> list[FlowEvent]:
        """A switch's own rule for a direction has ended, because nothing matched it for long, or because
        FIN had passed.

        A hint: the direction may go on by other rules, or elsewhere. But when the same was heard of both
        directions (one that has ended needs no rule), nothing was seen of the connection since, and no
        switch lists it, it is over. Where switches tell records, these decide.
        """
        connection = self.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            return []
        connection.directions[key].silent_at = now
        news = max(connection.last_seen, connection.path_since)
        silent = all(each.closed or each.silent_at >= news for each in connection.directions.values())
        listed = now - connection.listed_at <= GRACE
        return self._entries.remove(connection) if silent and not listed else []

    def forget_port(self, port: PortKey) -> list[FlowEvent]:
        """A port has gone: nothing leaves by it any more. The connections stay; records tell their end."""
        return self._forget(port.dpid, lambda other: other == port)

    def forget_switch(self, dpid: int) -> list[FlowEvent]:
        """A switch has gone, and all its ports with it."""
        self._entries.telling.discard(dpid)
        return self._forget(dpid, lambda port: port.dpid == dpid)

    def _forget(self, dpid: int, gone: Callable[[PortKey], bool]) -> list[FlowEvent]:
        return [
            event
            for flow in self._placement.on(dpid)
            for event in self._placement.take_out(self._entries.by_flow[flow], gone)
        ]

    def expire(self, now: float) -> list[FlowEvent]:
        """End what has been silent for too long, and forget what has ended."""
        self._early.expire(now)
        events = self._entries.drop_waiting(now)
        for connection in self:
            waits = connection.state in (FlowState.CLOSED, FlowState.SYN_SEEN)
            if not waits and now - connection.last_seen > self.idle_timeout:
                events += self._entries.remove(connection)
        return events


def _awaits_syn(connection: Connection, now: float) -> bool:
    """Simultaneous open (RFC 9293 section 3.5): the other side's SYN has crossed this one. Or a switch's
    record of the connection was handled before the copy.
    """
    told_first = connection.heard_at < connection.since and now - connection.since <= GRACE
    return connection.state is FlowState.SYN_SEEN or told_first


def _answered_pending(connection: Connection, segment: TcpSegment) -> Arrival | None:
    """The SYN that has waited on a live connection, if the segment answers it."""
    pending = connection.pending
    if pending is None or pending.segment.key != segment.key.reversed:
        return None
    return pending if answers(segment, pending.segment.seq) else None

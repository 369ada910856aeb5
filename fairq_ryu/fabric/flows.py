"""The flow table: one entry a TCP connection, kept true from copies of SYN, FIN and RST and from the
switches' own flow records.

Pure. Every method returns what it means for the ports: directions of connections whose data starts
or stops leaving by a port. Counts can never go wrong by repetition, because what is counted is set
membership: a direction is on a port, or it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from fairq_ryu.model import FlowInfo, FlowKey, PortKey, TcpSegment

DEFAULT_MSS = 1460
# A SYN that nobody answers for this long is no flow (Linux repeats its SYN after 1, 3 and 7 s).
SYN_TIMEOUT = 10.0
# Copies may be ahead of the records: an entry this young is not missed in them.
_GRACE = 2.0


class FlowState(StrEnum):
    """How far a connection is (both sides together; RFC 9293 section 3.3.2 in short)."""

    SYN_SEEN = "syn-seen"
    ESTABLISHED = "established"
    HALF_CLOSED = "half-closed"


class SeenFlow(NamedTuple):
    """One direction of a flow as a switch records it; ``idle`` in seconds, ``bytes`` of payload."""

    key: FlowKey
    port: PortKey
    closed: bool
    idle: float
    bytes: int
    wscale: int | None
    mss: int


class FlowEvent(NamedTuple):
    """A direction of a connection starts or stops leaving by a port."""

    started: bool
    port: PortKey
    flow: FlowInfo


@dataclass(slots=True)
class Direction:
    """One direction: what its sender announced, where its data leaves, what it has sent."""

    isn: int | None = None
    wscale: int | None = None
    mss: int = 0
    closed: bool = False
    ports: set[PortKey] = field(default_factory=set)
    bytes: int = 0


@dataclass(slots=True)
class Connection:
    """A connection; ``forward`` is the direction of the first SYN (or of the record that told of it)."""

    forward: FlowKey
    state: FlowState
    since: float
    last_seen: float
    directions: dict[FlowKey, Direction]
    # A SYN on a live connection, and the port it came in by: the old one counts until the new one is
    # answered (RFC 5961).
    pending: tuple[TcpSegment, PortKey] | None = None


class FlowTable:
    """All connections. ``idle_timeout`` in seconds."""

    def __init__(self, idle_timeout: float, capacity: int = 1_000_000) -> None:
        self._connections: dict[FlowKey, Connection] = {}
        self.idle_timeout = idle_timeout
        self.capacity = capacity
        self.refused = 0

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections.values()))

    def get(self, flow: FlowKey) -> Connection | None:
        """The connection that a direction belongs to."""
        return self._connections.get(flow.connection)

    def segment(
        self, segment: TcpSegment, in_port: PortKey, out_port: PortKey | None, now: float
    ) -> list[FlowEvent]:
        """A SYN, FIN or RST was copied from ``in_port``; ``out_port`` is where it leaves, if known."""
        connection = self.get(segment.key)
        if segment.rst:
            # A reset in answer to a SYN to a closed port ends it as well.
            return self._end(connection) if connection is not None else []
        if segment.syn and not segment.ack:
            return self._syn(connection, segment, in_port, out_port, now)
        if connection is None:
            return []
        connection.last_seen = now
        if segment.syn:
            return self._syn_ack(connection, segment, in_port, out_port, now)
        if segment.fin:
            return self._fin(connection, segment)
        return []

    def _syn(
        self,
        connection: Connection | None,
        segment: TcpSegment,
        in_port: PortKey,
        out_port: PortKey | None,
        now: float,
    ) -> list[FlowEvent]:
        if connection is None:
            if len(self._connections) >= self.capacity:
                self.refused += 1
                return []
            return self._open(segment, in_port, out_port, now)
        own = connection.directions[segment.key]
        peer = connection.directions[segment.key.reversed]
        if own.isn == segment.seq:
            connection.last_seen = now
            return []  # sent again
        if own.isn is None and connection.state is FlowState.SYN_SEEN and peer.isn is not None:
            # Simultaneous open: both sides' first SYNs crossed.
            self._note_syn(own, segment)
            connection.last_seen = now
            return self._place(connection, segment.key, in_port, out_port)
        if connection.state is FlowState.SYN_SEEN:
            return self._end(connection) + self._open(segment, in_port, out_port, now)
        connection.pending = segment, in_port
        return []

    def _open(
        self, segment: TcpSegment, in_port: PortKey, out_port: PortKey | None, now: float
    ) -> list[FlowEvent]:
        connection = Connection(
            forward=segment.key,
            state=FlowState.SYN_SEEN,
            since=now,
            last_seen=now,
            directions={segment.key: Direction(), segment.key.reversed: Direction()},
        )
        self._note_syn(connection.directions[segment.key], segment)
        self._connections[segment.key.connection] = connection
        return self._place(connection, segment.key, in_port, out_port)

    @staticmethod
    def _note_syn(direction: Direction, segment: TcpSegment) -> None:
        direction.isn, direction.wscale, direction.mss = segment.seq, segment.wscale, segment.mss

    def _syn_ack(
        self,
        connection: Connection,
        segment: TcpSegment,
        in_port: PortKey,
        out_port: PortKey | None,
        now: float,
    ) -> list[FlowEvent]:
        events: list[FlowEvent] = []
        if connection.pending is not None:
            syn, syn_port = connection.pending
            if syn.key == segment.key.reversed and _answers(segment, syn.seq):
                # The port pair was used again before the old connection's end was seen.
                events += self._end(connection)
                events += self._open(syn, syn_port, in_port, now)
                connection = self._connections[segment.key.connection]
        opener = connection.directions[segment.key.reversed]
        if opener.isn is None or not _answers(segment, opener.isn):
            return events
        self._note_syn(connection.directions[segment.key], segment)
        if connection.state is FlowState.SYN_SEEN:
            connection.state = FlowState.ESTABLISHED
        return events + self._place(connection, segment.key, in_port, out_port)

    def _fin(self, connection: Connection, segment: TcpSegment) -> list[FlowEvent]:
        direction = connection.directions[segment.key]
        if direction.closed:
            return []
        direction.closed = True
        if connection.directions[segment.key.reversed].closed:
            return self._end(connection)
        connection.state = FlowState.HALF_CLOSED
        return self._leave(connection, segment.key)

    def _place(
        self, connection: Connection, sent: FlowKey, in_port: PortKey, out_port: PortKey | None
    ) -> list[FlowEvent]:
        """A segment of direction ``sent`` came in by ``in_port``: the answers will leave there."""
        events = self._enter(connection, sent.reversed, in_port)
        if out_port is not None:
            events += self._enter(connection, sent, out_port)
        return events

    def _enter(self, connection: Connection, flow: FlowKey, port: PortKey) -> list[FlowEvent]:
        direction = connection.directions[flow]
        if direction.closed or port in direction.ports:
            return []
        # On one bridge a direction leaves by one port; a host that moved takes its flows along.
        events = [
            FlowEvent(False, old, self._info(connection, flow))
            for old in direction.ports
            if old.dpid == port.dpid
        ]
        direction.ports = {old for old in direction.ports if old.dpid != port.dpid} | {port}
        return [*events, FlowEvent(True, port, self._info(connection, flow))]

    def _leave(self, connection: Connection, flow: FlowKey) -> list[FlowEvent]:
        direction = connection.directions[flow]
        events = [FlowEvent(False, port, self._info(connection, flow)) for port in sorted(direction.ports)]
        direction.ports = set()
        return events

    def _end(self, connection: Connection) -> list[FlowEvent]:
        self._connections.pop(connection.forward.connection, None)
        return [event for flow in connection.directions for event in self._leave(connection, flow)]

    @staticmethod
    def _info(connection: Connection, flow: FlowKey) -> FlowInfo:
        # The sender may send what the receiver announced.
        receiver = connection.directions[flow.reversed]
        return FlowInfo(flow, receiver.mss or DEFAULT_MSS, 1 << (receiver.wscale or 0), flow.src)

    def reconcile(self, dpid: int, seen: Iterable[SeenFlow], now: float) -> list[FlowEvent]:
        """A switch has told all flows it knows: add those that are news (older than the controller,
        or their SYN's copy was lost), note which have ended, and expire what it has not seen.
        """
        events: list[FlowEvent] = []
        known: set[FlowKey] = set()
        running: list[SeenFlow] = []
        for record in seen:
            if record.closed or record.idle > self.idle_timeout:
                connection = self.get(record.key)
                if connection is not None and record.closed and now - connection.since > _GRACE:
                    direction = connection.directions[record.key]
                    if not direction.closed:
                        direction.closed = True
                        events += self._leave(connection, record.key)
                        if connection.directions[record.key.reversed].closed:
                            events += self._end(connection)
                        else:
                            connection.state = FlowState.HALF_CLOSED
                continue
            known.add(record.key.connection)
            if self._note_record(record, now):
                running.append(record)
        # Both directions are noted by now: what is told of one is what the other has announced.
        for record in running:
            connection = self.get(record.key)
            if connection is not None:
                events += self._enter(connection, record.key, record.port)
        for connection in list(self._connections.values()):
            events += self._expire(connection, dpid, known, now)
        return events

    def _note_record(self, record: SeenFlow, now: float) -> bool:
        """Note what a record says, of a new connection too; False if there is no room for that."""
        connection = self.get(record.key)
        if connection is None:
            if len(self._connections) >= self.capacity:
                self.refused += 1
                return False
            connection = Connection(
                forward=record.key,
                state=FlowState.ESTABLISHED,
                since=now,
                last_seen=now - record.idle,
                directions={record.key: Direction(), record.key.reversed: Direction()},
            )
            self._connections[record.key.connection] = connection
        direction = connection.directions[record.key]
        direction.bytes = record.bytes
        if direction.isn is None:
            direction.wscale, direction.mss = record.wscale, record.mss
        connection.last_seen = max(connection.last_seen, now - record.idle)
        return True

    def _expire(
        self, connection: Connection, dpid: int | None, known: set[FlowKey], now: float
    ) -> list[FlowEvent]:
        quiet = now - connection.last_seen
        if connection.state is FlowState.SYN_SEEN:
            return self._end(connection) if quiet > SYN_TIMEOUT else []
        here = any(port.dpid == dpid for d in connection.directions.values() for port in d.ports)
        forgotten = here and connection.forward.connection not in known and quiet > _GRACE
        return self._end(connection) if forgotten or quiet > self.idle_timeout else []

    def expire(self, now: float) -> list[FlowEvent]:
        """End what has been silent for too long; for bridges whose agent tells nothing."""
        return [event for each in list(self) for event in self._expire(each, None, set(), now)]

    def forget_port(self, port: PortKey) -> list[FlowEvent]:
        """A port has gone: nothing leaves by it any more."""
        events = []
        for connection in self._connections.values():
            for flow, direction in connection.directions.items():
                if port in direction.ports:
                    direction.ports.discard(port)
                    events.append(FlowEvent(False, port, self._info(connection, flow)))
        return events


def _answers(syn_ack: TcpSegment, isn: int) -> bool:
    return syn_ack.ack_number == (isn + 1) & 0xFFFFFFFF

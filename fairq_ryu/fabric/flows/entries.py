"""The entries of the flow table: how they are added, change their state, and are removed.

The state decides what is counted: a connection that ends is removed from its ports immediately. Its entry
stays for a short time as closed, so that late segments and records do not create a new connection.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

from fairq_ryu.fabric.flows.connection import Connection, FlowEvent, FlowState
from fairq_ryu.fabric.flows.flow_ports import FlowPorts
from fairq_ryu.fabric.flows.listing import Listing
from fairq_ryu.model import FlowKey, PortKey

# A SYN without an answer is dropped after this time (Linux repeats a SYN after 1, 3 and 7 s). Seconds.
SYN_TIMEOUT = 10.0
# Connections with an unanswered SYN: the maximum number of one port through which they entered the network,
# and of all ports together.
HALF_OPEN_PER_PORT = 256
HALF_OPEN = 32768


class Entries:
    """All connections, by both directions. Times in seconds."""

    def __init__(self, capacity: int, closed_timeout: float) -> None:
        self.capacity = capacity
        self.closed_timeout = closed_timeout
        self.refused = 0
        self.listings: dict[int, Listing] = {}  # of the switches that report changes
        self.flow_ports = FlowPorts(self.listings)
        self.all: dict[FlowKey, Connection] = {}  # by their forward direction
        self.by_flow: dict[FlowKey, Connection] = {}  # by both
        # Connections with an unanswered SYN (and the port of the SYN), and closed ones, by forward direction;
        # each with the oldest first. Ordered dictionaries: to find the first key of a plain one, all removed
        # entries at its beginning are passed each time.
        self._waiting: OrderedDict[FlowKey, tuple[Connection, PortKey | None]] = OrderedDict()
        self._waiting_by_port: Counter[PortKey | None] = Counter()
        self._closed: OrderedDict[FlowKey, float] = OrderedDict()
        self._half_closed: set[FlowKey] = set()
        self.opened = 0
        # The switches that send flow records.
        self.reporting_switches: set[int] = set()

    @property
    def open(self) -> int:
        """The number of connections that have not ended."""
        return len(self.all) - len(self._closed)

    @property
    def states(self) -> dict[FlowState, int]:
        """The number of connections in each state."""
        waiting, half, closed = len(self._waiting), len(self._half_closed), len(self._closed)
        return {
            FlowState.SYN_SEEN: waiting,
            FlowState.ESTABLISHED: len(self.all) - waiting - half - closed,
            FlowState.HALF_CLOSED: half,
            FlowState.CLOSED: closed,
        }

    def crowded(self, port: PortKey | None) -> bool:
        """Whether a port has too many connections with an unanswered SYN; None: the port where a SYN entered
        is not known, and only the number of all counts.
        """
        here = 0 if port is None else self._waiting_by_port[port]
        return here >= HALF_OPEN_PER_PORT or len(self._waiting) >= HALF_OPEN

    def listed(self, connection: Connection, since: float, moved_since: float) -> bool:
        """Whether a switch that was heard since ``since`` lists a direction of the connection, as alive and
        with segments since ``moved_since``.
        """
        records = (
            listing.flows.get(flow)
            for listing in self.listings.values()
            if listing.heard_at >= since
            for flow in connection.directions
        )
        return any(each is not None and not each.closed and each.moved_at >= moved_since for each in records)

    def add(self, connection: Connection) -> list[FlowEvent] | None:
        """Add a connection and return the events of a removed one; None if there is no room, or if source
        and destination are equal (as in a LAND attack).
        """
        flows = tuple(connection.directions)
        if len(flows) < 2:
            return None
        events: list[FlowEvent] = []
        if len(self.all) >= self.capacity:
            # A SYN flood displaces its own entries; established connections are never displaced.
            oldest = next(iter(self._closed or self._waiting), None)
            if oldest is None:
                self.refused += 1
                return None
            events = self.remove(self.all[oldest])
        self.opened += 1
        self.all[connection.forward] = connection
        for flow in flows:
            self.by_flow[flow] = connection
        self.set_state(connection, connection.state)
        return events

    def remove(self, connection: Connection) -> list[FlowEvent]:
        """Remove an entry; its connection is no longer counted at any port."""
        events = self.flow_ports.leave_all(connection)
        del self.all[connection.forward]
        self._leave_state(connection.forward)
        for flow in connection.directions:
            del self.by_flow[flow]
        return events

    def set_state(self, connection: Connection, state: FlowState) -> None:
        """Set the state of a connection; for its end see :meth:`close`."""
        connection.state = state
        self._leave_state(connection.forward)
        if state is FlowState.SYN_SEEN:
            self._waiting[connection.forward] = connection, connection.opener
            self._waiting_by_port[connection.opener] += 1
        elif state is FlowState.HALF_CLOSED:
            self._half_closed.add(connection.forward)

    def _leave_state(self, forward: FlowKey) -> None:
        waited = self._waiting.pop(forward, None)
        if waited is not None:
            port = waited[1]
            self._waiting_by_port[port] -= 1
            if not self._waiting_by_port[port]:
                del self._waiting_by_port[port]
        self._closed.pop(forward, None)
        self._half_closed.discard(forward)

    def note_segment(self, connection: Connection, now: float) -> None:
        """A segment of the connection was copied."""
        connection.last_seen = now
        if connection.state is FlowState.SYN_SEEN:
            self.set_state(connection, FlowState.SYN_SEEN)  # moves it to the end of the waiting ones

    def finish(
        self, connection: Connection, flow: FlowKey, now: float, by_record: bool = False
    ) -> list[FlowEvent]:
        """A direction has sent its FIN. This end is final, also after a reset that may have been forged;
        except ``by_record``, because records do not distinguish FIN from RST.
        """
        direction = connection.directions[flow]
        direction.reset, direction.ended_by_record, direction.closed_at = False, by_record, now
        if direction.closed:
            return []
        direction.closed = True
        if connection.directions[flow.reversed].closed:
            return self.close(connection, now)
        self.set_state(connection, FlowState.HALF_CLOSED)
        return self.flow_ports.leave(connection, flow, direction.ports)

    def reset(self, connection: Connection, now: float) -> list[FlowEvent]:
        """Either side has reset the connection; it may have been reset before."""
        ended_by_fins = True
        for direction in connection.directions.values():
            # The end by a FIN remains, so the closed flags of this direction in the records are valid.
            if not direction.closed or direction.reset:
                direction.closed, direction.reset, direction.closed_at = True, True, now
                ended_by_fins = False
        return [] if ended_by_fins else self.close(connection, now)

    def close(self, connection: Connection, now: float) -> list[FlowEvent]:
        """Both directions have ended. An end that is known from records only may have been a reset."""
        for direction in connection.directions.values():
            if direction.ended_by_record:
                direction.reset, direction.closed_at = True, now
        self.set_state(connection, FlowState.CLOSED)
        self._closed[connection.forward] = now
        return self.flow_ports.leave_all(connection)

    def revive(self, connection: Connection, flow: FlowKey, now: float) -> list[FlowEvent]:
        """A direction that was closed is still alive."""
        for listing in self.listings.values():
            if flow in listing.flows:
                listing.recheck[flow] = None  # its flags may be those of the end that was none
        direction = connection.directions[flow]
        direction.closed = direction.reset = direction.ended_by_record = False
        ended = connection.directions[flow.reversed].closed
        self.set_state(connection, FlowState.HALF_CLOSED if ended else FlowState.ESTABLISHED)
        return [
            event for hop in direction.hops for event in self.flow_ports.enter(connection, flow, hop, now)
        ]

    def drop_expired(self, now: float, limit: int) -> tuple[int, list[FlowEvent]]:
        """Remove closed connections and unanswered SYNs whose time limit has passed, oldest first and at most
        ``limit``. Returns their number, and the events.
        """
        events: list[FlowEvent] = []
        removed = 0
        while removed < limit:
            connection = self._expired(now)
            if connection is None:
                break
            removed += 1
            events += self.remove(connection)
        return removed, events

    def _expired(self, now: float) -> Connection | None:
        for forward, since in self._closed.items():
            if now - since > self.closed_timeout:
                return self.all[forward]
            break
        for connection, _ in self._waiting.values():
            return connection if now - connection.last_seen > SYN_TIMEOUT else None
        return None

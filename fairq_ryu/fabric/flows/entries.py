"""The entries of the flow table: how they come, change their state, and go.

What is counted goes with the state: a connection that ends leaves its ports at once, and stays listed as
closed for a while, so that what is late of it is not taken for something new.
"""

from __future__ import annotations

from fairq_ryu.fabric.flows.connection import Connection, FlowEvent, FlowState
from fairq_ryu.fabric.flows.flow_ports import Placement
from fairq_ryu.model import FlowKey

# A SYN that nobody answers for this long is no flow (Linux repeats its SYN after 1, 3 and 7 s).
SYN_TIMEOUT = 10.0


class Entries:
    """All connections, by either direction. Times in seconds."""

    def __init__(self, capacity: int, closed_timeout: float) -> None:
        self.capacity = capacity
        self.closed_timeout = closed_timeout
        self.refused = 0
        self.placement = Placement()
        self.all: dict[FlowKey, Connection] = {}  # by their forward direction
        self.by_flow: dict[FlowKey, Connection] = {}  # by both
        # Those waiting for an answer to their SYN and those closed, each longest first, by forward direction.
        self._waiting: dict[FlowKey, Connection] = {}
        self._closed: dict[FlowKey, float] = {}
        self._half_closed: set[FlowKey] = set()
        self.opened = 0
        # The switches that tell records.
        self.telling: set[int] = set()

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

    def add(self, connection: Connection) -> list[FlowEvent] | None:
        """Enter a connection; None if there is no room, or if it is nobody's (a segment from an address
        and port to itself, as in a LAND attack).
        """
        flows = tuple(connection.directions)
        if len(flows) < 2:
            return None
        events: list[FlowEvent] = []
        if len(self.all) >= self.capacity:
            # Whoever floods with SYNs drives out his own. What is established is never driven out.
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
        """The entry goes, and is counted nowhere."""
        events = self.placement.leave_all(connection)
        del self.all[connection.forward]
        self._waiting.pop(connection.forward, None)
        self._closed.pop(connection.forward, None)
        self._half_closed.discard(connection.forward)
        for flow in connection.directions:
            del self.by_flow[flow]
        return events

    def set_state(self, connection: Connection, state: FlowState) -> None:
        """The connection is so far now. Not for its end, see :meth:`close`."""
        connection.state = state
        self._waiting.pop(connection.forward, None)
        self._closed.pop(connection.forward, None)
        self._half_closed.discard(connection.forward)
        if state is FlowState.SYN_SEEN:
            self._waiting[connection.forward] = connection
        elif state is FlowState.HALF_CLOSED:
            self._half_closed.add(connection.forward)

    def awake(self, connection: Connection, now: float) -> None:
        """A segment of it was copied."""
        connection.last_seen = now
        if connection.state is FlowState.SYN_SEEN:
            self.set_state(connection, FlowState.SYN_SEEN)  # the last to make room

    def finish(
        self, connection: Connection, flow: FlowKey, now: float, told: bool = False
    ) -> list[FlowEvent]:
        """A direction has sent its FIN. That is the end of it, whatever becomes of a reset; unless it was
        only ``told`` by switches, which do not tell FIN from reset.
        """
        direction = connection.directions[flow]
        direction.reset, direction.told, direction.closed_at = False, told, now
        if direction.closed:
            return []
        direction.closed = True
        if connection.directions[flow.reversed].closed:
            return self.close(connection, now)
        self.set_state(connection, FlowState.HALF_CLOSED)
        return self.placement.leave(connection, flow, direction.ports)

    def reset(self, connection: Connection, now: float) -> list[FlowEvent]:
        """Either side has reset the connection, perhaps not for the first time."""
        ended_by_fins = True
        for direction in connection.directions.values():
            # A direction that FIN has ended stays so, and its flags in the switches mean what they say.
            if not direction.closed or direction.reset:
                direction.closed, direction.reset, direction.closed_at = True, True, now
                ended_by_fins = False
        return [] if ended_by_fins else self.close(connection, now)

    def close(self, connection: Connection, now: float) -> list[FlowEvent]:
        """Both directions have ended. What was only told may have been ended by a reset."""
        for direction in connection.directions.values():
            if direction.told:
                direction.reset, direction.closed_at = True, now
        self.set_state(connection, FlowState.CLOSED)
        self._closed[connection.forward] = now
        return self.placement.leave_all(connection)

    def revive(self, connection: Connection, flow: FlowKey, now: float) -> list[FlowEvent]:
        """A direction has not ended after all."""
        direction = connection.directions[flow]
        direction.closed = direction.reset = direction.told = False
        ended = connection.directions[flow.reversed].closed
        self.set_state(connection, FlowState.HALF_CLOSED if ended else FlowState.ESTABLISHED)
        return [event for hop in direction.hops for event in self.placement.enter(connection, flow, hop, now)]

    def drop_waiting(self, now: float) -> list[FlowEvent]:
        """Drop the closed and the unanswered whose time has come; the oldest are first."""
        events: list[FlowEvent] = []
        while self._closed:
            forward, since = next(iter(self._closed.items()))
            if now - since <= self.closed_timeout:
                break
            events += self.remove(self.all[forward])
        while self._waiting:
            connection = next(iter(self._waiting.values()))
            if now - connection.last_seen <= SYN_TIMEOUT:
                break
            events += self.remove(connection)
        return events

"""Which directions of connections are counted on which ports.

Counts cannot go wrong by repetition, because what is counted is set membership: a direction is on a port
or it is not, and every method returns exactly the differences. On one switch a direction leaves by one
port at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairq_ryu.fabric.flows.connection import Connection, FlowEvent
from fairq_ryu.model import FlowKey, FlowPath, PortKey


class Placement:
    """The ports of all connections. Times in seconds."""

    def __init__(self) -> None:
        # Switch -> directions that are counted on a port of it -> when that was last heard or told.
        self._at: dict[int, dict[FlowKey, float]] = {}

    def route(self, connection: Connection, key: FlowKey, path: FlowPath, now: float) -> list[FlowEvent]:
        """The connection takes this path (``path`` for its direction ``key``), and no other port."""
        connection.path = path if key == connection.forward else path.reversed
        connection.path_since = now
        there = self._follow(connection, key, path.forward, now)
        return there + self._follow(connection, key.reversed, path.backward, now)

    def _follow(
        self, connection: Connection, flow: FlowKey, hops: tuple[PortKey, ...], now: float
    ) -> list[FlowEvent]:
        direction = connection.directions[flow]
        direction.hops = hops
        if direction.closed:
            return []
        # One port of a switch, should the path come by it twice.
        wanted = hops if len(hops) == 1 else tuple({hop.dpid: hop for hop in hops}.values())
        stays, events = direction.ports, []
        if stays:
            events = self.leave(connection, flow, [port for port in stays if port not in wanted])
            stays = direction.ports
        direction.ports = wanted
        info = connection.info(flow)
        for port in wanted:
            self._at.setdefault(port.dpid, {})[flow] = now
            if port not in stays:
                events.append(FlowEvent(True, port, info))
        return events

    def sender_at(self, connection: Connection, sent: FlowKey, port: PortKey, now: float) -> list[FlowEvent]:
        """A segment of direction ``sent`` came in by a host's port: the answers will leave there."""
        back = connection.directions[sent.reversed]
        if back.hops and back.hops[-1] == port:
            return [] if connection.path is not None else self.enter(connection, sent.reversed, port, now)
        # This is the first that is heard of the sender, or it has moved. Then other switches' ports are left
        # to their records: they know by which of them it is reached now.
        events = self.leave(connection, sent.reversed, [old for old in back.hops[-1:] if old in back.ports])
        if back.hops:
            connection.path_since = now
        there = connection.directions[sent]
        connection.path, back.hops, there.hops = None, (port,), there.hops[-1:]
        return events + self.enter(connection, sent.reversed, port, now)

    def enter(self, connection: Connection, flow: FlowKey, port: PortKey, now: float) -> list[FlowEvent]:
        """A direction leaves by a port, and by no other of the same switch."""
        direction = connection.directions[flow]
        if direction.closed:
            return []
        here = self._at.setdefault(port.dpid, {})
        here[flow] = now
        if port in direction.ports:
            return []
        info = connection.info(flow)
        events = [FlowEvent(False, old, info) for old in direction.ports if old.dpid == port.dpid]
        ports = (*(old for old in direction.ports if old.dpid != port.dpid), port)
        direction.ports = _in_order(ports, direction.hops) if len(ports) > 1 else ports
        events.append(FlowEvent(True, port, info))
        return events

    def leave(self, connection: Connection, flow: FlowKey, ports: Iterable[PortKey]) -> list[FlowEvent]:
        """A direction leaves no more by these of its ports."""
        gone = tuple(ports)
        if not gone:
            return []
        direction, info = connection.directions[flow], connection.info(flow)
        direction.ports = tuple(port for port in direction.ports if port not in gone)
        for port in gone:
            here = self._at[port.dpid]
            del here[flow]
            if not here:
                del self._at[port.dpid]
        return [FlowEvent(False, port, info) for port in gone]

    def leave_all(self, connection: Connection) -> list[FlowEvent]:
        """The connection leaves by no port any more."""
        return [
            event
            for flow, direction in connection.directions.items()
            for event in self.leave(connection, flow, direction.ports)
        ]

    def take_out(self, connection: Connection, gone: Callable[[PortKey], bool]) -> list[FlowEvent]:
        """These ports are there no more: the connection leaves them, and its path is known no longer."""
        events: list[FlowEvent] = []
        for flow, direction in connection.directions.items():
            events += self.leave(connection, flow, [port for port in direction.ports if gone(port)])
            if any(gone(hop) for hop in direction.hops):
                connection.path = None
        if connection.path is None:
            for direction in connection.directions.values():
                direction.hops = tuple(hop for hop in direction.hops[-1:] if not gone(hop))
        return events

    def listed(self, flow: FlowKey, dpid: int, now: float) -> None:
        """A switch knows a direction, wherever it is."""
        here = self._at.get(dpid)
        if here is not None and flow in here:
            here[flow] = now

    def on(self, dpid: int) -> list[FlowKey]:
        """The directions that are counted on any port of a switch."""
        return list(self._at.get(dpid, ()))

    def not_listed_since(self, dpid: int, limit: float) -> list[FlowKey]:
        """The directions on a switch's ports of which nothing was heard or told since ``limit``."""
        return [flow for flow, told in self._at.get(dpid, {}).items() if told < limit]


def _in_order(ports: tuple[PortKey, ...], hops: tuple[PortKey, ...]) -> tuple[PortKey, ...]:
    """In the order in which the path comes by their switches; ports elsewhere follow."""
    rank = {hop.dpid: place for place, hop in enumerate(hops)}
    return tuple(sorted(ports, key=lambda port: (rank.get(port.dpid, len(hops)), port)))

"""The ports at which the directions of connections are counted.

A port has a set of directions, so repeated inputs cannot falsify the counts; every method returns exactly the
differences. On one switch, a direction leaves through one port at a time.

A direction stays counted at a switch while that lists it, or for a time after a copy or a record has
confirmed it. Those that are listed are kept apart from the others, so that they cost nothing while nothing
happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile

from fairq_ryu.fabric.flows.connection import Connection, FlowEvent
from fairq_ryu.fabric.flows.listing import Listing
from fairq_ryu.model import FlowKey, FlowPath, PortKey, new_tuple


class _Counted:
    """The directions that are counted at the ports of a switch: those that the switch lists, and the others
    with the time when each was last confirmed, the earliest first.
    """

    __slots__ = ("listed", "waiting")

    def __init__(self) -> None:
        self.listed: dict[FlowKey, None] = {}
        self.waiting: dict[FlowKey, float] = {}

    def __contains__(self, flow: FlowKey) -> bool:
        return flow in self.listed or flow in self.waiting

    def remove(self, flow: FlowKey) -> None:
        if self.waiting.pop(flow, None) is None:
            self.listed.pop(flow, None)

    def wait(self, flow: FlowKey, now: float) -> None:
        self.waiting.pop(flow, None)
        self.waiting[flow] = now  # it is the last now


class FlowPorts:
    """The ports of all connections. ``listings``: what each switch lists. Times in seconds."""

    def __init__(self, listings: dict[int, Listing] | None = None) -> None:
        self._listings = {} if listings is None else listings
        self._at: dict[int, _Counted] = {}  # by switch
        # Switches that are on no path: copies and records show the ports of flows there.
        self._without_paths: set[int] = set()

    def route(self, connection: Connection, key: FlowKey, path: FlowPath, now: float) -> list[FlowEvent]:
        """The connection takes ``path`` (for its direction ``key``), and is counted at no other port."""
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
        # One port of each switch, even if the path passes a switch twice.
        wanted = hops if len(hops) == 1 else tuple({hop.dpid: hop for hop in hops}.values())
        stays, events = direction.ports, []
        beside: tuple[PortKey, ...] = ()
        if stays:
            if self._without_paths:
                self._without_paths.difference_update(hop.dpid for hop in hops)
                beside = tuple(port for port in stays if port.dpid in self._without_paths)
            gone = [port for port in stays if port not in wanted and port not in beside]
            events = self.leave(connection, flow, gone)
            stays = direction.ports
        direction.ports = (*wanted, *beside)
        info = connection.info(flow)
        for port in wanted:
            self._count(flow, port.dpid, now)
            if port not in stays:
                events.append(new_tuple(FlowEvent, (True, port, info)))
        return events

    def locate_sender(
        self, connection: Connection, sent: FlowKey, port: PortKey, now: float
    ) -> list[FlowEvent]:
        """A segment of direction ``sent`` entered through a host's port: the other direction leaves there."""
        back = connection.directions[sent.reversed]
        if back.hops and back.hops[-1] == port:
            return [] if connection.path is not None else self.enter(connection, sent.reversed, port, now)
        # This is the first segment of the sender, or it has moved. The ports of other switches follow from
        # their records, which contain the ports that lead to the sender now.
        events = self.leave(connection, sent.reversed, [old for old in back.hops[-1:] if old in back.ports])
        if back.hops:
            connection.path_since = now
        there = connection.directions[sent]
        connection.path, back.hops, there.hops = None, (port,), there.hops[-1:]
        return events + self.enter(connection, sent.reversed, port, now)

    def depart(self, connection: Connection, flow: FlowKey, port: PortKey, now: float) -> list[FlowEvent]:
        """A segment of a direction was seen to leave through ``port``, of a switch that is on no path."""
        self._without_paths.add(port.dpid)
        return self.enter(connection, flow, port, now)

    def enter(self, connection: Connection, flow: FlowKey, port: PortKey, now: float) -> list[FlowEvent]:
        """A direction leaves through ``port``, and through no other port of the same switch."""
        direction = connection.directions[flow]
        if direction.closed:
            return []
        self._count(flow, port.dpid, now)
        if port in direction.ports:
            return []
        info = connection.info(flow)
        if not direction.ports:
            direction.ports = (port,)
            return [new_tuple(FlowEvent, (True, port, info))]
        events = [FlowEvent(False, old, info) for old in direction.ports if old.dpid == port.dpid]
        ports = (*(old for old in direction.ports if old.dpid != port.dpid), port)
        direction.ports = _in_order(ports, direction.hops) if len(ports) > 1 else ports
        events.append(new_tuple(FlowEvent, (True, port, info)))
        return events

    def leave(self, connection: Connection, flow: FlowKey, ports: Iterable[PortKey]) -> list[FlowEvent]:
        """A direction no longer leaves through these of its ports."""
        gone = tuple(ports)
        if not gone:
            return []
        direction, info = connection.directions[flow], connection.info(flow)
        direction.ports = tuple(port for port in direction.ports if port not in gone)
        for port in gone:
            here = self._at[port.dpid]
            here.remove(flow)
            if not here.listed and not here.waiting:
                del self._at[port.dpid]
        return [new_tuple(FlowEvent, (False, port, info)) for port in gone]

    def leave_all(self, connection: Connection) -> list[FlowEvent]:
        """The connection no longer leaves through any port."""
        return [
            event
            for flow, direction in connection.directions.items()
            for event in self.leave(connection, flow, direction.ports)
        ]

    def remove_ports(self, connection: Connection, gone: Callable[[PortKey], bool]) -> list[FlowEvent]:
        """Remove the connection from ports that do not exist any more; its path is then not known."""
        events: list[FlowEvent] = []
        for flow, direction in connection.directions.items():
            events += self.leave(connection, flow, [port for port in direction.ports if gone(port)])
            if any(gone(hop) for hop in direction.hops):
                connection.path = None
        if connection.path is None:
            for direction in connection.directions.values():
                direction.hops = tuple(hop for hop in direction.hops[-1:] if not gone(hop))
        return events

    def _count(self, flow: FlowKey, dpid: int, now: float) -> None:
        """The direction is counted at the switch, as is confirmed now."""
        here = self._at.get(dpid)
        if here is None:
            here = self._at[dpid] = _Counted()
        listing = self._listings.get(dpid)
        if listing is not None and flow in listing.flows:
            here.waiting.pop(flow, None)
            here.listed[flow] = None
        else:
            here.wait(flow, now)

    def confirm(self, flow: FlowKey, dpid: int, now: float) -> None:
        """The direction stays at its port of the switch, if it is counted at one: a record of the switch
        contains it, or it is too early to tell.
        """
        here = self._at.get(dpid)
        if here is not None and flow in here:
            self._count(flow, dpid, now)

    def unlisted(self, flow: FlowKey, dpid: int, now: float) -> None:
        """The switch does not list the direction any more."""
        here = self._at.get(dpid)
        if here is not None and flow in here.listed:
            del here.listed[flow]
            here.wait(flow, now)

    def all_unlisted(self, dpid: int, now: float) -> None:
        """What the switch lists is not known any more."""
        here = self._at.get(dpid)
        if here is not None:
            here.waiting |= dict.fromkeys(here.listed, now)
            here.listed.clear()

    def switches(self) -> set[int]:
        """The switches of which anything is kept, by dpid."""
        return self._without_paths | self._at.keys()

    def forget_switch(self, dpid: int) -> None:
        """A switch is forgotten: paths may lead over one with its dpid."""
        self._without_paths.discard(dpid)

    def flows_of(self, dpid: int) -> list[FlowKey]:
        """The directions that are counted at any port of a switch."""
        here = self._at.get(dpid)
        return [] if here is None else [*here.listed, *here.waiting]

    def not_confirmed_since(self, dpid: int, limit: float) -> list[FlowKey]:
        """The directions at ports of a switch that it does not list, and that neither copies nor records have
        confirmed since ``limit``.
        """
        here = self._at.get(dpid)
        waiting = {} if here is None else here.waiting
        return [flow for flow, _ in takewhile(lambda each: each[1] < limit, waiting.items())]


def _in_order(ports: tuple[PortKey, ...], hops: tuple[PortKey, ...]) -> tuple[PortKey, ...]:
    """The ports in the order of their switches on the path, followed by ports of other switches."""
    rank = {hop.dpid: place for place, hop in enumerate(hops)}
    return tuple(sorted(ports, key=lambda port: (rank.get(port.dpid, len(hops)), port)))

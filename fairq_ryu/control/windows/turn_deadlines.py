"""Deadlines of announced flows, for the agents at which the handshakes of their connections wait for a turn.

New connections take turns at ports whose law in the switch has ``LawFlags.TURNS``, in order of their
announced deadlines. A connection's deadline is the earlier one of its two directions, because both wait for
the same handshake. It is sent to the agents of all such ports that the connection passes: when it begins, and
when an announcement about it is made or withdrawn while its handshake may still be under way. The SYN may
wait at an agent already when its copy reaches the controller; then the agent changes the order. In a volley
the flow table is hundreds of milliseconds behind the copies, so the agent at which the SYN enters the network
is told the deadline that the connection will have as soon as the copy comes.

Fails open: an agent that is not told a deadline lets the connection wait as one that has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairq_ryu.channel.deadlines import HandshakeDeadline, microseconds
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.fabric.deadlines.announcements import Announcements
from fairq_ryu.fabric.flows.table import SYN_TIMEOUT, Connection, FlowTable
from fairq_ryu.far_queue import FAR
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.openflow.pipeline import Message


class TurnDeadlines:
    """The deadlines of connections that begin. Returns messages and sends nothing. ``now`` in seconds."""

    def __init__(
        self, announcements: Announcements, flows: FlowTable, links: Mapping[int, AgentLink]
    ) -> None:
        self._announcements, self._flows, self._links = announcements, flows, links
        self._changed: dict[FlowKey, None] = {}  # connections

    def begins(self, link: AgentLink, opener: FlowKey, deadline: float, now: float) -> list[Message]:
        """A SYN has entered the network at the switch of an agent, and its connection will have this deadline
        (seconds).
        """
        if not link.window_laws.any_takes_turns:
            return []
        return link.set_deadlines([HandshakeDeadline(opener.connection, microseconds(deadline - now))])

    def changed(self, flow: FlowKey) -> None:
        """A flow has started with a deadline, or its announcement has changed: :meth:`due` is to follow."""
        self._changed[flow.connection] = None

    def due(self, now: float) -> list[tuple[AgentLink, list[Message]]]:
        """The deadlines that have changed, for the agents that need them."""
        if not self._changed:
            return []
        changed, self._changed = self._changed, {}
        wanted: dict[int, list[HandshakeDeadline]] = {}
        for key in changed:
            connection = self._flows.get(key)
            if connection is None or now - connection.since >= SYN_TIMEOUT:
                continue
            deadline = HandshakeDeadline(key, self._remaining(key, now))
            for dpid in self._switches(connection):
                wanted.setdefault(dpid, []).append(deadline)
        links = ((self._links[dpid], found) for dpid, found in wanted.items())
        return [(link, link.set_deadlines(found)) for link, found in links]

    def _remaining(self, key: FlowKey, now: float) -> int | None:
        announced = (self._announcements.of(each) for each in (key, key.reversed))
        deadlines = [each.deadline for each in announced if each and each.deadline is not None]
        return microseconds(min(deadlines) - now) if deadlines else None

    def _switches(self, connection: Connection) -> set[int]:
        """The switches with a port at which the handshake may wait."""
        ports = {port for each in connection.directions.values() for port in each.ports}
        return {port.dpid for port in ports if port.dpid in self._links and self._orders_turns(port)}

    def _orders_turns(self, port: PortKey) -> bool:
        """At the port itself or, by its far queue, where the other direction leaves."""
        laws = self._links[port.dpid].window_laws
        return laws.takes_turns(port.port) or laws.takes_turns(FAR | port.port)

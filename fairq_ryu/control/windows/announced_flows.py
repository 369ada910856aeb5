"""Announced flows: the announcements of applications and of the configuration, matched to connections.

An announcement gives the size, the deadline or the priority of a flow. It is assigned to a connection when
that starts, or at once if it runs already; the policies of the flow's ports are informed, and its outcome is
reported. Returns rule changes and sends nothing; connections with other deadlines than before are noted for
the turns of their handshakes (:mod:`~fairq_ryu.control.windows.turn_deadlines`), and flows with other
priorities for the agents (:mod:`~fairq_ryu.control.windows.flow_priorities`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairq_ryu.control.reports.announcement_outcomes import Assignment
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.windows.flow_priorities import FlowPriorities
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.control.windows.turn_deadlines import TurnDeadlines
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.fabric.deadlines.announcements import AnnouncementChange, Announcements
from fairq_ryu.fabric.flows.table import FlowEvent, FlowTable
from fairq_ryu.model import Announcement, FlowKey, PortKey, RuleChange
from fairq_ryu.policies.engine import PolicyEngine


class AnnouncedFlows(WindowPart):
    """Matches ``announcements`` to connections. ``now`` in seconds."""

    def __init__(
        self,
        announcements: Announcements,
        engine: PolicyEngine,
        flows: FlowTable,
        reporter: EventReporter,
        turns: TurnDeadlines,
        priorities: FlowPriorities,
    ) -> None:
        self.announcements = announcements
        self._engine = engine
        self._turns, self._priorities = turns, priorities
        self._flows = flows
        self._reporter = reporter
        self._used: bool | None = None  # does a policy use announcements? None: not known yet

    def deadline_of(self, opener: FlowKey, now: float) -> float | None:
        """The earliest deadline of a connection that ``opener`` opens now; None: it has none."""
        if not self.announcements.any_expected:
            return None  # asked for each SYN
        expected = (self.announcements.expected(each, opener, now) for each in (opener, opener.reversed))
        return min((each.deadline for each in expected if each and each.deadline is not None), default=None)

    def flow_started(self, event: FlowEvent, now: float, received: float | None) -> list[RuleChange]:
        """A flow has started on a port. ``received``: when its SYN came, if that was earlier: its deadline
        counts from there.
        """
        key = event.flow.key
        connection = self._flows.get(key)
        opener = None if connection is None or connection.opener is None else connection.forward
        since = now if connection is None else connection.since
        if received is not None and since == now:
            since = received
        announced = self.announcements.flow_started(key, opener, since, now)
        if announced is None:
            return []
        self._priorities.changed(key, announced)
        changes = self._engine.announced(event.port, key, announced, now)
        self._reporter.deadline(key, announced.deadline)
        if announced.deadline is not None:
            self._turns.changed(key)
        self._follow(key, announced, since)
        return changes

    def flow_left(self, event: FlowEvent, now: float) -> None:
        """A flow has ended on a port."""
        key = event.flow.key
        # Its ports may belong to a new connection already.
        other = self._flows.get(key)
        if self._reporter.outcomes:
            self._reporter.outcomes.left(key, other, now)
        if other is not None and other.ports_reused and other.since == now:
            self._ended(key)

    def connection_over(self, key: FlowKey) -> None:
        """A connection has ended, or is not counted any more."""
        for each in (key, key.reversed):
            self._ended(each)

    def _ended(self, flow: FlowKey) -> None:
        self.announcements.flow_ended(flow)
        self._priorities.changed(flow, None)

    def changed(self, changes: Iterable[AnnouncementChange], now: float) -> Iterator[list[RuleChange]]:
        """Announcements have been assigned to flows or taken from them. Returns the rules of one port at a
        time; they are to be sent before the next.
        """
        for flow, announcement in changes:
            self._priorities.changed(flow, announcement)
            connection = self._flows.get(flow)
            if connection is not None:
                for port in connection.directions[flow].ports:
                    yield self._engine.announced(port, flow, announcement, now)
                self._turns.changed(flow)
                self._follow(flow, announcement, connection.since)
            self._reporter.deadline(flow, None if announcement is None else announcement.deadline)

    def prune(self, now: float) -> None:
        """Forget announcements that no flow has taken, and flows that ended when they were on no port."""
        self.announcements.expire(now)
        for flow in in_steps(self._reporter.outcomes, LOOKS_PER_STEP):
            self._reporter.outcomes.left(flow, self._flows.get(flow), now)

    def policies_changed(self, ports: Iterable[PortKey]) -> None:
        """Other policies may use announcements."""
        self._used = self._engine.announcements_ignored() is None
        if not self._used:
            self._reporter.outcomes.clear()

    @property
    def expects(self) -> bool:
        """Whether a flow that starts now may have an announcement, and a policy uses it."""
        return self.announcements.any_expected and self._are_used()

    def _are_used(self) -> bool:
        if self._used is None:
            self._used = self._engine.announcements_ignored() is None
        return self._used

    def _follow(self, flow: FlowKey, announcement: Announcement | None, started: float) -> None:
        """Report the outcome of an announced flow, if there is a policy that uses announcements."""
        connection = self._flows.get(flow)
        if self._are_used() and connection is not None:
            requested = self.announcements.is_from_application(flow)
            self._reporter.announced(Assignment(flow, announcement, connection, started, requested))

"""Events that are reported to users: of queues, incasts, losses, announced flows, paths and switches."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairq_ryu.control.reports.announcement_outcomes import Assignment, Counted, Outcome, Outcomes
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.fabric.topology.paths import Moved
from fairq_ryu.far_queue import is_far
from fairq_ryu.model import Congestion, FlowKey, PortKey, short_dpid

# Limit of deadlines that are watched; of flows beyond, a missed deadline is not reported.
_MAX_DEADLINES = 100_000
# The heap is rebuilt when it has this many entries more than twice the number of valid ones.
_SPARE = 64


@dataclass(slots=True, eq=False)
class _Port:
    """What was reported of a port last."""

    congestion: Congestion = Congestion.NOM
    incast: bool = False
    law_missing: str | None = None
    others: bool = False
    line: int | None = None


_CALM = _Port()


def _mbit(rate: int) -> str:
    """A rate in bytes per second, for people."""
    return f"{rate * 8 / 1e6:,.0f} Mbit/s"


Sink = Callable[[Occurrence], object]
"""Stores what has occurred (:meth:`fairq_ryu.rest.streams.Streams.add`)."""


class EventReporter:
    """Reports events to ``sink``. ``name`` returns the name of a port's interface, "" if it is not known."""

    def __init__(self, sink: Sink, name: Callable[[PortKey], str]) -> None:
        self._sink = sink
        self._name = name
        self._ports: dict[PortKey, _Port] = {}  # of which anything was reported
        # A heap, and the valid deadline of each flow: a heap entry that differs from it is outdated.
        self._deadlines: list[tuple[float, FlowKey]] = []
        self._due: dict[FlowKey, float] = {}
        self.outcomes = Outcomes(_MAX_DEADLINES)
        """announced flows whose outcome is to be reported"""

    def _text(self, key: PortKey) -> str:
        name = self._name(key)
        return f"{name} ({key.short})" if name else f"port {key.short}"

    # Ports

    def congestion(self, key: PortKey, state: Congestion, backlog: int) -> None:
        """A queue has crossed a threshold. NOM of a queue that was not congested is no event."""
        if self._ports.get(key, _CALM).congestion is not state:
            self._ports.setdefault(key, _Port()).congestion = state
            kind, words = (
                (Kind.CNG, "is congested") if state is Congestion.CNG else (Kind.NOM, "is calm again")
            )
            self._sink(Occurrence(kind, f"the queue of {self._text(key)} {words}: {backlog:,} bytes", key))

    def incast(self, key: PortKey, incast: bool | None) -> None:
        """Whether a policy treats the flows of a port as an incast; None: it does not report this."""
        if self._ports.get(key, _CALM).incast is not bool(incast):
            self._ports.setdefault(key, _Port()).incast = bool(incast)
            words = "incast: the windows of its flows are limited" if incast else "the incast is over"
            self._sink(Occurrence(Kind.INCAST, f"{self._text(key)}: {words}", key))

    def share(self, key: PortKey, tenant: str, broken: bool) -> None:
        """The least windows of a tenant's flows have begun to break its share of a port, or do so no more."""
        words = "has more flows than its share holds segments" if broken else "has its share again"
        self._sink(Occurrence(Kind.SHARE, f"{self._text(key)}: tenant {tenant} {words}", key))

    def law_missing(self, key: PortKey, reason: str | None) -> None:
        """Why the switch does not run the law of a port; None: it does, or there is none."""
        if self._ports.get(key, _CALM).law_missing != reason:
            self._ports.setdefault(key, _Port()).law_missing = reason
            if reason is not None:
                self._sink(Occurrence(Kind.LAW, f"{self._text(key)} has no windows: {reason}", key))

    def hidden_queue(self, key: PortKey, line: int, rate: int, others: bool) -> None:
        """What an agent has inferred about the line before a far queue: its rate (0: not known), that of the
        virtual queue, bytes per second, and whether others use the line.
        """
        port = self._ports.setdefault(key, _Port())
        if line != port.line:
            if port.line is not None and line:
                text = f"the line before {self._text(key)} carries {_mbit(line)}"
                self._sink(Occurrence(Kind.RATE, text, key))
            port.line = line
        if others != port.others:
            port.others = others
            words = f"carries other traffic: {_mbit(rate)} are left" if others else "is ours again"
            self._sink(Occurrence(Kind.OTHERS, f"the line before {self._text(key)} {words}", key))

    def dropped(self, key: PortKey, packets: int) -> None:
        """A queue has dropped packets. That of a far queue is in the switch above."""
        text = self._text(key)
        what = f"lost before {text}" if is_far(key.port) else f"the queue of {text} has dropped"
        self._sink(Occurrence(Kind.LOSS, what, key, times=packets))

    def unwatched(self, key: PortKey) -> None:
        """The thresholds of a port are not watched any more: forget its state."""
        if key in self._ports:
            self._ports[key].congestion = Congestion.NOM

    def port_removed(self, key: PortKey) -> None:
        """A port was removed."""
        self._ports.pop(key, None)

    def forget_switch(self, dpid: int) -> None:
        """All ports of a switch have gone."""
        for key in [key for key in self._ports if key.dpid == dpid]:
            del self._ports[key]

    # Flows

    def moved(self, move: Moved) -> None:
        """A connection has another path."""
        old, new = move
        what = f"{new.key} now goes by {new.text}, was by {old.text}"
        self._sink(Occurrence(Kind.REPIN, what, flow=new.key))

    def deadline(self, flow: FlowKey, deadline: float | None) -> None:
        """Set the deadline of a flow, seconds of the clock of :meth:`report_overdue`; None: remove it. A flow
        has one deadline, the last that was set.
        """
        if deadline is None:
            self._due.pop(flow, None)
            return
        known = self._due.get(flow)
        if known == deadline or (known is None and len(self._due) >= _MAX_DEADLINES):
            return
        self._due[flow] = deadline
        heapq.heappush(self._deadlines, (deadline, flow))
        if len(self._deadlines) > 2 * len(self._due) + _SPARE:
            self._deadlines = [(when, each) for each, when in self._due.items()]
            heapq.heapify(self._deadlines)

    def report_overdue(self, now: float, missed: Callable[[FlowKey, float], PortKey | None]) -> None:
        """Report deadlines that have passed (``missed`` returns the port on which the flow is late; None: on
        none), and announced flows that have ended without sending all bytes.
        """
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, flow = heapq.heappop(self._deadlines)
            if self._due.get(flow) != deadline:
                continue
            del self._due[flow]
            key = missed(flow, now)
            if key is not None and self.outcomes.missed(flow):
                self._sink(Occurrence(Kind.MISSED, f"{flow} has missed its deadline", key, flow))
        for outcome in self.outcomes.due(now):
            self._report(outcome)

    # Announcements

    def announced(self, assignment: Assignment) -> None:
        """An announcement was assigned to a flow, or taken from it."""
        self._report(self.outcomes.announced(assignment))

    def counted(self, found: Iterable[tuple[FlowKey, Counted]], now: float) -> None:
        """A switch has reported records of flows."""
        for flow, record in found:
            self._report(self.outcomes.counted(flow, record, now))

    def _report(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        kind, flow, port, acked, sent, size = outcome
        if kind is Kind.MET:
            self._sink(Occurrence(kind, f"{flow} has met its deadline", port, flow))
        elif sent and size is not None:
            words = f"has ended with {acked:,} of {size:,} announced bytes acknowledged"
            self._sink(Occurrence(kind, f"{flow} {words}", port, flow))
        else:
            self._sink(Occurrence(kind, f"{flow} has ended without sending", port, flow))

    # Switches

    def bridge(self, dpid: int, connected: bool) -> None:
        """A bridge has connected, or its connection has ended."""
        what = "has connected" if connected else "has gone"
        self._sink(Occurrence(Kind.BRIDGE, f"bridge {short_dpid(dpid)} {what}", dpid))

    def agent(self, dpid: int, connected: bool) -> None:
        """An agent has connected, or its connection has ended. Its ports count as not congested."""
        for key in self._ports:
            if key.dpid == dpid:
                self.unwatched(key)
        what = "has connected" if connected else "has gone"
        self._sink(Occurrence(Kind.AGENT, f"the agent of bridge {short_dpid(dpid)} {what}", dpid))

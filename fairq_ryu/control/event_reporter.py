"""What is worth telling people of: queues, incasts, losses, announced flows, re-pins, switches."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Protocol

from fairq_ryu.control.announcement_outcomes import Counted, Outcome, Outcomes
from fairq_ryu.control.events import Kind
from fairq_ryu.fabric.flows.connection import Connection
from fairq_ryu.fabric.topology.paths import Moved
from fairq_ryu.model import Announcement, Congestion, FlowKey, PortKey

# Deadlines that are waited for; of more, the rest is not told when it is missed.
_MAX_DEADLINES = 100_000
# So many that count no more are kept, and as many as there are that do, before the heap is cleared of them.
_SPARE = 64


class Sink(Protocol):
    """Who takes down what happens (:meth:`fairq_ryu.rest.streams.Streams.add`)."""

    def __call__(
        self,
        kind: Kind,
        message: str,
        at: PortKey | int | None = None,
        flow: FlowKey | None = None,
        count: int = 1,
    ) -> None: ...


class EventReporter:
    """``name`` says what an interface is called, "" if that is not known."""

    def __init__(self, sink: Sink, name: Callable[[PortKey], str]) -> None:
        self._sink = sink
        self._name = name
        self._congested: dict[PortKey, Congestion] = {}
        self._incast: dict[PortKey, bool] = {}
        # A heap, and the deadline of each flow: what is in the heap and not there as well counts no more.
        self._deadlines: list[tuple[float, FlowKey]] = []
        self._due: dict[FlowKey, float] = {}
        self.outcomes = Outcomes(_MAX_DEADLINES)
        """announced flows, of which the outcome is to be told"""

    def _called(self, key: PortKey) -> str:
        name = self._name(key)
        return f"{name} ({key.dpid:x}:{key.port})" if name else f"port {key.dpid:x}:{key.port}"

    # Ports

    def congestion(self, key: PortKey, state: Congestion, backlog: int) -> None:
        """A queue has crossed a threshold; of one that has not been congested, NOM is no news."""
        if self._congested.get(key, Congestion.NOM) is not state:
            self._congested[key] = state
            kind, words = (
                (Kind.CNG, "is congested") if state is Congestion.CNG else (Kind.NOM, "is calm again")
            )
            self._sink(kind, f"the queue of {self._called(key)} {words}: {backlog:,} bytes", key)

    def incast(self, key: PortKey, incast: bool | None) -> None:
        """Whether a policy holds the flows of a port for an incast; None: it does not say."""
        if self._incast.get(key, False) is not bool(incast):
            self._incast[key] = bool(incast)
            words = "incast: its flows are held at one segment" if incast else "the incast is over"
            self._sink(Kind.INCAST, f"{self._called(key)}: {words}", key)

    def dropped(self, key: PortKey, packets: int) -> None:
        """A queue has dropped packets."""
        self._sink(Kind.LOSS, f"the queue of {self._called(key)} has dropped", key, count=packets)

    def unwatched(self, key: PortKey) -> None:
        """Nobody tells of a port's thresholds any more: that it was congested is forgotten."""
        self._congested.pop(key, None)

    def port_gone(self, key: PortKey) -> None:
        """A port has gone."""
        self.unwatched(key)
        self._incast.pop(key, None)

    # Flows

    def moved(self, move: Moved) -> None:
        """A connection goes another way."""
        ways = [" ".join(f"{p.dpid:x}:{p.port}" for p in each.path.forward) for each in (move.new, move.old)]
        self._sink(Kind.REPIN, f"{move.new.key} now goes by {ways[0]}, was by {ways[1]}", flow=move.new.key)

    def deadline(self, flow: FlowKey, deadline: float | None) -> None:
        """A flow should end by then, seconds of the clock of :meth:`overdue`; None: no time is set. It has
        one deadline at a time, the last that was said.
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

    def overdue(self, now: float, missed: Callable[[FlowKey, float], PortKey | None]) -> None:
        """Tell of deadlines that have passed (``missed`` says on which port, if on any), and of announced
        flows that have ended without sending all.
        """
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, flow = heapq.heappop(self._deadlines)
            if self._due.get(flow) != deadline:
                continue
            del self._due[flow]
            key = missed(flow, now)
            if key is not None and self.outcomes.missed(flow):
                self._sink(Kind.MISSED, f"{flow} has missed its deadline", key, flow)
        for outcome in self.outcomes.due(now):
            self._became(outcome)

    # Announcements

    def announced(
        self,
        flow: FlowKey,
        announcement: Announcement | None,
        connection: Connection,
        started: float,
        asked: bool,
    ) -> None:
        """The announcement holds for a flow from now on, see :meth:`Outcomes.announced`."""
        self._became(self.outcomes.announced(flow, announcement, connection, started, asked))

    def counted(self, found: Iterable[tuple[FlowKey, Counted]], now: float) -> None:
        """A switch has told of flows."""
        for flow, record in found:
            self._became(self.outcomes.counted(flow, record, now))

    def _became(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        kind, flow, port, acked, sent, size = outcome
        if kind is Kind.MET:
            self._sink(kind, f"{flow} has met its deadline", port, flow)
        elif sent and size is not None:
            words = f"has ended with {acked:,} of {size:,} announced bytes acknowledged"
            self._sink(kind, f"{flow} {words}", port, flow)
        else:
            self._sink(kind, f"{flow} has ended without sending", port, flow)

    # Switches

    def bridge(self, dpid: int, came: bool) -> None:
        """A bridge has connected, or its connection has ended."""
        self._sink(Kind.BRIDGE, f"bridge {dpid:x} {'has connected' if came else 'has gone'}", dpid)

    def agent(self, dpid: int, came: bool) -> None:
        """The same of an agent. What it has said of its ports is of another life then."""
        for key in [key for key in self._congested if key.dpid == dpid]:
            self.unwatched(key)
        self._sink(
            Kind.AGENT, f"the agent of bridge {dpid:x} {'has connected' if came else 'has gone'}", dpid
        )

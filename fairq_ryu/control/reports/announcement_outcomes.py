"""Outcomes of announced flows: all bytes arrive before the deadline, or the flow ends without them. Pure.

The copy of a FIN or RST shows the end of a flow at once; the number of bytes that have arrived is only in the
records of switches, which come later. So an ended flow is kept for :data:`PATIENCE` to wait for its records.
One record can prove that all bytes have arrived. That bytes are missing is certain only when no more records
are expected, and only from a switch that has counted since the handshake. Without any record nothing is
reported, except for a connection that was never answered: it has sent nothing.

All times are seconds of one clock that does not go back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.control.reports.events import Kind
from fairq_ryu.fabric.flows.connection import Connection, FlowState
from fairq_ryu.model import Announcement, FlowKey, PortKey

PATIENCE = 3.0
"""How long an ended flow is kept after its end, and after its last bytes have arrived, seconds."""
# A record has the final counts of an ended flow if it came at least this many seconds after the end: segments
# under way have arrived by then.
SETTLED = 0.5
# A connection that was removed without FIN or RST has ended if it had been silent for this long before,
# seconds. Otherwise a switch may have lost its records.
SILENCE = 10.0
# If a record's last segment is older than the flow's start by more than this, seconds, the record belongs to
# an earlier connection with the same addresses and ports.
_EARLY = 0.05


class Outcome(NamedTuple):
    """The outcome of a flow (``kind``: MET or UNSENT): ``acked`` bytes of ``size`` (None: not announced)
    had arrived, of ``sent`` payload bytes (retransmissions are counted). ``port`` is the receiver's (None:
    not known).
    """

    kind: Kind
    flow: FlowKey
    port: PortKey | None
    acked: int
    sent: int
    size: int | None


class Counted(NamedTuple):
    """A switch's record of a flow: ``acked`` bytes that the receiver has acknowledged, ``sent`` payload bytes
    that have left by ``port``, ``idle`` seconds since the last segment, ``whole`` if it has counted since the
    handshake, ``closed`` if FIN or RST has passed.
    """

    port: PortKey
    acked: int
    sent: int
    idle: float
    whole: bool
    closed: bool


class Assignment(NamedTuple):
    """An announcement is assigned to a flow of ``connection``, which started at ``started``; ``announcement``
    None: the flow has none any more. ``requested``: by an application, not by the configuration.
    """

    flow: FlowKey
    announcement: Announcement | None
    connection: Connection
    started: float
    requested: bool


@dataclass(slots=True)
class _Watched:
    """An announced flow. ``requested``: an application has announced it, not the configuration. ``listed``: a
    switch has reported it. ``silent``: it ended without FIN or RST. ``done``: its outcome needs no more
    records.
    """

    connection: Connection
    announcement: Announcement
    requested: bool
    started: float
    port: PortKey | None = None
    acked: int = 0
    sent: int = 0
    listed: bool = False
    # Times of its last segment, and of the last report by a switch that has counted since the handshake.
    last_segment_at: float = -math.inf
    reported_at: float = -math.inf
    ended_at: float = math.inf
    silent: bool = False
    met: bool = False
    missed: bool = False
    done: bool = False


class Outcomes:
    """Announced flows that run or have ended recently, up to ``capacity``. Flows of configured services,
    which any host may open, use at most half of that.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self._capacity = capacity
        self._watched: dict[FlowKey, _Watched] = {}
        self._due: dict[FlowKey, float] = {}  # of those that have ended; the first is due first

    def __len__(self) -> int:
        return len(self._watched)

    def __iter__(self) -> Iterator[FlowKey]:
        return iter(list(self._watched))

    def wants(self, flow: FlowKey) -> bool:
        """Whether records of a flow are needed."""
        each = self._watched.get(flow)
        return each is not None and not each.done

    def clear(self) -> None:
        """Forget all flows."""
        self._watched.clear()
        self._due.clear()

    def announced(self, assignment: Assignment) -> Outcome | None:
        """An announcement was assigned to a flow, or taken from it. The same assignment again changes
        nothing. Returns the outcome of the previous flow with the same addresses
        and ports.
        """
        flow, announcement, connection, started, requested = assignment
        each, outcome = self._watched.get(flow), None
        if each is not None and each.connection is not connection:
            outcome = self._judge(flow, each)
            each = None
        if announcement is None:
            self._forget(flow)
        elif each is not None:
            if each.announcement != announcement or each.requested != requested:
                each.announcement, each.requested = announcement, requested
                each.met = each.missed = each.done = False
            if not connection.directions[flow].closed:  # it may have been reset by a forged segment
                each.ended_at = math.inf
                self._due.pop(flow, None)
        elif len(self._watched) < (self._capacity if requested else self._capacity // 2):
            # One that was learned from a record has sent before.
            since = min(started, connection.last_seen)
            self._watched[flow] = _Watched(connection, announcement, requested, since)
        return outcome

    def counted(self, flow: FlowKey, record: Counted, now: float) -> Outcome | None:
        """A switch has reported a record of a flow. Returns the outcome, if it is certain now."""
        each = self._watched.get(flow)
        if each is None or each.done:
            return None
        last_segment_at, ended = now - record.idle, each.ended_at < math.inf
        if last_segment_at < each.started - _EARLY or (record.closed and not ended):
            return None  # of an earlier connection, or the flow's end is about to be reported
        each.listed, each.port = True, record.port
        each.last_segment_at = max(each.last_segment_at, last_segment_at)
        each.sent = max(each.sent, record.sent)
        if record.whole:
            each.reported_at = now
        if record.acked > each.acked:
            each.acked = record.acked
            if ended:
                self._wait(flow, now + PATIENCE)
        size, deadline, _ = each.announcement
        if (each.acked or each.sent) if size is None else each.acked >= size:
            # All bytes had arrived when the last segment left, or before.
            in_time = size is not None and deadline is not None and last_segment_at <= deadline
            each.met = in_time and not each.missed
            return self._finish(flow, each)
        return None

    def missed(self, flow: FlowKey) -> bool:
        """The deadline of a flow has passed with bytes to send. False: it was met, as reported before."""
        each = self._watched.get(flow)
        if each is None:
            return True
        if each.met:
            return False
        each.missed = True
        each.done = each.done or not each.requested
        return True

    def left(self, flow: FlowKey, present: Connection | None, now: float) -> None:
        """A flow has left a port, perhaps because it has ended. ``present`` is the connection that has the
        flow's addresses and ports now (None: there is none).
        """
        each = self._watched.get(flow)
        if each is None or each.ended_at < math.inf:
            return
        closed, gone = each.connection.directions[flow].closed, present is not each.connection
        if not closed and not gone:
            return
        waits = each.requested or (
            each.announcement.size is not None and each.announcement.deadline is not None
        )
        if each.done or not waits:
            self._forget(flow)
            return
        each.ended_at, each.silent = now, not closed
        self._wait(flow, now if each.silent else now + PATIENCE)

    def due(self, now: float) -> list[Outcome]:
        """Outcomes of ended flows whose records have been waited for long enough."""
        found: list[Outcome] = []
        while self._due:
            flow, when = next(iter(self._due.items()))
            if when > now:
                break
            outcome = self._judge(flow, self._watched[flow])
            if outcome is not None:
                found.append(outcome)
        return found

    def _judge(self, flow: FlowKey, each: _Watched) -> Outcome | None:
        """No more records are expected: the flow ended without sending all bytes, if that is certain."""
        self._forget(flow)
        if each.done or not each.requested or each.ended_at == math.inf:
            return None
        connection = each.connection
        if not each.listed:
            answered = all(direction.isn is not None for direction in connection.directions.values())
            sure = connection.state is FlowState.SYN_SEEN or not answered
        elif each.silent:
            sure = each.reported_at > -math.inf and each.last_segment_at <= each.ended_at - SILENCE
        else:
            alive = not connection.directions[flow].closed
            sure = each.reported_at >= each.ended_at + SETTLED and not alive
        return self._outcome(Kind.UNSENT, flow, each) if sure else None

    def _finish(self, flow: FlowKey, each: _Watched) -> Outcome | None:
        each.done = True
        if each.ended_at < math.inf:
            self._forget(flow)
        return self._outcome(Kind.MET, flow, each) if each.met else None

    @staticmethod
    def _outcome(kind: Kind, flow: FlowKey, each: _Watched) -> Outcome:
        hops = each.connection.directions[flow].hops
        port = hops[-1] if hops else each.port
        return Outcome(kind, flow, port, each.acked, each.sent, each.announcement.size)

    def _wait(self, flow: FlowKey, until: float) -> None:
        self._due.pop(flow, None)
        self._due[flow] = until

    def _forget(self, flow: FlowKey) -> None:
        self._watched.pop(flow, None)
        self._due.pop(flow, None)

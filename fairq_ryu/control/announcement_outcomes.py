"""What becomes of announced flows: all bytes arrive before the deadline, or the flow ends without them. Pure.

A copy of a FIN or RST tells of the end of a flow at once; how many bytes have arrived is only in the records
of the switches, which come later. So a flow that has ended waits for its records for :data:`PATIENCE`. That
all bytes have arrived is certain with the first record that says so. That bytes are missing is certain only
when no more follow, and only by a switch that has counted since the handshake. Where no record comes, nothing
is said, except of a connection that was never answered: it has sent nothing.

All times are seconds of one clock that does not go back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.control.events import Kind
from fairq_ryu.fabric.flows.connection import Connection, FlowState
from fairq_ryu.model import Announcement, FlowKey, PortKey

PATIENCE = 3.0
"""So long after its end, and after its last bytes have arrived, a flow is waited for."""
# A record counts for the end of a flow when it was told so long after it: what was under way has passed.
SETTLED = 0.5
# A connection that was dropped without FIN and RST has ended if it was silent before for so long. If it was
# not, a switch may have lost its records.
SILENCE = 10.0
# A record whose last segment is from so long before the flow's start is of the last connection of its ports.
_EARLY = 0.05


class Outcome(NamedTuple):
    """What has become of a flow (``kind``: MET or UNSENT): ``acked`` bytes of ``size`` (None: not announced)
    had arrived, of ``sent`` payload bytes (sent again, counted again). ``port`` is the receiver's (None: not
    known).
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


@dataclass(slots=True)
class _Watched:
    """``asked``: an application has announced it, not the configuration. ``listed``: a switch has told of it.
    ``silent``: it ended without FIN and RST. ``done``: nothing more is to be told of it.
    """

    connection: Connection
    announcement: Announcement
    asked: bool
    started: float
    port: PortKey | None = None
    acked: int = 0
    sent: int = 0
    listed: bool = False
    # When it moved last, and when a switch that has counted since the handshake last told of it.
    moved_at: float = -math.inf
    heard_at: float = -math.inf
    ended_at: float = math.inf
    silent: bool = False
    met: bool = False
    missed: bool = False
    done: bool = False


class Outcomes:
    """Announced flows that run, and those that have ended lately: ``capacity`` at most. Flows of services of
    the configuration, which anybody may open, take no more than half of that.
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
        """Do records of this flow matter?"""
        each = self._watched.get(flow)
        return each is not None and not each.done

    def clear(self) -> None:
        """Forget all flows."""
        self._watched.clear()
        self._due.clear()

    def announced(
        self,
        flow: FlowKey,
        announcement: Announcement | None,
        connection: Connection,
        started: float,
        asked: bool,
    ) -> Outcome | None:
        """An announcement holds for a flow of ``connection``, which has ``started`` then; None: none does any
        more. Said again, it changes nothing. Returns what has become of the last flow with these ports.
        """
        each, outcome = self._watched.get(flow), None
        if each is not None and each.connection is not connection:
            outcome = self._judge(flow, each)
            each = None
        if announcement is None:
            self._forget(flow)
        elif each is not None:
            if each.announcement != announcement or each.asked != asked:
                each.announcement, each.asked = announcement, asked
                each.met = each.missed = each.done = False
            if not connection.directions[flow].closed:  # it may have been reset by a forged segment
                each.ended_at = math.inf
                self._due.pop(flow, None)
        elif len(self._watched) < (self._capacity if asked else self._capacity // 2):
            # One that was learnt from a record has moved before.
            since = min(started, connection.last_seen)
            self._watched[flow] = _Watched(connection, announcement, asked, since)
        return outcome

    def counted(self, flow: FlowKey, record: Counted, now: float) -> Outcome | None:
        """A switch has told of a flow. Returns what has become of it, if that is certain."""
        each = self._watched.get(flow)
        if each is None or each.done:
            return None
        moved_at, ended = now - record.idle, each.ended_at < math.inf
        if moved_at < each.started - _EARLY or (record.closed and not ended):
            return None  # of the last connection of these ports, or its end is about to be told
        each.listed, each.port = True, record.port
        each.moved_at = max(each.moved_at, moved_at)
        each.sent = max(each.sent, record.sent)
        if record.whole:
            each.heard_at = now
        if record.acked > each.acked:
            each.acked = record.acked
            if ended:
                self._wait(flow, now + PATIENCE)
        size, deadline = each.announcement
        if (each.acked or each.sent) if size is None else each.acked >= size:
            # All of it had arrived when the last segment left, if not before.
            in_time = size is not None and deadline is not None and moved_at <= deadline
            each.met = in_time and not each.missed
            return self._finish(flow, each)
        return None

    def missed(self, flow: FlowKey) -> bool:
        """The deadline of a flow has passed with bytes to send. False: it was met, as was told before."""
        each = self._watched.get(flow)
        if each is None:
            return True
        if each.met:
            return False
        each.missed = True
        each.done = each.done or not each.asked
        return True

    def left(self, flow: FlowKey, present: Connection | None, now: float) -> None:
        """A flow has left a port, perhaps because it has ended. ``present`` is the connection that has its
        ports now (None: there is none).
        """
        each = self._watched.get(flow)
        if each is None or each.ended_at < math.inf:
            return
        closed, gone = each.connection.directions[flow].closed, present is not each.connection
        if not closed and not gone:
            return
        waits = each.asked or (each.announcement.size is not None and each.announcement.deadline is not None)
        if each.done or not waits:
            self._forget(flow)
            return
        each.ended_at, each.silent = now, not closed
        self._wait(flow, now if each.silent else now + PATIENCE)

    def due(self, now: float) -> list[Outcome]:
        """What has become of flows that have been waited for long enough."""
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
        """No more will be told of a flow: it ended without sending all bytes, if that is certain."""
        self._forget(flow)
        if each.done or not each.asked or each.ended_at == math.inf:
            return None
        connection = each.connection
        if not each.listed:
            answered = all(direction.isn is not None for direction in connection.directions.values())
            sure = connection.state is FlowState.SYN_SEEN or not answered
        elif each.silent:
            sure = each.heard_at > -math.inf and each.moved_at <= each.ended_at - SILENCE
        else:
            alive = not connection.directions[flow].closed
            sure = each.heard_at >= each.ended_at + SETTLED and not alive
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

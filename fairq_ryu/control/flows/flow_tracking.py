"""Flow tracking: what copies of segments, removed rules, silence and agents' records mean for flows.

Theory of operation
-------------------

A connection is known from copies of its SYN, FIN and RST segments. A bridge that is governed by paths sends
them for the port where they enter the network; for any other bridge its agent does, for the port where they
leave it, and the agents of all bridges on their way do the same. Its states are those of
:mod:`fairq_ryu.fabric.flows.connection`; the flow table applies a segment to them and returns flow events: a
flow starts or ends on a port. There are four sources of events:

- **Copies.** A copy is queued by the greenlet that has received it, and a worker applies the copies in their
  order. Agents' messages are handled first: when many flows end together, reports of queues, losses and
  receivers would otherwise wait behind the copies of all their FINs. Three things are done at once. Two of
  them may be needed by an agent's next report: the addresses of a SYN are learned, and losses of an earlier
  connection with the same ports are forgotten. The third: the agent of the bridge is told the deadline of an
  announced connection, because the SYN may wait there for its turn.
- **Removed rules.** A pinned rule that times out ends its connection.
- **Records.** An agent's flow records are compared with the flow table, which corrects what copies missed
  (:mod:`~fairq_ryu.control.flows.record_tracking`).
- **Silence.** Where no agent reports what is alive, a connection without copies expires.

All events take one way, :meth:`FlowTracker.apply`: windows first, then the path of a connection that is over
is released. A copy does not show whether its segment is in sequence: only agents know that, and their records
list a connection as open that a forged FIN or RST has ended here. Then it gets a path again. A SYN that is
held (:mod:`~fairq_ryu.control.flows.syn_admission`) enters by :meth:`FlowTracker.apply_segment`.

Bounds: of :data:`MAX_ENDED` connections that have ended the paths are remembered, for :data:`_ENDED_S`
seconds. :data:`MAX_COPIES` copies are queued. For each copy beyond, the oldest is applied at once, by the
greenlet that brings the new one, and none is lost: no more is read from its switch meanwhile. The worker lets
other greenlets run after :data:`_SLICE` seconds, and so does the removal of connections after each slice of
them. The flow table has bounds of its own.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from ryu.lib import hub

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.control.worker import Worker
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.fabric.flows.table import FlowEvent, FlowState, FlowTable
from fairq_ryu.fabric.topology.paths import Assigned
from fairq_ryu.model import FlowKey, PortKey, TcpSegment, new_tuple
from fairq_ryu.openflow import paths
from fairq_ryu.packet import parse

MAX_COPIES = 4096
MAX_ENDED = 16384
# As long as the rules of a pinned connection stay after a FIN or RST.
_ENDED_S = float(paths.CLOSED_IDLE)
_SLICE = 0.0005


class _Copy(NamedTuple):
    """A copied segment; ``leaves``: ``port`` is where it has left a bridge, not where it came in.
    ``foreign``: when it came it was a SYN that did not belong to its connection.
    """

    frame: parse.Frame
    segment: TcpSegment
    port: PortKey
    received: float
    leaves: bool
    foreign: bool


class FlowTracker:
    """Turns events of one network into flow events. Times in seconds of one clock."""

    def __init__(
        self, fabric: FabricController, flows: FlowTable, windows: WindowController, log: logging.Logger
    ) -> None:
        self._fabric = fabric
        self._flows = flows
        self._windows = windows
        self._log = log
        self._copies: deque[_Copy] = deque()
        # The paths of connections that have ended, and when that was; the first of them ended first.
        self._ended: dict[FlowKey, tuple[float, Assigned]] = {}
        self._worker = Worker(self.drain)

    # Copies

    @property
    def waiting(self) -> int:
        """The number of copies that wait to be applied, :data:`MAX_COPIES` at most."""
        return len(self._copies)

    def copied(self, frame: parse.Frame, segment: TcpSegment, in_port: PortKey, now: float) -> None:
        """Queue the copy of a SYN, FIN or RST. A SYN of a flood costs no more than to be noted."""
        if self._flows.parks(segment, in_port):
            self._flows.segment(segment, in_port, None, now)
            return
        if segment.syn:
            self._windows.syn_seen(frame)
            self._fabric.hosts.address_seen(frame.src, in_port, segment.key.src, frame.vlan)
            if not segment.ack:
                self._windows.syn_copied(segment.key, in_port.dpid, now)
        foreign = self._flows.is_foreign(segment)
        self._queue(new_tuple(_Copy, (frame, segment, in_port, now, False, foreign)), now)

    def copied_by_agent(self, link: AgentLink, number: int, data: bytes, now: float) -> None:
        """Queue the copy of a segment that has left the bridge of an agent by a port, unless it is no SYN,
        FIN or RST of TCP, or the bridge copies them itself now.
        """
        port = PortKey(link.dpid, number)
        frame = parse.parse(data, self._fabric.logical_ports.settings(port).untagged)
        if frame is None or frame.tcp is None or link.dpid in self._fabric.bridges:
            return
        segment = frame.tcp
        if segment.syn:
            self._windows.syn_left(frame, link.dpid)
            if not segment.ack:
                self._windows.syn_copied(segment.key, link.dpid, now)
        foreign = self._flows.is_foreign(segment)
        self._queue(_Copy(frame, segment, port, now, True, foreign), now)

    def _syn_seen(self, copy: _Copy) -> None:
        if copy.leaves:
            self._windows.syn_left(copy.frame, copy.port.dpid)
        else:
            self._windows.syn_seen(copy.frame)

    def _queue(self, copy: _Copy, now: float) -> None:
        self._copies.append(copy)
        self._worker.wake()
        if len(self._copies) > MAX_COPIES:
            self._apply_copy(self._copies.popleft(), now)

    def _apply_copy(self, copy: _Copy, now: float) -> None:
        segment = copy.segment
        try:
            if copy.leaves:
                self.apply(self._flows.left(segment, copy.port, now), now, copy.received)
            else:
                self.apply_segment(copy.frame, segment, copy.port, now, copy.received)
            # It was not believed when it came, and its ports turn out to be used again.
            if copy.foreign and not self._flows.is_foreign(segment):
                self._syn_seen(copy)
        except Exception:  # as Ryu does with events: one that fails must not end the worker
            self._log.exception("a copy of a segment is lost")

    def run(self) -> None:
        """The worker: apply copies as they come."""
        self._worker.run()

    def drain(self) -> None:
        """Apply all queued copies, and let other greenlets run in between."""
        until = time.monotonic() + _SLICE
        while self._copies:
            now = time.monotonic()
            self._apply_copy(self._copies.popleft(), now)
            if now >= until:
                hub.sleep(0)
                until = time.monotonic() + _SLICE

    def apply_segment(
        self,
        frame: parse.Frame,
        segment: TcpSegment,
        in_port: PortKey,
        now: float,
        received: float | None = None,
    ) -> tuple[Assigned | None, list[Any]]:
        """Apply a SYN, FIN or RST: assign its connection a path and update its state. ``received``: when it
        came, if that was earlier. Returns the path, and the agents that were sent rules.
        """
        # Only a SYN can begin a path; the flow table knows the path of a connection that it has. A SYN that
        # is not of this connection may have been sent by anybody, from anywhere: it begins and moves none,
        # unless it turns out that the connection's ports are used again.
        foreign = self._flows.is_foreign(segment)
        found = self._assign(frame, segment, in_port) if segment.syn and not foreign else None
        path = None if found is None else found.path
        informed = self.apply(self._flows.segment(segment, in_port, path, now), now, received)
        if foreign and not self._flows.is_foreign(segment):
            found = self._assign(frame, segment, in_port)
            if found is not None:
                self.move(found, now)
        return found, informed

    def _assign(self, frame: parse.Frame, segment: TcpSegment, in_port: PortKey) -> Assigned | None:
        return self._fabric.assign_path(segment.key, in_port, frame.dst)

    # Rules, records and silence

    def path_rule_expired(self, match: Any, now: float) -> None:
        """The rule of a pinned connection has timed out."""
        key = paths.flow_of(match)
        if key is not None:
            self.apply(self._flows.removed(key, now), now)

    def port_removed(self, port: PortKey, now: float) -> None:
        """A bridge's port was removed: no flow passes it any more."""
        self.apply(self._flows.forget_port(port), now)

    def handed_over(self, dpid: int, now: float) -> None:
        """Another controller owns a bridge, and knows its connections, from now on."""
        self.apply(self._flows.hand_over(dpid), now)

    def drop_expired(self) -> None:
        """Forget closed connections, and end those whose SYN was not answered."""
        now = time.monotonic()
        self._apply_slices(self._flows.drop_expired(now))
        while self._ended and next(iter(self._ended.values()))[0] < now - _ENDED_S:
            self._ended.pop(next(iter(self._ended)))

    def _apply_slices(self, slices: Iterable[list[FlowEvent]]) -> None:
        """Apply events slice by slice, and let other greenlets run in between."""
        for events in slices:
            self.apply(events, time.monotonic())
            hub.sleep(0)

    def expire(self) -> None:
        """End connections that have been silent for the idle timeout, and forget what belongs to none."""
        self._apply_slices(self._flows.drop_idle(time.monotonic()))
        self._windows.injector.prune()
        self._windows.prune(time.monotonic())
        for assigned in in_steps(self._fabric.paths, LOOKS_PER_STEP):
            if self._flows.get(assigned.key) is None:
                self._fabric.release_path(assigned.key, closed=False)

    def move(self, path: Assigned, now: float) -> None:
        """A connection has another path."""
        self.apply(self._flows.repath(path.key, path.path, now), now)

    # Events

    def apply(self, events: list[FlowEvent], now: float, received: float | None = None) -> list[Any]:
        """Flows started or ended on ports: update the windows, and release the paths of connections that are
        over. ``received``: when the segment behind the events came, if that was earlier. Returns the agents
        that were sent rules.
        """
        informed = self._windows.apply(events, now, received)
        for event in events:
            if not event.started:
                self._release_if_over(event.flow.key, now)
            elif self._ended:
                self._give_path_back(event.flow.key, now)
        return informed

    def _release_if_over(self, key: FlowKey, now: float) -> None:
        """A connection that is on no port any more needs no path."""
        connection = self._flows.get(key)
        if connection is None or connection.state is FlowState.CLOSED:
            known = self._fabric.release_path(key, closed=connection is not None)
            if connection is not None and known is not None and known.way:
                self._ended[key.connection] = now, known
                if len(self._ended) > MAX_ENDED:
                    self._ended.pop(next(iter(self._ended)))
            self._windows.flow_over(key)

    def _give_path_back(self, key: FlowKey, now: float) -> None:
        """A connection is counted: if it was taken for ended, and no SYN has begun another one with the same
        ports, it had not ended.
        """
        _, known = self._ended.pop(key.connection, (now, None))
        if known is None or self._fabric.paths.get(key) is not None:
            return
        found = self._fabric.restore_path(known)
        if found is not None:
            self.move(found, now)

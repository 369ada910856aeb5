"""Flow records: what agents report of their flows, applied to the flow table in short steps.

    agent -> a chunk of changes -> queue -> steps of some records each -> flow events -> windows, paths
      ^                                                          |
      +-------- the next chunk is asked for, if there are more --+

An agent that has tens of thousands of flows reports them in chunks, and another one only when the last was
applied; so at most one chunk of each agent is queued. One worker applies the chunks in the order of their
arrival, and lets other greenlets run after :data:`_SLICE` seconds. When an agent has no more changes, the
rules of :mod:`fairq_ryu.fabric.flows.changes` are applied for what it lists.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from ryu.lib import hub

from fairq_ryu.channel import flow_changes, flow_records
from fairq_ryu.channel.flow_changes import Changes, ChunkFlags
from fairq_ryu.channel.segment_state import KEY_SIZE
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.control.worker import Worker
from fairq_ryu.fabric.flows.table import FlowEvent, FlowTable, SeenFlow
from fairq_ryu.model import PortKey, new_tuple

_SLICE = 0.0005
# Records that are applied in a step: each takes 10 to 40 microseconds.
STEP = 25

Steps = Iterator[list[FlowEvent]]


class RecordTracker:
    """Applies agents' records to the flow table. ``apply`` gets the flow events, and the time in seconds."""

    def __init__(
        self,
        flows: FlowTable,
        windows: WindowController,
        apply: Callable[[list[FlowEvent], float], Any],
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._flows, self._windows, self._apply, self._log = flows, windows, apply, log
        self._clock = clock
        self._queue: deque[tuple[AgentLink, Steps]] = deque()
        self._worker = Worker(self.drain)

    def changed(self, link: AgentLink, xid: int, reply: Changes, now: float) -> None:
        """An agent has reported a chunk of changes."""
        if link.flow_records.answered(xid):
            self._queue.append((link, self._changes(link, reply, now)))
            self._worker.wake()

    def run(self) -> None:
        """The worker: apply reports as they come."""
        self._worker.run()

    def drain(self) -> None:
        """Apply all reports, and let other greenlets run in between."""
        until = self._clock() + _SLICE
        while self._queue:
            link, steps = self._queue.popleft()
            if self._windows.links.get(link.dpid) is not link:
                continue  # its connection has ended
            try:
                for events in steps:
                    now = self._clock()
                    if events:
                        self._apply(events, now)
                    if self._clock() >= until:
                        hub.sleep(0)
                        until = self._clock() + _SLICE
                    if self._windows.links.get(link.dpid) is not link:
                        break  # its connection has ended
            except Exception:  # as Ryu does with events: one that fails must not end the worker
                self._log.exception("a report of flow records is lost")
                link.flow_records.restart()

    # Steps: the events of each are applied before the next

    def _changes(self, link: AgentLink, reply: Changes, now: float) -> Steps:
        flows, dpid, head = self._flows, link.dpid, reply.head
        if ChunkFlags.ANEW in head.flags:
            flows.list_anew(dpid, now)
        elif not flows.lists(dpid):  # the bridge was forgotten meanwhile
            link.flow_records.restart()
            return
        size = STEP * KEY_SIZE
        for at in range(0, len(reply.removed), size):
            gone = flow_changes.decode_removed(reply.removed[at : at + size])
            yield flows.changed(dpid, (), gone, now)
        for part in _connections(_decoded(reply.records)):
            yield flows.changed(dpid, [_seen(dpid, record) for record in part], (), now)
            self._windows.flows_counted(link, part, now)
        link.flows_unscaled, link.records = head.unscaled, head.active
        if ChunkFlags.MORE not in head.flags:
            known = head.age_ms != flow_changes.NEVER_MS
            as_of = now - head.age_ms / 1000 if known else -math.inf
            if link.flow_records.leaves_out(now):
                as_of -= flow_changes.LEAVE_OUT_MS / 1000
            yield from flows.changes_complete(dpid, as_of, head.refresh_ms / 1000, now)
        link.send(link.flow_records.applied(head, self._clock()))


# Hundreds of thousands of records are of some thousand ports: all that is kept of them shares one object.
_port_key = lru_cache(maxsize=16384)(PortKey)


def _seen(dpid: int, record: flow_records.FlowRecord) -> SeenFlow:
    key, port, flags, wscale, mss, idle_ms, size, _, rewritten, _, rtt_us = record
    closed = bool(flags & flow_records.CLOSED)
    fields = key, _port_key(dpid, port), closed, idle_ms / 1000, size, wscale, mss, rtt_us / 1e6, rewritten
    return new_tuple(SeenFlow, fields)


def _decoded(data: bytes) -> Iterator[flow_records.FlowRecord]:
    """Encoded records, decoded when they are needed."""
    size = STEP * flow_records.RECORD_SIZE
    for at in range(0, len(data), size):
        yield from flow_records.decode_reply(data[at : at + size])


def _connections(found: Iterable[flow_records.FlowRecord]) -> Iterator[list[flow_records.FlowRecord]]:
    """Records in lists of about :data:`STEP`; both directions of a connection, which follow each other, are
    in one list.
    """
    part: list[flow_records.FlowRecord] = []
    for record in found:
        if len(part) >= STEP and record.key != part[-1].key.reversed:
            yield part
            part = []
        part.append(record)
    if part:
        yield part

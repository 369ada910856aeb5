"""SYN admission: a held SYN is sent on when the path and the windows of its connection are installed.

Theory of operation
-------------------

With ``syn = hold``, bridges send SYNs to the controller instead of forwarding them
(:mod:`~fairq_ryu.control.paths.hold_rules`). Each passes these states:

1. *Queued* in :class:`~fairq_ryu.control.flows.syn_queue.SynQueue`. Flows with an announced deadline come
   first, and ports take turns, so that a port that floods delays itself.
2. *Taken* by the worker, one at a time: its connection gets a path and is counted
   (:meth:`FlowTracker.apply_segment`), which sends rules to bridges and agents.
3. *Waiting* for barrier replies of the switches that were sent rules: the agents with new windows, and the
   bridges on a path that is newly pinned. With no rules sent, nothing is waited for.
4. *Released*: sent along its path, or flooded if the other end is not known.

A SYN whose bridge has disconnected is dropped in state 2; its sender repeats it. Fail open: a wait ends after
the sender's barrier timeout, and the hold rules of a dead controller expire with their lease.

Bounds: :data:`MAX_QUEUED` SYNs are queued. The next one is taken at once, in the event loop of the
application. There is one event loop for the messages of all switches, except copies of segments: they wait
meanwhile, and Ryu stops reading from their connections when its queue of events is full. The worker lets
other greenlets run after each SYN: barrier replies and queued messages come before the next.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from ryu.lib import hub

from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.flows.syn_queue import SynQueue
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.control.worker import Worker
from fairq_ryu.fabric.topology.paths import Assigned
from fairq_ryu.model import PortKey
from fairq_ryu.openflow.pipeline import Datapath
from fairq_ryu.packet import parse

MAX_QUEUED = 4096


class SynAdmission:
    """The held SYNs of one network. Times in seconds of one clock."""

    def __init__(
        self, fabric: FabricController, windows: WindowController, tracker: FlowTracker, log: logging.Logger
    ) -> None:
        self._fabric = fabric
        self._windows = windows
        self._tracker = tracker
        self._log = log
        self._queue: SynQueue[tuple[Datapath, parse.Frame, bytes, PortKey, float]] = SynQueue()
        self._worker = Worker(self.drain)

    def hold(self, datapath: Datapath, frame: parse.Frame, data: bytes, in_port: PortKey, now: float) -> None:
        """Queue a SYN that a bridge holds."""
        if frame.tcp is not None:
            self._windows.syn_seen(frame)
        if len(self._queue) >= MAX_QUEUED:
            self._admit(datapath, frame, data, in_port, now, now)
            return
        deadline = None if frame.tcp is None else self._windows.deadline_of(frame.tcp.key, now)
        self._queue.add((datapath, frame, data, in_port, now), in_port, deadline, now)
        self._worker.wake()

    def run(self) -> None:
        """The worker: admit SYNs as they come."""
        self._worker.run()

    def drain(self) -> None:
        """Admit all queued SYNs, and let other greenlets run after each."""
        while self._queue:
            try:
                self._admit(*self._queue.take(), time.monotonic())
            except Exception:  # as Ryu does with events: one that fails must not end the worker
                self._log.exception("a SYN that was held is lost")
            hub.sleep(0)

    def _admit(
        self,
        datapath: Datapath,
        frame: parse.Frame,
        data: bytes,
        in_port: PortKey,
        received: float,
        now: float,
    ) -> None:
        """Install path and windows of a SYN's connection; release it when switches have confirmed them."""
        if self._fabric.bridges.get(datapath.id) is not datapath:
            return
        self._fabric.host_seen(datapath, frame, in_port, now)
        path: Assigned | None = None
        informed: list[Any] = []
        key = None if frame.tcp is None else frame.tcp.key
        if frame.tcp is not None:
            before = self._fabric.paths.get(frame.tcp.key)
            path, informed = self._tracker.apply_segment(frame, frame.tcp, in_port, now, received)
            if path is not None and path.pinned and path != before:
                informed = informed + self._fabric.bridges_on(path)
        self._fabric.after_barriers(
            informed, lambda: self._fabric.forward_held(datapath, data, in_port, key, path)
        )

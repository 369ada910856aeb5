"""Rerouting: when the network changes, routes are computed again and connections move to their new paths.

Changes come in groups: a switch that connects brings its ports, a failed link its other direction. A worker
computes the routes :data:`_DELAY` seconds after the first change of a group, once for all. While a large
network connects, changes come without end, and each computation is about the whole network: then they are
spaced by a multiple of what one costs (:data:`_REST`), so that most of the time is left for the switches.
"""

from __future__ import annotations

import time

from fairq_ryu.control.flows.flow_tracking import FlowTracker
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.control.worker import Worker

_DELAY = 0.01
# The pause after a computation: a multiple of the time that it took, and the longest pause, seconds.
_REST, _LONGEST_REST = 8.0, 0.5


class Rerouting:
    """Keeps the routes of one network up to date."""

    def __init__(
        self,
        fabric: FabricController,
        windows: WindowController,
        tracker: FlowTracker,
        reporter: EventReporter,
    ) -> None:
        self._fabric = fabric
        self._windows = windows
        self._tracker = tracker
        self._reporter = reporter
        self._worker = Worker(self._refresh_if_stale, _DELAY, _REST, _LONGEST_REST)

    def notify(self) -> None:
        """Something has happened that may have changed the network."""
        if self._fabric.stale:
            self._worker.wake()

    def run(self) -> None:
        """The worker: compute routes after each group of changes."""
        self._worker.run()

    def _refresh_if_stale(self) -> None:
        if self._fabric.stale:
            self.refresh(time.monotonic())

    def refresh(self, now: float) -> None:
        """Compute the routes, install them, and move connections."""
        self._windows.name_ports(now)
        for move in self._fabric.refresh():
            self._reporter.moved(move)
            self._tracker.move(move.new, now)

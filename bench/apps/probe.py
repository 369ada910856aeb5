# mypy: allow-subclassing-any
"""``ryu-manager APP bench.apps.probe``: how late the controller's event loop is, and how much it knows.

A greenlet sleeps for :data:`INTERVAL` again and again; how much later it continues is the delay of the loop,
which any event meets. The file that the environment variable :data:`FILE` names gets a line of JSON every
tenth of a second: a :class:`Sample`. With :data:`LASTING`, ``N:PORT``, the connections are counted whose
client has a port up to PORT, until there are N.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, NamedTuple

from ryu.base import app_manager
from ryu.lib import hub

from fairq_ryu.apps.controller import Controller

FILE, LASTING = "FAIRQ_BENCH_PROBE", "FAIRQ_BENCH_LASTING"
INTERVAL = 0.002
WRITE = 0.1
"""Least time between two samples, seconds."""
# Connections that are looked at before others run: about a millisecond. So a hundred thousand are looked at
# in some dozen turns of the event loop; with many more turns, the count would take seconds.
_LOOKS = 4000


class Sample(NamedTuple):
    """The time (of the monotonic clock, seconds), the connected agents and bridges, the connections in the
    flow table, whether all lasting ones are among them, and the delays since the last sample, microseconds:
    ``late`` in all, ``own`` without the time for which the process could run and had no processor.
    """

    time: float
    agents: int
    bridges: int
    connections: int
    complete: bool
    late: list[int]
    own: list[int]


class Probe(app_manager.RyuApp):
    """Measures the controller in the same process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file = open(os.environ[FILE], "w", encoding="ascii", buffering=1)  # noqa: SIM115
        wanted, _, port = os.environ.get(LASTING, "0:0").partition(":")
        self._wanted, self._port = int(wanted), int(port)
        self._complete = False
        hub.spawn(self._measure)
        hub.spawn(self._count)

    @property
    def _controller(self) -> Controller | None:
        apps = app_manager.SERVICE_BRICKS.values()
        return next((app for app in apps if isinstance(app, Controller)), None)

    def _measure(self) -> None:
        late: list[int] = []
        own: list[int] = []
        written = time.monotonic()
        schedule = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        waited = _waited_ns(schedule)
        while True:
            due = time.monotonic() + INTERVAL
            hub.sleep(INTERVAL)
            now, before, waited = time.monotonic(), waited, _waited_ns(schedule)
            late.append(max(0, round((now - due) * 1e6)))
            own.append(max(0, late[-1] - (waited - before) // 1000))
            if now - written >= WRITE:
                written = now
                self._write(now, late, own)
                late, own = [], []

    def _write(self, now: float, late: list[int], own: list[int]) -> None:
        controller = self._controller
        if controller is not None:
            known = (len(controller.windows.links), len(controller.fabric.bridges), controller.flows.open)
            sample = Sample(now, *known, self._complete, late, own)
            self._file.write(json.dumps(sample) + "\n")

    def _count(self) -> None:
        """Count the lasting connections, once there are enough of any."""
        while not self._complete:
            hub.sleep(WRITE)
            controller = self._controller
            if controller is None or controller.flows.open < self._wanted:
                continue
            found = 0
            for number, each in enumerate(controller.flows, 1):
                found += max(each.forward.sport, each.forward.dport) <= self._port
                if number % _LOOKS == 0:
                    hub.sleep(0)
            self._complete = found >= self._wanted


def _waited_ns(schedule: int) -> int:
    """The time for which this thread could run and had no processor."""
    return int(os.pread(schedule, 64, 0).split()[1])

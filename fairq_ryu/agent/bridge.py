"""One bridge of an agent: what its controllers see, its ports, its timers and its status.

OVSDB (a thread) --> BridgePorts --------> BridgePrograms <--- programs of the host
|                   |       ^
v  PORT_STATUS      v       | rules, thresholds
controllers <---- ControllerConnection <-- OpenFlowServer
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import ssl
import time
from collections import Counter
from collections.abc import Coroutine, Iterable
from typing import Any

from fairq_ryu.agent import status
from fairq_ryu.agent.bridge_lock import BridgeLock
from fairq_ryu.agent.controller_connection import ControllerConnection
from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.agent.filter_watch import FilterWatch
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.options import AgentOptions
from fairq_ryu.agent.ovsdb import BridgeView, BridgeWatcher
from fairq_ryu.agent.ports import BridgePorts
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.copies import CopyRecord
from fairq_ryu.agent.programs.drops import DropRecord
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.errors import UserError, quoted
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.model import dpid_text

log = logging.getLogger(__name__)
# A view that could not be followed is tried again after so long, seconds.
_AGAIN = 1.0
# Who asks for the status at one moment; others wait.
_MOST_ASKING = 100


class AgentBridge:
    """A bridge, in this order: :meth:`watch`, :meth:`open`, :meth:`start`, :meth:`close`."""

    def __init__(self, name: str, options: AgentOptions) -> None:
        """Raises :class:`UserError` if it has an agent already."""
        self.name, self._options = name, options
        self.connections: list[ControllerConnection] = []
        self._loop = asyncio.get_running_loop()
        self._views: asyncio.Queue[BridgeView | None] = asyncio.Queue()
        self._watcher = BridgeWatcher(name, self._changed)
        self._status: socket.socket | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._notice_timer: asyncio.TimerHandle | None = None
        self._recovery_timer: asyncio.TimerHandle | None = None
        self._lock = BridgeLock(name)

    def _changed(self, view: BridgeView | None) -> None:
        with contextlib.suppress(RuntimeError):  # the agent has ended, and its loop is closed
            self._loop.call_soon_threadsafe(self._views.put_nowait, view)

    def watch(self) -> BridgeView:
        """Follow the bridge from now on. Raises :class:`UserError` as :meth:`BridgeWatcher.start`."""
        self.view = self._watcher.start()
        return self.view

    @property
    def far_queues(self) -> list[FarQueue]:
        """The configured far queues, of whatever bridge of the agent, and its parts of uplinks, which are in
        place of those. Raises :class:`UserError` if uplinks have a port twice.
        """
        parts = [part for each in self._options.uplinks for part in each.parts_at(self.name, self.view.dpid)]
        for port, number in Counter(part.port for part in parts).items():
            if number > 1:
                raise UserError(
                    f"the uplinks have port {port} of bridge {self.name} twice, by its name and by its dpid",
                    "name each port once",
                )
        return [*self._options.far_queues, *parts]

    def open(self, host: HostPrograms, filters: FilterWatch, tls: ssl.SSLContext | None) -> None:
        """Make what controllers see, by the loaded programs. Raises :class:`UserError`."""
        self._filters, self.programs = filters, BridgePrograms(host)
        self.server = self._openflow_server()
        far = FarTable(self.far_queues)
        self.ports = BridgePorts(self.name, self.view, self.programs, self.server, self._reconnect, far)
        self.server.far = self.ports
        self.connections = [
            ControllerConnection(target, tls, self.server, self.send_notices)
            for target in self._options.targets
        ]

    async def start(self) -> list[Coroutine[Any, Any, None]]:
        """Start on the ports, and answer questions for the status. Returns what is to be run."""
        self.ports.update(self.view)
        await self.ports.read_queue_limits()
        self._status = self._listen_for_status()
        runs = (connection.run() for connection in self.connections)
        return [self._follow(), self._serve_status(self._status), *runs]

    def close(self) -> None:
        """Stop all but the programs. A second call does nothing."""
        self._watcher.stop()
        for timer in (self._notice_timer, self._recovery_timer):
            if timer is not None:
                timer.cancel()
        if self._status is not None:
            self._status.close()
            self._status = None
            with contextlib.suppress(OSError):
                status.socket_path(self.name).unlink()

    def release(self) -> None:
        """Nothing of the agent is left on the bridge: another may run there."""
        self._lock.release()

    def _openflow_server(self) -> OpenFlowServer:
        rules = self._options.limits.counters
        try:
            return OpenFlowServer(self.name, self.view.dpid, self.programs, rules)
        except ValueError as error:
            raise UserError(
                f"bridge {self.name}: {error}, where the agent's own id goes",
                "set one that does not: ovs-vsctl set bridge "
                f"{quoted(self.name)} other-config:datapath-id=0000<12 hex digits>",
            ) from None

    def _reconnect(self) -> None:
        for connection in self.connections:
            connection.close()

    async def _follow(self) -> None:
        """Carry out each view of the bridge. One that fails is tried again, unless there is a newer one by
        then; a failure is logged once.
        """
        view, failing = await self._views.get(), False
        while True:
            try:
                await self._carry_out(view)
                failing = False
            except Exception:
                if not failing:
                    log.exception("bridge %s: its ports cannot be followed; trying again", self.name)
                failing = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN if failing else None):
                    view = await self._views.get()

    async def _carry_out(self, view: BridgeView | None) -> None:
        # Without an id, Open vSwitch is still making it.
        if view is None or not view.dpid:
            self.ports.remove_all()
            return
        self.view = view
        if self.ports.update(view):
            await self.ports.read_queue_limits()

    # Events from the kernel

    def crossed(self, interfaces: Iterable[int]) -> None:
        """The queues of these interfaces have crossed thresholds."""
        self.server.congestion.mark_crossed(self.programs.crossed(interfaces))
        self.send_notices()

    def send_notices(self) -> None:
        """Send the congestion notices that are due, and set a timer for the next."""
        now = time.monotonic_ns()
        self.server.congestion.send_due(now)
        due = self.server.congestion.next_ns
        if due is not None and self._notice_timer is None:
            self._notice_timer = self._loop.call_later(max(0, due - now) / 1e9, self._on_notice_timer)

    def _on_notice_timer(self) -> None:
        self._notice_timer = None
        self.send_notices()

    def dropped(self, records: Iterable[DropRecord]) -> None:
        """These packets were dropped on the host."""
        packets, now = self.programs.dropped(records), time.monotonic_ns()
        self.server.recovery.dropped(packets, now)
        self.server.congestion.report_drops(packets, now)
        self._set_recovery_timer(now)

    def copied(self, records: Iterable[CopyRecord]) -> None:
        """These segments were copied on the host."""
        self.server.copier.deliver(self.programs.copied(records), time.monotonic_ns())

    def _set_recovery_timer(self, now: int) -> None:
        if self._recovery_timer is not None:
            self._recovery_timer.cancel()
            self._recovery_timer = None
        due = self.server.recovery.next_ns
        if due is not None:
            self._recovery_timer = self._loop.call_later(max(0, due - now) / 1e9, self._on_recovery_timer)

    def _on_recovery_timer(self) -> None:
        self.server.recovery.work(time.monotonic_ns())
        self._set_recovery_timer(time.monotonic_ns())

    # Periodic jobs

    async def expire_rules(self) -> None:
        """Remove what has expired."""
        now = time.monotonic_ns()
        self.server.expire_rules(now)
        self.ports.expire_far_rates(now)

    async def read_silent_queues(self) -> None:
        """Read the queues that have had no event for too long."""
        corrected = await self.ports.read_silent_queues()
        if corrected:
            # No event has told that they are no longer congested.
            self.server.congestion.mark_crossed(corrected)
            self.send_notices()

    # Status

    def _listen_for_status(self) -> socket.socket:
        path = status.socket_path(self.name)
        with contextlib.suppress(OSError):
            path.unlink()  # we hold the lock: a socket that exists is a dead agent's
        listening = socket.socket(socket.AF_UNIX)
        listening.setblocking(False)
        try:
            listening.bind(str(path))
        except OSError as error:
            listening.close()
            raise UserError(f"cannot make {path}: {error}", "set FAIRQ_RUNDIR to another directory") from None
        os.chmod(path, 0o600)
        listening.listen(_MOST_ASKING)
        return listening

    async def _serve_status(self, listening: socket.socket) -> None:
        """Not asyncio's server: without a free file descriptor it tries a hundred times in a row, prints a
        traceback for each, and tries as often again a second after each of them.
        """
        loop, failing = asyncio.get_running_loop(), False
        while True:
            try:
                asking, _ = await loop.sock_accept(listening)
                failing = False
            except OSError as error:
                if not failing:
                    why = error.strerror
                    log.warning("bridge %s: fairq status has no answer (%s); trying again", self.name, why)
                failing = True
                await asyncio.sleep(_AGAIN)
                continue
            task = loop.create_task(self._answer_status(asking))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer_status(self, asking: socket.socket) -> None:
        with asking, contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(status.ANSWER_S):
                answer = json.dumps(self._told()).encode()
                await asyncio.get_running_loop().sock_sendall(asking, answer)

    def _told(self) -> dict[str, Any]:
        server = self.server
        return {
            "bridge": self.name,
            "bridges": self._options.bridges,
            "dpid": dpid_text(server.dpid),
            "deleted": self.ports.deleted,
            "pid": os.getpid(),
            "uptime_s": server.age_ns(time.monotonic_ns()) / 1e9,
            "controllers": [
                {"target": each.target.text, "connected": each.connected} for each in self.connections
            ],
            "windows_only": [
                {"names": device.names, "ifindex": device.ifindex, "reason": device.reason}
                for device in self.programs.devices.values()
            ],
            "unwatched": [{"name": name, "reason": reason} for name, reason in self.ports.unwatched],
            **status.snapshot(
                self.programs,
                self._filters,
                server.table,
                server.laws,
                server.congestion,
                server.recovery,
                server.injector,
                server.copier,
                server.queue_table,
                server.queue_laws,
            ),
        }

"""``fairq agent``: the process beside an OVS bridge. Connects ports, eBPF programs and controllers.

    OVSDB (a thread) --> BridgePorts --------> BridgePrograms <---- eBPF maps
                              |                   |       ^
                              v  PORT_STATUS      v       | rules, thresholds
    controllers <---- ControllerConnection <-- OpenFlowServer

One thread follows OVSDB; everything else runs in one asyncio loop. If the agent dies, traffic continues: the
eBPF programs ignore every rule whose lease has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fairq_ryu.agent import privileges, service_manager, status
from fairq_ryu.agent.bridge_lock import BridgeLock
from fairq_ryu.agent.controller_connection import ControllerConnection
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.options import AgentOptions
from fairq_ryu.agent.ovsdb import BridgeView, BridgeWatcher
from fairq_ryu.agent.ports import BridgePorts
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.window import HERITAGE
from fairq_ryu.agent.turn_clock import TurnClock
from fairq_ryu.errors import UserError
from fairq_ryu.model import dpid_text

log = logging.getLogger(__name__)
# Dropped packets, and copies, that are handled before other tasks of the loop run.
_MAX_DROPS = _MAX_COPIES = 64


class Agent:
    """A running agent. :meth:`run` returns after :meth:`stop`."""

    def __init__(self, options: AgentOptions) -> None:
        self.options = options
        self._connections: list[ControllerConnection] = []
        self._flows = 0
        self._evicted = 0
        self._stop = asyncio.Event()
        self._readers: list[int] = []
        self._notice_timer: asyncio.TimerHandle | None = None
        self._recovery_timer: asyncio.TimerHandle | None = None

    def _jobs(self) -> list[tuple[str, float, Callable[[], Awaitable[None]]]]:
        """The periodic jobs: what is done, how often (seconds), by which function."""
        return [
            ("removing expired rules", 0.1, self._expire_rules),
            ("reading queue limits", 1.0, self._ports.read_queue_limits),
            ("reading queues without events", 0.1, self._read_silent_queues),
            ("starting on failed ports", 1.0, self._ports.retry_failed),
            # By then the hosts behind new ports have been set up.
            ("checking far ends of ports", 5.0, self._ports.check_peers),
            ("sweeping the flow map", 1.0, self._sweep_flows),
        ]

    async def run(self, ready: Callable[[int], None]) -> None:
        """Serve until :meth:`stop`. ``ready`` is called with the number of ports once the programs run on
        them.

        Raises :class:`UserError` or :class:`BpfError`; everything that was attached is detached.
        """
        loop = asyncio.get_running_loop()
        options = self.options
        tls = options.tls.context() if any(t.secure for t in options.targets) else None
        lock = BridgeLock(options.bridge)
        views: asyncio.Queue[BridgeView | None] = asyncio.Queue()

        def changed(view: BridgeView | None) -> None:
            loop.call_soon_threadsafe(views.put_nowait, view)

        watcher = BridgeWatcher(options.bridge, changed)
        status_server: asyncio.Server | None = None
        tasks: list[asyncio.Task[None]] = []
        programs: BridgePrograms | None = None
        loaded = False
        clock: TurnClock | None = None
        try:
            programs = self._programs = BridgePrograms(options.limits)
            view = watcher.start()
            self._server = self._openflow_server(view)
            self._ports = BridgePorts(options.bridge, view, programs, self._server, self._reconnect)
            self._connections = [
                ControllerConnection(target, tls, options.reconnect_max, self._server, self._send_notices)
                for target in options.targets
            ]
            loaded = self._load(view)
            self._programs.window.read_in_thread()
            programs.turn_program.wake = self._server.injector.wake_one
            clock = TurnClock(loop, programs.turn_program, programs.turns)
            self._ports.update(view)
            self._add_readers(loop)
            await self._ports.read_queue_limits()
            status_server = await self._serve_status()
            work: list[Coroutine[Any, Any, None]] = [
                self._follow_bridge(views),
                *(_repeat(*job) for job in self._jobs()),
                *(connection.run() for connection in self._connections),
            ]
            tasks = [asyncio.create_task(each) for each in work]
            ready(len(programs.ports))
            service_manager.ready()
            stopping = asyncio.create_task(self._stop.wait())
            done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            for task in done - {stopping}:
                task.result()  # a task that ends has failed: raise why
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            watcher.stop()
            self._remove_readers(loop)
            if clock is not None:
                clock.stop()
            if status_server is not None:
                status_server.close()
                with contextlib.suppress(OSError):
                    status.socket_path(options.bridge).unlink()
            if loaded:
                # After an orderly end segments pass that nobody counts: the next agent starts anew.
                service_manager.forget(HERITAGE)
            if programs is not None:
                programs.close()
            lock.release()

    def _load(self, view: BridgeView) -> bool:
        """Load the programs, with the flows of an agent that has died. Returns True."""
        kept = service_manager.kept()
        try:
            inherited = self._programs.load(list(view.ports), kept)
        finally:
            for fd in kept.values():
                os.close(fd)
        service_manager.keep(self._programs.window.heritage)
        if inherited:
            log.info("took over %d flows from an agent that died", inherited)
        return True

    def stop(self) -> None:
        """Let :meth:`run` end."""
        self._stop.set()

    def _openflow_server(self, view: BridgeView) -> OpenFlowServer:
        options = self.options
        try:
            return OpenFlowServer(
                options.bridge,
                view.dpid,
                self._programs,
                options.limits.rules + options.limits.ports,
                options.congestion_gap,
                options.drop_rate,
            )
        except ValueError as error:
            raise UserError(
                f"bridge {options.bridge}: {error}, where the agent's own id goes",
                "set one that does not: ovs-vsctl set bridge "
                f"{options.bridge} other-config:datapath-id=0000<12 hex digits>",
            ) from None

    def _reconnect(self) -> None:
        for connection in self._connections:
            connection.close()

    async def _follow_bridge(self, views: asyncio.Queue[BridgeView | None]) -> None:
        while True:
            view = await views.get()
            if view is None:
                log.warning("bridge %s has been deleted: ending", self.options.bridge)
                self._stop.set()
                return
            if self._ports.update(view):
                await self._ports.read_queue_limits()

    # Events from the kernel

    def _add_readers(self, loop: asyncio.AbstractEventLoop) -> None:
        readers = [
            (self._programs.threshold_event_fd, self._on_threshold_event),
            (self._programs.copies_fd, self._on_copies),
        ]
        if self._programs.drops_fd is not None:
            readers.append((self._programs.drops_fd, self._on_drops))
        for fd, callback in readers:
            loop.add_reader(fd, callback)
            self._readers.append(fd)

    def _remove_readers(self, loop: asyncio.AbstractEventLoop) -> None:
        for fd in self._readers:
            loop.remove_reader(fd)
        self._readers.clear()
        for timer in (self._notice_timer, self._recovery_timer):
            if timer is not None:
                timer.cancel()

    def _on_threshold_event(self) -> None:
        self._server.congestion.mark_crossed(self._programs.crossed())
        self._send_notices()

    def _send_notices(self) -> None:
        """Send the congestion notices that are due, and set a timer for the next."""
        now = time.monotonic_ns()
        self._server.congestion.send_due(now)
        due = self._server.congestion.next_ns
        if due is not None and self._notice_timer is None:
            loop = asyncio.get_running_loop()
            self._notice_timer = loop.call_later(max(0, due - now) / 1e9, self._on_notice_timer)

    def _on_notice_timer(self) -> None:
        self._notice_timer = None
        self._send_notices()

    def _on_drops(self) -> None:
        packets, now = self._programs.take_drops(_MAX_DROPS), time.monotonic_ns()
        self._server.recovery.dropped(packets, now)
        self._server.congestion.report_drops(packets, now)
        self._set_recovery_timer(now)

    def _on_copies(self) -> None:
        self._server.copier.deliver(self._programs.take_copies(_MAX_COPIES), time.monotonic_ns())

    def _set_recovery_timer(self, now: int) -> None:
        if self._recovery_timer is not None:
            self._recovery_timer.cancel()
            self._recovery_timer = None
        due = self._server.recovery.next_ns
        if due is not None:
            loop = asyncio.get_running_loop()
            self._recovery_timer = loop.call_later(max(0, due - now) / 1e9, self._on_recovery_timer)

    def _on_recovery_timer(self) -> None:
        self._server.recovery.work(time.monotonic_ns())
        self._set_recovery_timer(time.monotonic_ns())

    # Periodic jobs

    async def _expire_rules(self) -> None:
        self._server.expire_rules(time.monotonic_ns())

    async def _read_silent_queues(self) -> None:
        corrected = await self._ports.read_silent_queues()
        if corrected:
            # No event has told that they are no longer congested.
            self._server.congestion.mark_crossed(corrected)
            self._send_notices()

    async def _sweep_flows(self) -> None:
        options, programs = self.options, self._programs
        sweep = programs.begin_sweep(int(options.flow_idle_timeout * 1e9), int(options.closed_timeout * 1e9))
        # The system calls take milliseconds, and controllers are served meanwhile.
        while (part := await asyncio.to_thread(sweep.read)) is not None:
            sweep.process(part)
        self._flows, self._evicted = programs.end_sweep(sweep)

    # Status

    async def _serve_status(self) -> asyncio.Server:
        path = status.socket_path(self.options.bridge)
        with contextlib.suppress(OSError):
            path.unlink()  # we hold the lock: a socket that exists is a dead agent's
        server = await asyncio.start_unix_server(self._answer_status, str(path))
        os.chmod(path, 0o600)
        return server

    async def _answer_status(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = self._server
        answer = {
            "bridge": self.options.bridge,
            "dpid": dpid_text(server.dpid),
            "pid": os.getpid(),
            "uptime_s": server.age_ns(time.monotonic_ns()) / 1e9,
            "controllers": [
                {"target": each.target.text, "connected": each.connected} for each in self._connections
            ],
            "windows_only": [
                {"names": device.names, "ifindex": device.ifindex, "reason": device.reason}
                for device in self._programs.devices.values()
            ],
            "unwatched": [{"name": name, "reason": reason} for name, reason in self._ports.unwatched],
            **status.snapshot(
                self._programs,
                server.table,
                server.laws,
                server.congestion,
                self._flows,
                self._evicted,
                server.recovery,
                server.injector,
                server.copier,
                server.queue_table,
                server.queue_laws,
            ),
        }
        writer.write(json.dumps(answer).encode())
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()


async def _repeat(what: str, interval: float, job: Callable[[], Awaitable[None]]) -> None:
    """Run a job every ``interval`` seconds. One that fails is tried again; a failure is logged once."""
    failing = False
    while True:
        await asyncio.sleep(interval)
        try:
            await job()
            failing = False
        except Exception as error:
            if not failing:
                log.warning("%s failed, and is tried again: %s", what, error)
            failing = True


def run(options: AgentOptions) -> int:
    """Run an agent until SIGINT, SIGTERM or SIGHUP. Raises :class:`UserError`."""
    privileges.check()

    async def main() -> None:
        agent = Agent(options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, agent.stop)

        def ready(ports: int) -> None:
            print(f"fairq agent: bridge {options.bridge} ready ({ports} ports)", file=sys.stderr, flush=True)

        await agent.run(ready)

    try:
        asyncio.run(main())
    except BpfError as error:
        raise UserError(str(error), "fairq doctor says what this machine lacks") from error
    return 0

"""``fairq agent``: the process beside the OVS bridges of a host. Connects bridges and eBPF programs.

    bridge.py: OVSDB, ports, controllers of a bridge <---> programs of the host <---- eBPF maps

Bridges that are joined by patch ports are one switch: a flow may leave by one of them, and its ACKs by
another. So one agent runs on all of them. A thread follows OVSDB for each bridge; everything else runs in one
asyncio loop. If the agent dies, traffic continues: the eBPF programs ignore every rule whose lease has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.agent import kept_flows, privileges, service_manager, status
from fairq_ryu.agent.bridge import AgentBridge
from fairq_ryu.agent.far_ports import without_port
from fairq_ryu.agent.filter_watch import FilterWatch
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.options import AgentOptions
from fairq_ryu.agent.ovsdb import BridgeView
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.window import HERITAGE
from fairq_ryu.agent.tc import detach_left
from fairq_ryu.agent.turn_clock import TurnClock
from fairq_ryu.agent.turns import Opening
from fairq_ryu.agent.watched_ports import listed
from fairq_ryu.errors import UserError, plain, quoted
from fairq_ryu.packet.tcp_build import Addressing

log = logging.getLogger(__name__)
# Dropped packets, and copies, that are handled before other tasks of the loop run.
_MAX_DROPS = _MAX_COPIES = 64
# A flow leaves the flow map when it has been silent for so long. It loses nothing: a second map keeps its
# window scale, which is used again from its next packet on.
_IDLE_NS = 300 * 10**9
# A closed flow leaves it when no segment of it can be on its way any more.
_CLOSED_NS = 2 * 10**9


class Agent:
    """A running agent. :meth:`run` returns after :meth:`stop`."""

    def __init__(self, options: AgentOptions) -> None:
        self.options = options
        self._bridges: list[AgentBridge] = []
        self._stop = asyncio.Event()
        self._readers: list[int] = []

    def _jobs(self) -> list[tuple[str, float, Callable[[], Awaitable[None]]]]:
        """The periodic jobs: what is done, how often (seconds), by which function."""
        found: list[tuple[str, float, Callable[[], Awaitable[None]]]] = [
            ("sweeping the flow map", 1.0, self._sweep_flows),
            ("looking after filters", 1.0, self._look_after_filters),
            ("removing filters that are left", 1.0, _detach_left),
        ]
        for each in self._bridges:
            found += [
                ("removing expired rules", 0.1, each.expire_rules),
                ("reading queue limits", 1.0, each.ports.read_queue_limits),
                ("reading queues without events", 0.1, each.read_silent_queues),
                ("starting on failed ports", 1.0, each.ports.retry_failed),
                # By then the hosts behind new ports have been set up.
                ("checking far ends of ports", 5.0, each.ports.check_peers),
            ]
        return found

    async def run(self, ready: Callable[[str, int], None]) -> None:
        """Serve until :meth:`stop`. ``ready`` is called with each bridge and the number of its ports once the
        programs run on all of them.

        Raises :class:`UserError` or :class:`BpfError`; everything that was attached is detached.
        """
        loop = asyncio.get_running_loop()
        options = self.options
        tls = options.tls.context() if any(t.secure for t in options.targets) else None
        tasks: list[asyncio.Task[None]] = []
        host: HostPrograms | None = None
        loaded = False
        clock: TurnClock | None = None
        filters: FilterWatch | None = None
        try:
            for name in options.bridges:
                self._bridges.append(AgentBridge(name, options))
            host = self._host = HostPrograms(options.limits, options.told)
            check_joined([bridge.watch() for bridge in self._bridges])
            loaded = self._load()
            filters = self._filters = FilterWatch(host)
            for bridge in self._bridges:
                bridge.open(host, filters, tls)
            host.window.read_in_thread()
            host.turn_program.wake = self._wake
            clock = TurnClock(loop, host.turn_program, host.turns)
            self._add_readers(loop)
            work: list[Coroutine[Any, Any, None]] = []
            for bridge in self._bridges:
                work += await bridge.start()
            work += [_repeat(*job) for job in self._jobs()]
            tasks = [asyncio.create_task(each) for each in work]
            every = [port for bridge in self._bridges for port in bridge.programs.ports.values()]
            far = {each.port: each for bridge in self._bridges for each in bridge.far_queues}
            for name in without_port(far.values(), every):
                log.warning("far queue of %s: no bridge here has a port of this name; waiting for one", name)
            for bridge in self._bridges:
                ready(bridge.name, len(bridge.programs.ports))
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
            steps: list[Callable[[], object]] = [lambda: self._remove_readers(loop)]
            steps += [bridge.close for bridge in self._bridges]
            if clock is not None:
                steps.append(clock.stop)
            if filters is not None:
                steps.append(filters.close)
            if loaded:
                steps.append(self._leave_flows)
            if host is not None:
                steps += [host.close, detach_left]
            carry_out([*steps, *(bridge.release for bridge in self._bridges)])

    def _load(self) -> bool:
        """Load the programs, with the flows of an agent that has died. Returns True."""
        kept = service_manager.kept()
        try:
            first_ports = [port.ifindex for bridge in self._bridges for port in bridge.view.ports]
            inherited = self._host.load(first_ports, kept)
        finally:
            for fd in kept.values():
                os.close(fd)
        service_manager.keep(self._host.window.heritage)
        # Other agents may have run on these bridges, or this one with another bridge first.
        paths = [status.flows_path(name) for name in self.options.bridges]
        left = {path: kept_flows.take(path) for path in paths}
        for path, each in left.items():
            if each.dropped:
                log.warning("the flows in %s are not taken over: %s", path, each.dropped)
        if self._host.window.not_inherited:
            reason = self._host.window.not_inherited
            log.warning("the flows of an agent that died are not taken over: %s", reason)
        views = [bridge.view for bridge in self._bridges]
        ports = {port.ifindex for view in views for port in view.ports}
        ports |= {device.ifindex for view in views for device in view.devices}
        if inherited:
            log.info("took over %d flows from an agent that died", inherited)
        elif entered := sum(
            self._host.window.enter_flows(each.keys, each.flows, ports) for each in left.values()
        ):
            log.info("took over %d flows from the agent that ended", entered)
        return True

    @property
    def _flows_path(self) -> Path:
        """One for all bridges, because they share the flows."""
        return status.flows_path(self.options.bridges[0])

    def _leave_flows(self) -> None:
        """Leave the flows to the next agent: the maps end with the programs."""
        service_manager.forget(HERITAGE)
        try:
            kept_flows.write(self._flows_path, *self._host.window.lasting_flows())
        except (OSError, BpfError) as error:
            log.warning("the next agent will not know the flows of this one: %s", error)

    def stop(self) -> None:
        """Let :meth:`run` end."""
        self._stop.set()

    def _wake(self, known: Addressing) -> Opening:
        """Start the sender of a connection, in the name of the bridge by which its data leaves."""
        chosen, *others = self._bridges
        for bridge in others:
            if bridge.programs.has_port(bridge.programs.segment_state(known.key.reversed).port):
                chosen = bridge
        return chosen.server.injector.wake_one(known)

    # Events from the kernel

    def _add_readers(self, loop: asyncio.AbstractEventLoop) -> None:
        host = self._host
        readers = [(host.queues.event_fd, self._on_threshold_event), (host.copies.fd, self._on_copies)]
        if host.drops.fd is not None:
            readers.append((host.drops.fd, self._on_drops))
        for fd, callback in readers:
            loop.add_reader(fd, callback)
            self._readers.append(fd)

    def _remove_readers(self, loop: asyncio.AbstractEventLoop) -> None:
        for fd in self._readers:
            loop.remove_reader(fd)
        self._readers.clear()

    def _on_threshold_event(self) -> None:
        crossed = self._host.queues.crossed()
        for bridge in self._bridges:
            bridge.crossed(crossed)

    def _on_drops(self) -> None:
        records = self._host.drops.take(_MAX_DROPS)
        for bridge in self._bridges:
            bridge.dropped(records)

    def _on_copies(self) -> None:
        records = self._host.copies.take(_MAX_COPIES)
        for bridge in self._bridges:
            bridge.copied(records)

    async def _look_after_filters(self) -> None:
        self._filters.look()

    async def _sweep_flows(self) -> None:
        host = self._host
        sweep = host.begin_sweep(_IDLE_NS, _CLOSED_NS)
        # The system calls take milliseconds, and controllers are served meanwhile.
        while (part := await asyncio.to_thread(sweep.read)) is not None:
            sweep.process(part)
        host.end_sweep(sweep)


async def _detach_left() -> None:
    detach_left()


def check_joined(views: Sequence[BridgeView]) -> None:
    """The bridges of one agent are one switch: joined by patch ports. Otherwise, packets of a flow leave by
    several of their ports one after the other, and only one of these would be governed. Raises
    :class:`UserError`. The log says which other bridges are joined to them.
    """
    first, *others = views
    for other in others:
        if other.name not in first.joined:
            raise UserError(
                f"bridges {first.name} and {other.name} are not joined by patch ports",
                f"run an agent for each: --bridge {quoted(first.name)}, and --bridge {quoted(other.name)}",
            )
    missing = sorted(first.joined - {view.name for view in views})
    if missing:
        names = ":".join([*(view.name for view in views), *missing])
        log.warning(
            "patch ports lead to %s: a flow that leaves by one bridge and its ACKs by another has windows "
            "only if one agent runs on both: fairq agent --bridge %s",
            listed(missing),
            quoted(names),
        )


def carry_out(steps: Sequence[Callable[[], object]]) -> None:
    """Carry out each step, also after one that raises; what the last such one raises is raised then."""
    with contextlib.ExitStack() as stack:
        for step in reversed(steps):
            stack.callback(step)


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
    # A fault in a library of C (libbpf, NumPy) would end the agent without a word.
    faulthandler.enable(sys.__stderr__ or sys.stderr)
    # Of the limit that the service manager allows: a port with an ingress qdisc takes a file descriptor.
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    async def main() -> None:
        agent = Agent(options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, agent.stop)

        def ready(bridge: str, ports: int) -> None:
            print(f"fairq agent: bridge {plain(bridge)} ready ({ports} ports)", file=sys.stderr, flush=True)

        await agent.run(ready)

    try:
        asyncio.run(main())
    except BpfError as error:
        raise UserError(str(error), "fairq doctor says what this machine lacks") from error
    return 0

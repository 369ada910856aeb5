"""``fairq agent``: the process beside an OVS bridge. Wires ports, eBPF and controllers together.

One thread follows OVSDB; everything else happens in one asyncio loop. If the agent dies, traffic
goes on: the eBPF programs ignore every rule whose lease has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import random
import re
import signal
import ssl
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fairq_ryu.agent import status
from fairq_ryu.agent.controller_session import ControllerSession
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.ovsdb import BridgePort, BridgeView, BridgeWatcher
from fairq_ryu.agent.peers import Peer, unfinished
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.agent.qdisc import read_queue_limits
from fairq_ryu.channel.oxm import agent_dpid
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.errors import UserError

log = logging.getLogger(__name__)
DEFAULT_PORT = 6653
_TARGET = re.compile(r"^(tcp|ssl):(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::(\d+))?$")
_EXPIRE_INTERVAL = 0.1
_QUEUE_LIMITS_INTERVAL = 1.0
_SWEEP_INTERVAL = 1.0
# Ports that are new have had their hosts set up by then; those found wanting are looked at again.
_PEER_INTERVAL = 5.0
_PEERS_AGAIN = 60.0
_FIRST_RETRY = 0.2
_STEADY = 5.0
_CONNECT = 5.0
_ECHO_INTERVAL = 5.0
_SILENCE = 15.0
_MAX_UNSENT = 8 << 20
# A controller must have said HELLO so many seconds after it has accepted, and a message must be whole so long
# after its first byte.
_GREETING = 10.0
_WHOLE = 10.0
# What a connection is looked at for that, and for silence, seconds.
_LOOK = 1.0
# Requests of one controller are worked on for so long before others have their turn, seconds.
_SLICE = 0.005
# What is still to be sent at the end of a connection has so long to go out, seconds.
_LAST_WORDS = 1.0
# Dropped packets handled before others have their turn.
_DROPS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Where a controller listens. ``text`` is as the user wrote it."""

    text: str
    host: str
    port: int
    secure: bool


def parse_target(text: str) -> Target:
    """A controller's address: ``tcp:HOST[:PORT]`` or ``ssl:HOST[:PORT]``. Raises :class:`UserError`."""
    match = _TARGET.match(text)
    port = int(match.group(4) or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise UserError(
            f"{text!r} is not a controller's address",
            "write tcp:127.0.0.1:6653, or ssl: for an encrypted channel",
        )
    return Target(text, match.group(2) or match.group(3), port, match.group(1) == "ssl")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files for ``ssl:`` targets: our key and certificate, and the authority to trust."""

    private_key: Path | None = None
    certificate: Path | None = None
    ca_certificate: Path | None = None

    def context(self) -> ssl.SSLContext:
        """The TLS context. Raises :class:`UserError` if files are missing or wrong."""
        if self.ca_certificate is None:
            raise UserError(
                "ssl: needs to know whom to trust", "give --ca-cert FILE (and --private-key, --certificate)"
            )
        try:
            context = ssl.create_default_context(cafile=str(self.ca_certificate))
            # Controllers are named by address, and their certificates seldom are (as in ovs-vswitchd).
            context.check_hostname = False
            if self.certificate is not None:
                context.load_cert_chain(
                    str(self.certificate), str(self.private_key) if self.private_key else None
                )
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"cannot use the TLS files: {error}", "check that they exist and are PEM"
            ) from None
        return context


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What an agent is told. Timeouts in seconds."""

    bridge: str
    targets: tuple[Target, ...]
    limits: ProgramLimits
    flow_idle_timeout: float = 300.0
    closed_timeout: float = 2.0
    reconnect_max: float = 8.0
    congestion_gap: float = 0.002
    drop_rate: float = 20000
    tls: TlsFiles = TlsFiles()


class BridgeLock:
    """At most one agent a bridge. Released when the process ends, however it ends."""

    def __init__(self, bridge: str) -> None:
        """Take the lock. Raises :class:`UserError` naming who holds it."""
        directory = status.run_directory()
        try:
            directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._file: IO[str] = open(directory / f"{bridge}.lock", "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise UserError(
                f"cannot write to {directory}: {error.strerror}", "run as root, or set FAIRQ_RUNDIR"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise UserError(
                f"bridge {bridge} has an agent already: {holder}", "end that one first, or leave it be"
            ) from None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()} ({' '.join(sys.argv)})\n")
        self._file.flush()

    def release(self) -> None:
        """Let go."""
        with contextlib.suppress(OSError):
            os.unlink(self._file.name)
        self._file.close()


class Agent:
    """A running agent. :meth:`run` returns when it is told to stop."""

    def __init__(self, options: AgentOptions) -> None:
        self.options = options
        self._connected: dict[str, bool] = {t.text: False for t in options.targets}
        self._unwatched: tuple[tuple[str, str], ...] = ()
        self._flows = 0
        self._evicted = 0
        self._failed_ports: set[int] = set()
        self._unfinished: dict[int, Peer] = {}
        self._looked: tuple[frozenset[int], float] = frozenset(), 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._stop = asyncio.Event()
        self._listening: list[int] = []
        self._telling: asyncio.TimerHandle | None = None

    async def run(self, ready: Callable[[int], None]) -> None:
        """Serve until :meth:`stop`. ``ready`` is called with the number of ports once all is attached.

        Raises :class:`UserError` or :class:`BpfError`; whatever was attached is detached.
        """
        loop = asyncio.get_running_loop()
        options = self.options
        tls = options.tls.context() if any(t.secure for t in options.targets) else None
        lock = BridgeLock(options.bridge)
        views: asyncio.Queue[BridgeView | None] = asyncio.Queue()

        def changed(view: BridgeView | None) -> None:
            loop.call_soon_threadsafe(views.put_nowait, view)

        watcher = BridgeWatcher(options.bridge, changed)
        server: asyncio.Server | None = None
        tasks: list[asyncio.Task[None]] = []
        data: BridgePrograms | None = None
        try:
            data = self.data = BridgePrograms(options.limits)
            view = self._view = watcher.start()
            try:
                self.switch = OpenFlowServer(
                    options.bridge,
                    view.dpid,
                    self.data,
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
            inherited = self.data.load(list(view.ports))
            if inherited:
                log.info("took over %d flows from an agent that died", inherited)
            self._sync_ports(view)
            self._listen(loop)
            await self._read_queue_limits()
            server = await self._serve_status()
            jobs: list[Coroutine[Any, Any, None]] = [
                self._follow(views),
                self._every(_EXPIRE_INTERVAL, self._expire),
                self._every(_QUEUE_LIMITS_INTERVAL, self._read_queue_limits),
                self._every(_QUEUE_LIMITS_INTERVAL, self._try_again),
                self._every(_PEER_INTERVAL, self._look_at_peers),
                self._every(_SWEEP_INTERVAL, self._sweep),
                *(self._keep_connected(target, tls) for target in options.targets),
            ]
            tasks = [asyncio.create_task(job) for job in jobs]
            ready(len(self.data.ports))
            stopping = asyncio.create_task(self._stop.wait())
            done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            for task in done - {stopping}:
                task.result()  # a job that ends has failed: let it say why
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            watcher.stop()
            self._deafen(loop)
            if server is not None:
                server.close()
                with contextlib.suppress(OSError):
                    status.socket_path(options.bridge).unlink()
            if data is not None:
                data.close()
            lock.release()

    def stop(self) -> None:
        """Let :meth:`run` end."""
        self._stop.set()

    # Ports

    async def _follow(self, views: asyncio.Queue[BridgeView | None]) -> None:
        while True:
            view = await views.get()
            if view is None:
                log.warning("bridge %s has been deleted: ending", self.options.bridge)
                self._stop.set()
                return
            if self._sync_ports(view):
                await self._read_queue_limits()

    def _sync_ports(self, view: BridgeView) -> bool:
        """Attach to ports that came, let go of those that went. Returns whether any did."""
        changed = False
        if view.dpid != self._view.dpid:
            self._renumber(view.dpid)
        self._view = view
        self._failed_ports &= {port.ifindex for port in view.ports}
        wanted = {port.ofport: port for port in view.ports}
        for ofport, port in list(self.data.ports.items()):
            if ofport not in wanted or wanted[ofport].ifindex != port.ifindex:
                self._drop_port(port)
                changed = True
        for ofport, port in wanted.items():
            held = self.data.ports.get(ofport)
            if held is None:
                changed |= self._add_port(port)
            elif held != port:
                self.data.update_port(port)
                self.switch.port_changed(ofp.OFPPR_MODIFY, port)
        for entry in set(view.unwatched) - set(self._unwatched):
            log.warning("port %s is not watched: %s", *entry)
        self._unwatched = view.unwatched
        return changed

    def _renumber(self, dpid: int) -> None:
        """The bridge has another datapath id (OVS takes it from its ports unless told): so have we."""
        try:
            self.switch.dpid = agent_dpid(dpid)
        except ValueError as error:
            log.error("bridge %s: %s: going on under the old id", self.options.bridge, error)
            return
        log.warning("bridge %s has a new datapath id, %016x: connecting anew", self.options.bridge, dpid)
        for writer in self._writers:
            writer.close()

    def _add_port(self, port: BridgePort) -> bool:
        try:
            self.data.add_port(port)
        except BpfError as error:
            # It may have gone again already; if not, one bad port must not stop the others.
            if port.ifindex not in self._failed_ports:
                log.warning("port %s is not watched: %s", port.name, error)
            self._failed_ports.add(port.ifindex)
            return False
        self._failed_ports.discard(port.ifindex)
        log.info("port %d (%s): watched", port.ofport, port.name)
        self.switch.port_changed(ofp.OFPPR_ADD, port)
        return True

    def _drop_port(self, port: BridgePort) -> None:
        now = time.monotonic_ns()
        self.switch.rules_removed(self.switch.table.forget_port(port.ofport), ofp.OFPRR_DELETE, now)
        self.switch.watch.forget_port(port.ofport)
        self.data.remove_port(port.ofport)
        log.info("port %d (%s): gone", port.ofport, port.name)
        self.switch.port_changed(ofp.OFPPR_DELETE, port)

    # What the kernel tells unasked

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        self._listening = [self.data.threshold_event_fd]
        loop.add_reader(self.data.threshold_event_fd, self._on_threshold_event)
        if self.data.drops_fd is not None:
            self._listening.append(self.data.drops_fd)
            loop.add_reader(self.data.drops_fd, self._on_drops)

    def _deafen(self, loop: asyncio.AbstractEventLoop) -> None:
        for fd in self._listening:
            loop.remove_reader(fd)
        self._listening.clear()
        if self._telling is not None:
            self._telling.cancel()

    def _on_threshold_event(self) -> None:
        self.switch.watch.crossed(self.data.crossed())
        self._tell()

    def _tell(self) -> None:
        """Tell of congestion what is due, and come back for what is not yet."""
        now = time.monotonic_ns()
        self.switch.watch.tell(now)
        due = self.switch.watch.next_ns
        if due is not None and self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(max(0, due - now) / 1e9, self._tell_again)

    def _tell_again(self) -> None:
        self._telling = None
        self._tell()

    def _on_drops(self) -> None:
        self.switch.watch.dropped(self.data.take_drops(_DROPS_AT_ONCE), time.monotonic_ns())

    # Things done now and then

    async def _every(self, interval: float, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do a job now and then. One that fails is tried again; that it failed is said once."""
        failing = False
        while True:
            await asyncio.sleep(interval)
            try:
                await job()
                failing = False
            except Exception as error:
                if not failing:
                    log.warning("%s failed, and is tried again: %s", job.__name__.strip("_"), error)
                failing = True

    async def _expire(self) -> None:
        now = time.monotonic_ns()
        self.switch.rules_removed(self.switch.table.expire(now), ofp.OFPRR_HARD_TIMEOUT, now)

    async def _read_queue_limits(self) -> None:
        indexes = [port.ifindex for port in self.data.ports.values()]
        # Netlink takes its time on big hosts: not in the loop that answers controllers.
        found = await asyncio.get_running_loop().run_in_executor(None, read_queue_limits, indexes)
        self.data.set_queue_limits(found, indexes)

    async def _look_at_peers(self) -> None:
        """Say which hosts leave out checksums that a userspace switch does not fill in: their TCP hangs."""
        if self._view.datapath_type != "netdev":
            return
        names = {port.ifindex: port.name for port in self.data.ports.values()}
        ports, now = frozenset(names), time.monotonic()
        if self._looked[0] == ports and not (self._unfinished and now - self._looked[1] > _PEERS_AGAIN):
            return
        self._looked = ports, now
        found = await asyncio.get_running_loop().run_in_executor(None, unfinished, ports)
        for index, peer in found.items():
            if index not in self._unfinished:
                log.warning(
                    "port %s: the host behind it (%s) sends TCP segments with unfinished checksums, and TCP "
                    "hangs. Run: %s",
                    names[index],
                    peer.name,
                    peer.remedy,
                )
        self._unfinished = found

    async def _try_again(self) -> None:
        """Ports that could not be watched may be fit by now."""
        if self._failed_ports and self._sync_ports(self._view):
            await self._read_queue_limits()

    async def _sweep(self) -> None:
        options = self.options
        self._flows, self._evicted = self.data.sweep(
            int(options.flow_idle_timeout * 1e9), int(options.closed_timeout * 1e9)
        )

    # Controllers

    async def _keep_connected(self, target: Target, tls: ssl.SSLContext | None) -> None:
        """Talk to a controller; after each end or refusal try again, ever more slowly up to a limit.

        What goes wrong is said once, and again when something else does.
        """
        delay, said = _FIRST_RETRY, ""
        while True:
            try:
                # Not wait_for: in Python 3.11 it loses a cancellation that comes with the answer, and then
                # the agent would never end.
                async with asyncio.timeout(_CONNECT):
                    reader, writer = await asyncio.open_connection(
                        target.host, target.port, ssl=tls if target.secure else None
                    )
            except (OSError, TimeoutError, ssl.SSLError) as error:
                why = error or type(error).__name__
                trouble = f"cannot be reached ({why}); will keep trying. Is the controller running?"
            else:
                began = time.monotonic()
                greeted, fault = await self._talk(target, reader, writer)
                if greeted:
                    trouble = "connection lost; rules run out with their leases"
                    said = ""
                    if time.monotonic() - began > _STEADY:
                        delay = _FIRST_RETRY
                else:
                    trouble = "ends every connection at once. Is it OpenFlow 1.3, are the TLS files right?"
                if fault:
                    trouble = f"{fault}; connection closed, will reconnect"
            if trouble != said:
                log.warning("controller %s: %s", target.text, trouble)
                said = trouble
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, self.options.reconnect_max)

    async def _talk(
        self, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[bool, str]:
        """One connection, to its end. Returns whether the controller ever greeted us, and what it did wrong
        if that was the end.
        """
        unread = writer.transport.get_write_buffer_size
        faults: list[str] = []

        def end(fault: str) -> None:
            faults.append(fault)
            writer.transport.abort()

        def send(data: bytes) -> None:
            if faults:
                return
            writer.write(data)
            if unread() > _MAX_UNSENT:
                end(f"does not read: {unread()} bytes are queued")

        session = ControllerSession(self.switch, send, unread)
        self._writers.add(writer)
        heard = [time.monotonic()]
        # A task beside the reader: a timeout around each of 500 reads a second costs more than the reads.
        watchdog = asyncio.create_task(self._watch_silence(session, heard, end))
        try:
            while not session.closed:
                data = await reader.read(1 << 16)
                if not data:
                    break
                heard[0] = time.monotonic()
                more = True
                while more and not faults:
                    more = session.receive(data, _SLICE)
                    data = b""
                    self._tell()  # it may have set thresholds
                    if session.greeted and not self._connected[target.text]:
                        self._connected[target.text] = True
                        log.info("controller %s: connected", target.text)
                    await writer.drain()
                    if more:
                        await asyncio.sleep(0)
        except (OSError, ssl.SSLError) as error:
            log.debug("controller %s: %s", target.text, error)
        finally:
            watchdog.cancel()
            session.close()
            self._connected[target.text] = False
            self._writers.discard(writer)
            writer.close()
            # A peer that does not read would keep what is still to be sent.
            asyncio.get_running_loop().call_later(_LAST_WORDS, writer.transport.abort)
        return session.greeted, session.fault or "".join(faults[:1])

    @staticmethod
    async def _watch_silence(
        session: ControllerSession, heard: list[float], end: Callable[[str], None]
    ) -> None:
        """Ask a silent controller whether it is there; hang up on one that stays silent, or never comes to an
        end of what it says.
        """
        began = pinged = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK)
            now = time.monotonic()
            silent = now - heard[0]
            if not session.greeted and now - began > _GREETING:
                end(f"no HELLO after {now - began:.0f} s")
            elif session.half_since(now) > _WHOLE:
                end(f"incomplete message after {session.half_since(now):.0f} s")
            elif silent > _SILENCE:
                end(f"silent for {silent:.0f} s")
            elif silent >= _ECHO_INTERVAL and now - pinged >= _ECHO_INTERVAL:
                pinged = now
                session.ping()

    # Status

    async def _serve_status(self) -> asyncio.Server:
        path = status.socket_path(self.options.bridge)
        with contextlib.suppress(OSError):
            path.unlink()  # we hold the lock: what is there is a dead agent's
        server = await asyncio.start_unix_server(self._answer_status, str(path))
        os.chmod(path, 0o600)
        return server

    async def _answer_status(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        about = {
            "bridge": self.options.bridge,
            "dpid": f"{self.switch.dpid:016x}",
            "pid": os.getpid(),
            "uptime_s": self.switch.age_ns(time.monotonic_ns()) / 1e9,
            "controllers": [
                {"target": text, "connected": connected} for text, connected in self._connected.items()
            ],
            "unwatched": [{"name": name, "reason": reason} for name, reason in self._unwatched],
            **status.snapshot(self.data, self.switch.table, self.switch.watch, self._flows, self._evicted),
        }
        writer.write(json.dumps(about).encode())
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()


def run(options: AgentOptions) -> int:
    """Run an agent until SIGINT, SIGTERM or SIGHUP. Raises :class:`UserError`."""
    if os.geteuid() != 0:
        raise UserError("the agent needs root, to load eBPF and attach it to ports", "run it with sudo")

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

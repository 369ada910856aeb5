"""Servers of the database between controllers: one, or a Raft cluster of three, in a folder.

The servers of a cluster can be cut off from each other while they run and answer their clients, without root:
a Unix socket without a path is searched for in the folder OVS_RUNDIR. Each server has such a folder of its
own, in which it listens itself; the sockets of the others there are relays. Each has clocks of its own, too.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from fairq_ryu.cluster.settings import SCHEMA
from mininet_topos.patience import patient
from tests.support.clock import Clock, compiled
from tests.support.relay import Relay

NAME = "Fairq"
# Of the speed of the servers' steady clocks: their elections take twice as long at one as at another.
_PERCENT = 100, 70, 50


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tool(*words: str | Path) -> str:
    return subprocess.run(["ovsdb-tool", *map(str, words)], check=True, capture_output=True, text=True).stdout


class Server:
    """One ovsdb-server. ``file``: its database."""

    def __init__(self, file: Path, port: int, clock: Clock | None = None) -> None:
        self.file, self.port, self.clock = file, port, clock
        self.folder = file.with_suffix(".run")
        self.folder.mkdir()
        self.control = file.with_suffix(".ctl")
        self.process: subprocess.Popen[bytes] | None = None
        self._more: set[str] = set()  # addresses beside that of the port

    @property
    def remote(self) -> str:
        return f"tcp:127.0.0.1:{self.port}"

    def start(self) -> None:
        command = ["ovsdb-server", str(self.file)]
        command += [f"--remote={_listening(each)}" for each in (self.remote, *self._more)]
        command += [f"--unixctl={self.control}", "-vconsole:off", "-vsyslog:off"]
        environment = {**os.environ, "OVS_RUNDIR": str(self.folder)}
        if self.clock is not None:
            environment |= self.clock.environment
        with self.file.with_suffix(".err").open("ab") as errors:
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors, env=environment)
        _until(lambda: self.ask("version") is not None, "ovsdb-server does not answer")

    def ask(self, *words: str) -> str | None:
        command = ["ovs-appctl", "-T", "5", "-t", str(self.control), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def add_remote(self, remote: str = "") -> str:
        """The server listens at one more address: this one, or a new one. Returns it."""
        remote = remote or f"tcp:127.0.0.1:{free_port()}"
        self._more.add(remote)
        assert self.ask("ovsdb-server/add-remote", _listening(remote)) is not None
        return remote

    def remove_remote(self, remote: str) -> None:
        """The server listens there no longer, and ends the connections that it has there."""
        self._more.remove(remote)
        assert self.ask("ovsdb-server/remove-remote", _listening(remote)) is not None

    @property
    def leads(self) -> bool:
        return self.running and "Role: leader" in (self.ask("cluster/status", NAME) or "")

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _listening(remote: str) -> str:
    """As an address is written where a server listens."""
    return f"ptcp:{remote.rpartition(':')[2]}:127.0.0.1"


def single(folder: Path) -> Server:
    """One server with a file of its own."""
    file = folder / "fairq.db"
    tool("create", file, SCHEMA)
    server = Server(file, free_port())
    server.start()
    return server


class Cluster:
    """Three servers of one database."""

    def __init__(self, folder: Path) -> None:
        self.servers: list[Server] = []
        self._links: dict[frozenset[Server], list[Relay]] = {}
        try:
            self._make(folder)
        except BaseException:
            self.kill()
            raise

    def _make(self, folder: Path) -> None:
        library = compiled(folder)
        for number, percent in enumerate(_PERCENT):
            file, address = folder / f"fairq{number}.db", _address(number)
            if number == 0:
                tool("create-cluster", file, SCHEMA, address)
            else:
                tool("join-cluster", file, NAME, address, _address(0))
            clock = Clock(library, folder / f"clock{number}", percent)
            self.servers.append(Server(file, free_port(), clock))
        for number, server in enumerate(self.servers):
            for other in self.servers:
                if other is not server:
                    name = _address(number).removeprefix("unix:")
                    relay = Relay(other.folder / name, server.folder / name)
                    self._links.setdefault(frozenset((server, other)), []).append(relay)
        for each in self.servers:
            each.start()
        _until(lambda: all(self._joined(each) for each in self.servers), "the cluster is not complete")

    def others(self, server: Server) -> list[Server]:
        return [each for each in self.servers if each is not server]

    def cut(self, server: Server, *others: Server) -> None:
        """Nothing passes between a server and the others, all of them if none is named."""
        for other in others or self.others(server):
            for each in self._links[frozenset((server, other))]:
                each.cut()

    def mend(self) -> None:
        """All servers reach each other again."""
        for relays in self._links.values():
            for each in relays:
                each.mend()

    @staticmethod
    def _joined(server: Server) -> bool:
        said = server.ask("cluster/status", NAME) or ""
        return "Status: cluster member" in said and "Leader: unknown" not in said

    @property
    def remote(self) -> str:
        return ",".join(each.remote for each in self.servers)

    def leader(self) -> Server:
        found: list[Server] = []

        def look() -> bool:
            found[:] = [each for each in self.servers if each.leads]
            return bool(found)

        _until(look, "there is no leader", 60)
        return found[0]

    def kill(self) -> None:
        for each in self.servers:
            if each.running:
                each.signal(signal.SIGCONT)
            each.kill()
        for relays in self._links.values():
            for relay in relays:
                relay.close()


def _address(number: int) -> str:
    """Where a server of a cluster listens for the others."""
    return f"unix:{number}.raft"


def _until(condition: Callable[[], bool], complaint: str, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)

"""Servers of the database between controllers: one, or a Raft cluster of three, in a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from fairq_ryu.cluster.settings import SCHEMA

NAME = "Fairq"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tool(*words: str | Path) -> str:
    return subprocess.run(["ovsdb-tool", *map(str, words)], check=True, capture_output=True, text=True).stdout


class Server:
    """One ovsdb-server. ``file``: its database."""

    def __init__(self, file: Path, port: int) -> None:
        self.file, self.port = file, port
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
        with self.file.with_suffix(".err").open("ab") as errors:
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors)
        _until(lambda: self.ask("version") is not None, "ovsdb-server does not answer")

    def ask(self, *words: str) -> str | None:
        command = ["ovs-appctl", "-T", "1", "-t", str(self.control), *words]
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
        first = ""
        for number in range(3):
            file, address = folder / f"fairq{number}.db", f"tcp:127.0.0.1:{free_port()}"
            if number == 0:
                tool("create-cluster", file, SCHEMA, address)
                first = address
            else:
                tool("join-cluster", file, NAME, address, first)
            self.servers.append(Server(file, free_port()))
            self.servers[-1].start()
        _until(lambda: all(self._joined(each) for each in self.servers), "the cluster is not complete")

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

        _until(look, "there is no leader")
        return found[0]

    def kill(self) -> None:
        for each in self.servers:
            if each.running:
                each.signal(signal.SIGCONT)
            each.kill()


def _until(condition, complaint: str, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)

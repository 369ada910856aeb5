"""The network of the benchmark of new connections: a bridge, a server, clients, controllers and an agent."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fairq_ryu.agent import status
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.free_ports import free_port
from fairq_ryu.experiments.measure.machine import find_program, switch_ticks
from fairq_ryu.experiments.testbed import remove_interfaces
from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.commands import CommandError, child_setup, end_process, run

ROOT = Path(__file__).resolve().parent.parent
BRIDGE = "fqbench"
DPID = "0000f0be7c400001"
CLIENTS = 3
# Closed connections (TIME-WAIT) must exhaust neither the ports nor the kernel's table.
HOST_SETTINGS = ("net.ipv4.ip_local_port_range='1024 65535'", "net.ipv4.tcp_max_tw_buckets=1000000")
_WAIT_SECONDS = 15.0


class Child:
    """A child process, with its output in a log file. It ends with the benchmark."""

    def __init__(self, log: Path, *argv: str) -> None:
        self.log = log
        self.searched = 0  # bytes of the log that `wait_for` has searched
        with log.open("wb") as handle, child_setup() as prepare:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,  # Ctrl-C reaches the benchmark only, which ends its children
                preexec_fn=prepare,
            )

    def wait_for(self, text: str) -> None:
        """Wait until the process prints ``text``, after the text of the previous call. ``RunError`` if it
        ends or is late.
        """

        def printed() -> bool:
            at = self.log.read_bytes().find(text.encode(), self.searched)
            if at < 0 and self.process.poll() is not None:
                lines = self.log.read_text(errors="replace").strip().splitlines() or ["its log is empty"]
                raise RunError(f"{self.log.stem} has ended: {lines[-1]}")
            if at >= 0:
                self.searched = at + len(text)
            return at >= 0

        until(printed, f"{self.log.stem} to print {text!r}")

    def end(self) -> None:
        """End the process."""
        end_process(self.process)


class Generator:
    """A process of ``bench.load`` in a host; commands and results are lines of JSON."""

    def __init__(self, host: Any, *arguments: str) -> None:
        self.name = str(host.name)
        with child_setup(signal.SIGKILL) as prepare:
            self.process: subprocess.Popen[bytes] = host.popen(
                [sys.executable, "-S", "-s", "-m", "bench.load", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                cwd=str(ROOT),
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                preexec_fn=prepare,
            )
        if self.read_line(_WAIT_SECONDS) != "ready":
            raise RunError(f"the load in {self.name} does not start")

    def send_command(self, **values: float) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps(values) + "\n").encode())

    def read_line(self, seconds: float) -> str:
        """The next line of output. ``RunError`` if it does not arrive within ``seconds``."""
        assert self.process.stdout is not None
        line, deadline = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise RunError(f"the load in {self.name} does not answer")
            data = self.process.stdout.read(1 << 16)
            if not data:
                raise RunError(f"the load in {self.name} has ended")
            line += data
        return line.decode().strip()

    def end(self) -> None:
        """Kill the process; it has nothing to clean up."""
        self.process.kill()
        self.process.wait()


class Measurement(NamedTuple):
    """The result of `Network.measure`."""

    rate: float
    """completed connections per second"""
    connections: int
    """number of all connections, including those of the warm-up and the end, which the rate leaves out"""
    processor: float
    """processor time of all of these, seconds"""
    dropped: int
    """copies that did not reach the controller"""
    repeated: int
    """segments that clients have retransmitted"""


class Network:
    """The bridge with its hosts. `stop` removes everything that exists and may be called at any time."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self._stack = contextlib.ExitStack()
        self._net: Any = None
        self._switch: Any = None
        self._agent: Child | None = None
        self.controllers: dict[str, tuple[Child, int]] = {}
        self._generators: list[Generator] = []

    def start(self, flight: int) -> None:
        """Build bridge and hosts and start the load; ``flight``: number of connections that all clients
        together keep in flight. ``RunError`` if the network cannot be built.
        """
        from mininet_topos.hosts import HostError
        from mininet_topos.switch import SwitchError

        try:
            server, *clients = self._build()
        except (CommandError, HostError, RunError, SwitchError) as error:
            raise RunError(str(error)) from error
        except Exception as error:  # Mininet raises no more specific class
            raise RunError(f"Mininet cannot build the network: {error}") from error
        self._generator(server, "server")
        each = -(-flight // CLIENTS)
        for host in clients:
            self._generator(host, "client", server.IP(), str(each))

    def _build(self) -> list[Any]:
        from mininet.log import setLogLevel
        from mininet.net import Mininet

        from mininet_topos.hosts import FairQHost
        from mininet_topos.links import ShallowLink
        from mininet_topos.switch import FairQSwitch, refuse_foreign_bridge

        setLogLevel("error")
        refuse_foreign_bridge(BRIDGE)
        for name in os.listdir("/sys/class/net"):
            if name.startswith(f"{BRIDGE}-eth"):
                raise RunError(f"interface {name} exists already: remove it with `ip link del {name}`")
        self._net = Mininet(controller=None, switch=FairQSwitch, host=FairQHost, link=ShallowLink)
        self._stack.callback(self._take_down)
        self._switch = self._net.addSwitch(BRIDGE, dpid=DPID, agent=False)
        hosts = [self._net.addHost(name) for name in ("fqs", *(f"fqc{n + 1}" for n in range(CLIENTS)))]
        for host in hosts:
            self._net.addLink(host, self._switch)
        self._net.start()
        for host in hosts:
            if trouble := host.cmd("sysctl -qw", *HOST_SETTINGS).strip():
                raise RunError(f"{host.name}: {trouble.splitlines()[0]}")
        return hosts

    def _generator(self, host: Any, *arguments: str) -> None:
        generator = Generator(host, *arguments)
        self._stack.callback(generator.end)
        self._generators.append(generator)

    @property
    def _clients(self) -> list[Generator]:
        return self._generators[1:]

    def controller(self, app: str, *arguments: str) -> str:
        """Start ryu-manager with an application; returns its key in ``controllers``. It idles until
        `connect_bridge`.
        """
        name, port = " ".join((app, *arguments)), free_port()
        child = Child(
            self.logs / f"{len(self.controllers)}-{app}.log",
            find_program("ryu-manager"),
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
            *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(free_port())),
            *arguments,
            app,
        )
        self._stack.callback(child.end)
        self.controllers[name] = child, port
        return name

    def connect_bridge(self, controller: str) -> None:
        """Connect the bridge to a controller that is running, and wait for its rules."""
        _, port = self.controllers[controller]
        run(["ovs-vsctl", "set-controller", BRIDGE, f"tcp:127.0.0.1:{port}"])
        until(lambda: bool(self.rules()), "the bridge to get rules from its controller")

    def agent(self, controller: str) -> None:
        """Start the bridge's agent, connected to a controller."""
        _, port = self.controllers[controller]
        where = ("--bridge", BRIDGE, "--controller", f"tcp:127.0.0.1:{port}")
        self._agent = Child(self.logs / "agent.log", find_program("fairq"), "agent", *where)
        self._agent.wait_for("ready")
        until(lambda: bool(status.ask(BRIDGE)["controllers"][0]["connected"]), "the agent to connect")

    def rules(self) -> list[str]:
        """The rules of the bridge."""
        listed = run(["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", BRIDGE])
        return [line for line in listed.splitlines() if "actions=" in line]

    def forward(self) -> None:
        """Let the bridge forward by itself, without a controller."""
        run(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", BRIDGE, "actions=NORMAL"])

    def clear(self) -> None:
        """End the agent, disconnect the controller, and remove what both have installed in the bridge."""
        if self._agent is not None:
            self._agent.end()
            self._agent = None
        run(["ovs-vsctl", "del-controller", BRIDGE])
        # In fail mode secure, the rules of a controller outlive its connection.
        run(["ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE])
        run(["ovs-ofctl", "-O", "OpenFlow13", "del-meters", BRIDGE])
        run(["ovs-appctl", "fdb/flush", BRIDGE])

    def measure(self, warm_up: float, seconds: float) -> Measurement:
        """Let the clients connect for ``warm_up`` and then ``seconds``; the rate counts the second period
        only. ``RunError`` if connections fail.
        """
        for client in self._clients:
            client.send_command(until=time.monotonic() + _WAIT_SECONDS)
        if not all(json.loads(client.read_line(2 * _WAIT_SECONDS)) for client in self._clients):
            raise RunError("clients do not reach the server")
        dropped, spent = copies_dropped(), self._processor_seconds()
        begin = time.monotonic() + warm_up
        for client in self._clients:
            client.send_command(begin=begin, end=begin + seconds)
        answers = [json.loads(client.read_line(warm_up + seconds + 30.0)) for client in self._clients]
        spent = self._processor_seconds() - spent
        done, ended, failed, repeated = (
            sum(each[name] for each in answers) for name in ("done", "ended", "failed", "repeated")
        )
        if failed or not done:
            raise RunError(f"{failed} connections failed, {done} succeeded")
        return Measurement(done / seconds, ended, spent, copies_dropped() - dropped, repeated)

    def _processor_seconds(self) -> float:
        """The processor time that load, switch, controllers and agent have used, seconds."""
        ours = [child.process.pid for child, _ in self.controllers.values()]
        ours += [generator.process.pid for generator in self._generators]
        ours += [self._agent.process.pid] if self._agent is not None else []
        ticks = sum(switch_ticks().values())
        for pid in ours:
            with contextlib.suppress(OSError):  # the process has ended; its user reports that
                words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End all processes and remove the network."""
        self._stack.close()

    def _take_down(self) -> None:
        steps: list[Callable[[], object]] = [
            *(node.terminate for node in [*self._net.switches, *self._net.hosts]),
            lambda: remove_interfaces(BRIDGE),
        ]
        if self._switch is not None:
            steps.append(lambda: self._switch.stop(deleteIntfs=False))
        if self._agent is not None:
            steps.append(self._agent.end)
        with contextlib.ExitStack() as last_first:
            for step in steps:  # all steps run, even if one of them fails
                last_first.callback(step)


def copies_dropped() -> int:
    """The number of copies to controllers that Open vSwitch has dropped since its start, at meters or
    queues.
    """
    text = run(["ovs-appctl", "coverage/show"])
    return sum(
        int(found[1])
        for name in ("rconn_overflow", "datapath_drop_meter")
        if (found := re.search(rf"^{name}\b.*total: (\d+)$", text, re.M))
    )


def until(ready: Callable[[], bool], what: str) -> None:
    """Wait until ``ready`` returns True; ``what`` describes it. ``RunError`` after a time limit."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        with contextlib.suppress(CommandError, UserError):
            if ready():
                return
        if time.monotonic() > deadline:
            raise RunError(f"waited {_WAIT_SECONDS:g} s in vain for {what}")
        time.sleep(0.02)

"""The network of the benchmark of new connections: bridge, server, clients, controllers, an agent."""

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
from fairq_ryu.experiments.measure.machine import find_program
from fairq_ryu.experiments.testbed import free_port, remove_interfaces
from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.commands import CommandError, child_setup, end_process, run

ROOT = Path(__file__).resolve().parent.parent
BRIDGE = "fqbench"
DPID = "0000f0be7c400001"
CLIENTS = 3
# Connections that are over must neither run out of ports nor out of the kernel's table of them.
HOST_SETTINGS = ("net.ipv4.ip_local_port_range='1024 65535'", "net.ipv4.tcp_max_tw_buckets=1000000")
_WAIT_SECONDS = 15.0


class Child:
    """A process of the benchmark's, its output in a file, ended with it."""

    def __init__(self, log: Path, *argv: str) -> None:
        self.log = log
        self.heard = 0  # bytes of the log that `wait_for` has passed over
        with log.open("wb") as handle, child_setup() as prepare:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,  # Ctrl-C on the terminal is for us; we end it
                preexec_fn=prepare,
            )

    def wait_for(self, words: str) -> None:
        """Wait until the process says this, after what was waited for before."""

        def said() -> bool:
            at = self.log.read_bytes().find(words.encode(), self.heard)
            if at < 0 and self.process.poll() is not None:
                lines = self.log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
                raise RunError(f"{self.log.stem} has ended: {lines[-1]}")
            if at >= 0:
                self.heard = at + len(words)
            return at >= 0

        until(said, f"{self.log.stem} to say {words!r}")

    def end(self) -> None:
        """End it."""
        end_process(self.process)


class Generator:
    """A process of ``bench.load`` in a host; orders and answers are lines of JSON."""

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
        if self.hear(_WAIT_SECONDS) != "ready":
            raise RunError(f"the load in {self.name} does not start")

    def order(self, **values: float) -> None:
        """Give an order."""
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps(values) + "\n").encode())

    def hear(self, seconds: float) -> str:
        """The next line. ``RunError`` when it does not come in time."""
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
        """End it; it holds nothing that would have to be put in order."""
        self.process.kill()
        self.process.wait()


class Measurement(NamedTuple):
    """What came of `Network.measure`."""

    rate: float
    """connections a second"""
    connections: int
    """in all, with those that do not count for the rate"""
    processor: float
    """seconds that these took of all processors"""
    dropped: int
    """copies that did not reach the controller"""
    repeated: int
    """segments that a client had to send again"""


class Network:
    """`start`, use, `stop`; `stop` takes down whatever there is, at any time."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self._stack = contextlib.ExitStack()
        self._net: Any = None
        self._switch: Any = None
        self._agent: Child | None = None
        self.controllers: dict[str, tuple[Child, int]] = {}
        self._generators: list[Generator] = []

    def start(self, flight: int) -> None:
        """Bridge and hosts, with the load in them; ``flight`` connections at a time, of all clients."""
        from mininet_topos.hosts import HostError
        from mininet_topos.switch import SwitchError

        try:
            server, *clients = self._build()
        except (CommandError, HostError, RunError, SwitchError) as error:
            raise RunError(str(error)) from error
        except Exception as error:  # Mininet raises nothing more special
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
        """Start ryu-manager with an application, and return what to call it. It idles until it is given
        the bridge.
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

    def give_to(self, controller: str) -> None:
        """Let the bridge connect to a controller that was started."""
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
        """Let the bridge forward by itself, without any controller."""
        run(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", BRIDGE, "actions=NORMAL"])

    def clear(self) -> None:
        """Take away agent and controller, and what they put into the bridge."""
        if self._agent is not None:
            self._agent.end()
            self._agent = None
        run(["ovs-vsctl", "del-controller", BRIDGE])
        # Fail mode secure keeps what a controller has left.
        run(["ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE])
        run(["ovs-ofctl", "-O", "OpenFlow13", "del-meters", BRIDGE])
        run(["ovs-appctl", "fdb/flush", BRIDGE])

    def measure(self, warm_up: float, seconds: float) -> Measurement:
        """Let the clients connect for ``warm_up`` and then ``seconds``; only the latter count."""
        for client in self._clients:
            client.order(until=time.monotonic() + _WAIT_SECONDS)
        if not all(json.loads(client.hear(2 * _WAIT_SECONDS)) for client in self._clients):
            raise RunError("clients do not reach the server")
        dropped, spent = copies_dropped(), self._processor_seconds()
        begin = time.monotonic() + warm_up
        for client in self._clients:
            client.order(begin=begin, end=begin + seconds)
        answers = [json.loads(client.hear(warm_up + seconds + 30.0)) for client in self._clients]
        spent = self._processor_seconds() - spent
        done, ended, failed, repeated = (
            sum(each[name] for each in answers) for name in ("done", "ended", "failed", "repeated")
        )
        if failed or not done:
            raise RunError(f"{failed} connections failed, {done} did not")
        return Measurement(done / seconds, ended, spent, copies_dropped() - dropped, repeated)

    def _processor_seconds(self) -> float:
        """What everything that has a part in it has spent: load, switch, controllers and agent."""
        ours = [child.process.pid for child, _ in self.controllers.values()]
        ours += [generator.process.pid for generator in self._generators]
        ours += [self._agent.process.pid] if self._agent is not None else []
        switch = [
            int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _is(path, "ovs-vswitchd")
        ]
        ticks = 0
        for pid in (*ours, *switch):
            with contextlib.suppress(OSError):  # it has ended; who needs it will notice
                words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Take everything down."""
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
            for step in steps:  # one that fails does not keep the others from being taken
                last_first.callback(step)


def _is(comm: Path, name: str) -> bool:
    try:
        return comm.read_text().strip() == name
    except OSError:
        return False


def copies_dropped() -> int:
    """Copies to controllers that Open vSwitch has thrown away since it began, at its meter or its queue."""
    text = run(["ovs-appctl", "coverage/show"])
    return sum(
        int(found[1])
        for name in ("rconn_overflow", "datapath_drop_meter")
        if (found := re.search(rf"^{name}\b.*total: (\d+)$", text, re.M))
    )


def until(ready: Callable[[], bool], what: str) -> None:
    """Wait for something. ``RunError`` when it does not come."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        with contextlib.suppress(CommandError, UserError):
            if ready():
                return
        if time.monotonic() > deadline:
            raise RunError(f"waited {_WAIT_SECONDS:g} s in vain for {what}")
        time.sleep(0.02)

"""The network on which faults are made: senders, a shallow port, an own Open vSwitch, agent and controller.

It is kept from one fault to the next: what a fault leaves behind, the next one meets.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairq_ryu import client
from fairq_ryu.agent import status
from fairq_ryu.agent.libbpf import BpfObject, load_library
from fairq_ryu.agent.tc import INGRESS, TcFilter
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.free_ports import free_port
from mininet_topos.patience import patient
from tests.faults.load import DEADLINES_PORT, Load
from tests.support import clock
from tests.support.lab import BIN, ENVIRONMENT, FAIRQ, TOKEN, Process, is_open, output, until
from tests.support.own_machine import DATABASE, SWITCH, OwnMachine, cubic_allowed
from tests.support.traces import processes

BRIDGE, OTHER = "s1", "s2"
SENDERS, RATE, BUFFER = 4, 25, 60_000
GOVERNED = BUFFER // 2
"""An elephant's window is less while its port is governed, because all share the buffer. Otherwise it is
more, because nothing slows the receiver down.
"""
LEASE = 2.0
_CONTROLLER = f"[fairq_ryu]\nlease = {LEASE:g}\nturns = on\n"
_AT_MOST = 30.0
_HERE = Path(__file__).parent


def has_law(port: dict[str, Any]) -> bool:
    """Whether a law is in force at a port, by its row of the agent's status."""
    return bool(port["rule"] and "law" in port["rule"])


class Site:
    """Made by :func:`made_site`. Faults use what is public here."""

    def __init__(self, machine: OwnMachine, others: int = 0) -> None:
        """``others``: hosts that send nothing, on the ports behind those of the senders."""
        from mininet.log import setLogLevel
        from mininet.net import Mininet

        from mininet_topos.incast import IncastTopo
        from mininet_topos.switch import FairQSwitch

        setLogLevel("error")
        self.machine = machine
        self.folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self.port = SENDERS + others + 1
        """The receiver's, by its OpenFlow number."""
        self.name = f"{BRIDGE}-eth{self.port}"
        self.control, self.rest_port = free_port(), free_port()
        """Where the controller listens for switches, and for requests."""
        self._programs: dict[str, Process] = {}
        self._started = 0
        self._clock = clock.Clock(clock.compiled(self.folder), self.folder / "clock")
        self._environment = {**ENVIRONMENT, **self._clock.environment}
        self._library = load_library()
        self.stopped_at = 0.0
        self._seen_of_bpf: set[tuple[str, int]] = set()
        self.net = Mininet(
            topo=IncastTopo(n=self.port - 1, rate=RATE, buffer=BUFFER),
            switch=functools.partial(FairQSwitch, agent=False),
            controller=None,
            autoSetMacs=True,
        )

    def start(self) -> None:
        self.net.start()
        self._govern()

    def close(self) -> None:
        for program in self._programs.values():
            with contextlib.suppress(ProcessLookupError):
                program.process.send_signal(signal.SIGCONT)
            program.end()
        # Mininet needs both, and a fault that was not mended may have left one of them dead.
        self.restart_switch(*(name for name in (DATABASE, SWITCH) if name not in self.machine.running))
        self.net.stop()

    # Agent and controller

    @property
    def agent(self) -> Process:
        return self._programs["agent"]

    @property
    def controller(self) -> Process:
        return self._programs["controller"]

    def _run(self, name: str, *command: str) -> Process:
        self._started += 1
        log = self.folder / f"{self._started}-{name}.log"
        program = self._programs[name] = Process(log, *command, env=self._environment)
        return program

    def start_agent(self, config: str = "", wait: bool = True) -> None:
        path = self.folder / "agent.conf"
        path.write_text(config)
        words = ("--bridge", BRIDGE, "--controller", f"tcp:127.0.0.1:{self.control}")
        self._run("agent", FAIRQ, "agent", *words, "--config-file", str(path))
        if wait:
            self.agent.wait_for("ready")

    def start_controller(self) -> None:
        """It listens when this returns."""
        path = self.folder / "fairq.conf"
        path.write_text(_CONTROLLER)
        self._run(
            "controller",
            *(str(BIN / "ryu-manager"), "--config-file", str(path), "--ofp-listen-host", "127.0.0.1"),
            *("--ofp-tcp-listen-port", str(self.control), "--wsapi-host", "127.0.0.1"),
            *("--wsapi-port", str(self.rest_port), "fairq_ryu.apps.fairq"),
        )
        ended = self.controller.process.poll
        assert until(lambda: is_open(self.rest_port) or ended() is not None, 60), self.controller.text
        assert ended() is None, self.controller.text

    def connect_bridge(self) -> None:
        """Point the bridge at the controller."""
        target = f"tcp:127.0.0.1:{self.control}"
        # It tries again after a second at most, and not after eight.
        output(
            "ovs-vsctl",
            "set-controller",
            BRIDGE,
            target,
            "--",
            "set",
            "controller",
            BRIDGE,
            "max_backoff=1000",
        )

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Meanwhile the bridge forwards by itself, without agent and controller."""
        assert self.agent.end() == 0, self.agent.text
        self.controller.end()
        output("ovs-vsctl", "del-controller", BRIDGE)
        output("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE)
        output("ovs-ofctl", "-O", "OpenFlow13", "add-flow", BRIDGE, "actions=NORMAL")
        try:
            yield
        finally:
            output("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE)
            self._govern()

    def _govern(self) -> None:
        """Start agent and controller, for the first time or again."""
        self.start_agent(wait=False)
        self.start_controller()
        self.agent.wait_for("ready")
        self.connect_bridge()
        assert until(self._is_settled), self.logs()
        with self.load() as load:  # what is opened at the first use is open, and hosts know each other
            self.wait_until_governed(load)
            assert load.finish() == [], load.faults

    def _is_settled(self) -> bool:
        try:
            roles = {port["port"]: port["role"] for port in self.rest("ports")["ports"]}
        except OSError:
            return False
        return all(roles.get(number) == "host" for number in range(1, self.port + 1))

    def rest(self, what: str) -> Any:
        url = f"http://127.0.0.1:{self.rest_port}/v1/{what}"
        with urllib.request.urlopen(url, timeout=patient(20)) as answer:
            return json.load(answer)

    def announce(self, source: str, port: int, size: int, deadline: float) -> None:
        url = f"http://127.0.0.1:{self.rest_port}"
        with contextlib.suppress(UserError):  # there may be no controller now
            about = {"sport": port, "size": size, "deadline": deadline}
            client.announce(source, self.net["r"].IP(), DEADLINES_PORT, **about, url=url, token=TOKEN)

    def logs(self) -> str:
        """What the programs that run now have said last."""
        return "\n".join(f"{name}:\n{program.text[-2000:]}" for name, program in self._programs.items())

    # Traffic

    @contextlib.contextmanager
    def load(self) -> Iterator[Load]:
        *hosts, receiver = self.net.hosts
        senders = {host.IP(): host.pid for host in hosts[:SENDERS]}
        load = Load(senders, receiver.IP(), receiver.pid, self.announce)
        load.start()
        try:
            yield load
        finally:
            load.close()

    def resets(self) -> Counter[str]:
        """The connections of each host that a reset has ended so far. A reset that answers a repeated ACK of
        a connection that has ended in order is none of these: TCP sends such without us.
        """
        found: Counter[str] = Counter()
        for host in self.net.hosts:
            text = Path(f"/proc/{host.pid}/net/snmp").read_text()
            names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("Tcp:"))
            found[host.name] = int(dict(zip(names, values, strict=True))["EstabResets"])
        return found

    def port_status(self) -> dict[str, Any]:
        """The agent's row of the receiver's port. UserError or LookupError if there is none."""
        for port in self.status()["ports"]:
            if port["ofport"] == self.port:
                return dict(port)
        raise LookupError(f"the agent has no port {self.port}")

    def governs(self, load: Load) -> Callable[[], bool]:
        """Whether the port is under normal control, from now on: it has its law, windows are lowered in new
        ACKs, and each elephant has a lowered one.
        """
        before: list[int] = []

        def holds() -> bool:
            try:
                port = self.port_status()
            except (UserError, LookupError):
                return False
            before.append(port["rewritten"])
            # An agent that starts counts from 0.
            lowered = any(port["rewritten"] > each for each in before)
            windows = load.windows() or [0]
            return has_law(port) and lowered and min(windows) > 0 and max(windows) < GOVERNED

        return holds

    def wait_until_governed(self, load: Load) -> None:
        """And until each sender has sent something."""
        assert until(self.governs(load)), f"it is not governed\n{self.explained(load)}"
        assert until(lambda: load.done["mouse"] > SENDERS * 8), self.explained(load)

    def is_free(self, load: Load) -> bool:
        """Whether no elephant has a lowered window."""
        return min(load.windows(), default=0) >= GOVERNED

    def explained(self, load: Load) -> str:
        """What a failed test should say."""
        try:
            port = self.port_status()
        except (UserError, LookupError) as error:
            port = {"error": str(error)}
        return f"windows {load.windows()}, faults {load.faults}, port {port}\n{self.logs()}"

    def status(self) -> dict[str, Any]:
        """The agent's. Raises UserError."""
        return status.ask(BRIDGE, patient(2.0))

    def watched(self) -> set[str]:
        """The names of the ports that the agent watches."""
        return {port["name"] for port in self.status()["ports"]}

    def has_queue(self, part: float) -> bool:
        """Whether the agent knows the queue that :meth:`shape` has made, and its law."""
        queue = self.port_status()["queue"]
        return bool(queue["limit"] == round(BUFFER * part) and queue["rate"] == round(RATE * part * 125_000))

    # Time

    def wait(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Until something holds that a fault is made of."""
        assert until(condition, seconds), self.logs()

    def within(self, condition: Callable[[], object], seconds: float) -> float | None:
        """Wait until it holds; how long that took, seconds, or None if it took longer than ``seconds``. For
        that limit the time in which programs of the site could run and had no processor does not count:
        others use the machine.
        """
        began, before = time.monotonic(), self._waited()
        while True:
            held = condition()
            elapsed = time.monotonic() - began
            waited = sum(max(0.0, now - before.get(pid, 0.0)) for pid, now in self._waited().items())
            took = elapsed - waited
            if held:
                return elapsed if took <= patient(seconds) else None
            if took > patient(seconds) or elapsed > patient(_AT_MOST):
                return None
            time.sleep(0.02)

    def _waited(self) -> dict[int, float]:
        """The time for which each program could run and had no processor, seconds."""
        found: dict[int, float] = {}
        pids = [each.process.pid for each in self._programs.values()]
        for pid in (os.getpid(), *pids, *self.machine.running.values()):
            threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
            with contextlib.suppress(OSError):
                found[pid] = sum(int(each.read_text().split()[1]) for each in threads) / 1e9
        return found

    # What a fault may not leave behind

    def lasting(self) -> Counter[str]:
        """What six inventories in a row have in common. The rest is there for a moment only: the agent opens
        descriptors to read a qdisc.
        """
        found = self.inventory()
        for _ in range(5):
            time.sleep(0.1)
            found &= self.inventory()
        return found

    def inventory(self) -> Counter[str]:
        """Programs, descriptors, queueing disciplines, filters, records and files of this site."""
        found: Counter[str] = Counter()
        for line in processes().values():
            found[f"process {line}"] += 1
        for name, program in self._programs.items():
            for each in Path(f"/proc/{program.process.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    kind = re.sub(r"\d+", "", os.readlink(each))
                    found[f"descriptor of the {name}: {kind}"] += 1
        for each in json.loads(output("tc", "-j", "qdisc", "show")):
            found[f"qdisc {each['dev']} {each['kind']}"] += 1
        for device in os.listdir("/sys/class/net"):
            for way in ("ingress", "egress"):
                # Without a qdisc that has filters, tc says so, and fails.
                words = ["tc", "filter", "show", "dev", device, way]
                shown = subprocess.run(words, capture_output=True, text=True, check=False).stdout
                for line in shown.splitlines():
                    found[f"filter {device} {way} {' '.join(line.split()[:8])}"] += "handle" in line
        for table in ("QoS", "Bridge", "Port", "Interface", "Controller"):
            found[f"record {table}"] = len(
                output("ovs-vsctl", "--bare", "--columns=_uuid", "list", table).split()
            )
        for each in status.run_directory().iterdir():
            found[f"file {each.name}"] += 1
        return +found

    def differs(self, before: Counter[str]) -> str:
        """What there is now and was not in an inventory, and the other way round."""
        now = self.inventory()
        return f"more: {dict(now - before)}, less: {dict(before - now)}\n{self.logs()}"

    def see_bpf(self) -> set[tuple[str, int]]:
        """The ids of the maps and programs that the agent holds; all that were seen are remembered."""
        held = set()
        for each in Path(f"/proc/{self.agent.process.pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                held |= {
                    (kind, int(n))
                    for kind, n in re.findall(r"^(map|prog)_id:\s*(\d+)$", each.read_text(), re.M)
                }
        self._seen_of_bpf |= held
        return held

    def left_of_bpf(self) -> set[tuple[str, int]]:
        """Maps and programs of earlier agents that still exist."""
        gone = self._seen_of_bpf - self.see_bpf()
        left = set()
        for kind, number in gone:
            fd = getattr(self._library, f"bpf_{kind}_get_fd_by_id")(number)
            if fd >= 0:
                os.close(fd)
                left.add((kind, number))
        self._seen_of_bpf -= gone - left
        return left

    # What faults are made of

    def step_clock(self, seconds: int) -> None:
        """The wall clock of agent and controller differs so much from the machine's."""
        self._clock.step(seconds)

    def cut(self, of_controller: bool = True, to_controller: bool = True) -> None:
        """Drop the packets of the control link that the controller sends, and that are sent to it."""
        flags = [f"-DFROM={self.control}"] * of_controller + [f"-DTO={self.control}"] * to_controller
        include = f"-I/usr/include/{platform.machine()}-linux-gnu"
        program, source = self.folder / "drop.o", str(_HERE / "drop.bpf.c")
        output("clang", "-O2", "-g", "-target", "bpf", include, *flags, "-c", source, "-o", str(program))
        # Where they arrive: a sender whose own machine drops a packet knows it, and tries again soon.
        cut = BpfObject(self._library, program, {})
        try:
            lo = socket.if_nametoindex("lo")
            TcFilter(self._library, 1).attach(lo, cut.program_fd("cut"), INGRESS, create=True)
        finally:
            cut.close()  # the filter has the program

    def mend_link(self) -> None:
        """After :meth:`cut`."""
        output("tc", "qdisc", "del", "dev", "lo", "clsact")

    def remove_clsact(self) -> None:
        """As somebody does who cleans up."""
        output("tc", "qdisc", "del", "dev", self.name, "clsact")

    def link(self, name: str, state: str) -> None:
        """Set an interface ``up`` or ``down``."""
        output("ip", "link", "set", name, state)

    def shape(self, part: float) -> None:
        """Another queue at the receiver's port: a part of its rate and buffer."""
        self.net[BRIDGE].intf(self.name).shape(RATE * part, round(BUFFER * part))

    def use_up_descriptors(self, program: Process) -> None:
        """From now on it cannot open another one."""
        pid = program.process.pid
        used = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
        free = next(number for number in range(len(used) + 1) if number not in used)
        self._limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, self._limit[1]))

    def give_descriptors(self, program: Process) -> None:
        """After :meth:`use_up_descriptors`."""
        resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, self._limit)

    def disk(self, full: bool) -> None:
        """Nothing more can be written where the logs, the run files and the database are; or it can again."""
        for path in (self.folder, status.run_directory()):
            mount = path
            while not mount.is_mount():
                mount = mount.parent
            about = os.statvfs(mount)
            used = (about.f_blocks - about.f_bfree) * about.f_frsize
            output("mount", "-o", f"remount,size={used if full else 1 << 30}", str(mount))

    def knock(self) -> None:
        """Connect to the controller's ports and to the agent's socket; nothing need answer."""
        for port in (self.control, self.rest_port):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                pass
        with contextlib.suppress(UserError):
            status.ask(BRIDGE, 0.5)

    # Open vSwitch

    def vsctl(self, *words: str) -> str:
        return output("ovs-vsctl", "--timeout=60", *words).strip()

    def restart_switch(self, *names: str) -> None:
        """Start these of Open vSwitch again."""
        for name in names:
            self.machine.start(name)
        if DATABASE in names:
            self.vsctl("--no-wait", "--retry", "init")
        if SWITCH in names:
            assert until(lambda: "running" not in self._vswitchd_fault()), "it does not start"

    def _vswitchd_fault(self) -> str:
        shown = subprocess.run(["ovs-appctl", "-t", SWITCH, "version"], capture_output=True, check=False)
        return "not running" if shown.returncode else ""

    def delete_bridge(self) -> None:
        assert self._bridge_again
        self.vsctl("del-br", BRIDGE)

    def make_bridge(self) -> None:
        self.vsctl(*self._bridge_again)
        self.connect_bridge()

    def rename_port(self, old: str, new: str) -> None:
        assert self._qos
        self.vsctl("del-port", BRIDGE, old)
        self.link(old, "down")
        output("ip", "link", "set", old, "name", new)
        self.link(new, "up")
        self.vsctl(*self._port_again(BRIDGE, new, self.port)[1:])

    def move_port(self) -> None:
        """To another bridge, which has no agent."""
        kind = self.vsctl("get", "bridge", BRIDGE, "datapath_type")
        words = ["add-br", OTHER, "--", "set", "bridge", OTHER, f"datapath_type={kind}"]
        words += ["--", "del-port", BRIDGE, self.name]
        self.vsctl(*words, *self._port_again(OTHER, self.name, self.port))

    def move_port_back(self) -> None:
        self.vsctl("del-br", OTHER, *self._port_again(BRIDGE, self.name, self.port))

    @functools.cached_property
    def _bridge_again(self) -> list[str]:
        """The words of ovs-vsctl that make the bridge again."""
        (row,) = json.loads(
            self.vsctl(
                "--format=json",
                "--columns=datapath_type,datapath_id,other_config,external_ids",
                "list",
                "bridge",
                BRIDGE,
            )
        )["data"]
        kind, dpid, other, external = row
        settings = [f'other_config:{key}="{value}"' for key, value in other[1] if key != "datapath-id"]
        settings += [f"external_ids:{key}={value}" for key, value in external[1]]
        words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, f"datapath_type={kind or 'system'}"]
        words += ["protocols=OpenFlow13", f"other_config:datapath-id={dpid}", *settings]
        words += ["--", "set-fail-mode", BRIDGE, "standalone"]
        for number in range(1, self.port + 1):
            words += self._port_again(BRIDGE, f"{BRIDGE}-eth{number}", number)
        return words

    def _port_again(self, bridge: str, name: str, number: int) -> list[str]:
        """The words of ovs-vsctl that add a port."""
        words = ["--", "add-port", bridge, name, "--", "set", "interface", name, f"ofport_request={number}"]
        return [*words, "--", "set", "port", name, f"qos={self._qos}"] if number == self.port else words

    @functools.cached_property
    def _qos(self) -> str:
        """The record that leaves the receiver's queue alone."""
        return self.vsctl("get", "port", self.name, "qos")


@contextlib.contextmanager
def _many_descriptors() -> Iterator[None]:
    """Both ends of all connections are in this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def made_site(others: int = 0) -> Iterator[Site]:
    """A site on a machine of its own, and this thread on it."""
    machine = OwnMachine()
    try:
        with cubic_allowed(), _many_descriptors(), machine.used():
            site = Site(machine, others)
            try:
                site.start()
                yield site
            finally:
                site.close()
    finally:
        machine.close()

"""One policy's network: starts and stops the controller, switches with their agents, hosts and generators."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from fairq_ryu import client
from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.free_ports import free_port
from fairq_ryu.experiments.hostcc.hosts import HostTcp
from fairq_ryu.experiments.measure.hidden import HiddenQueue
from fairq_ryu.experiments.measure.machine import BARE, GENERIC_APP, app_of, find_program
from fairq_ryu.experiments.measure.queues import agent_socket, read_status
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.traffic.workers import RunError, Worker, end_all
from fairq_ryu.experiments.variants import Variant
from mininet_topos.commands import CommandError, child_setup, end_process, run
from mininet_topos.patience import patient
from mininet_topos.plans import BehindTor, Dumbbell, FatTree, Incast, LeafSpine

CONNECT_SECONDS = 30.0
"""Time limit until the controller listens, and from then until all switches and agents are connected."""


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived. A ``BaseException``, because it is not an error."""


INSISTS_S = 1.0
"""A signal that follows the first by less may be the same one, sent to the process and to its group."""


class Interrupts:
    """Raises `Interrupted` on a signal, but not while a network is being built or removed: then a second
    signal does, `INSISTS_S` or more after the first.
    """

    def __init__(self) -> None:
        self._held = 0
        self._first: float | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            # After the first signal the run cleans up; a second signal must not interrupt this.
            signal.signal(number, handler if self._first is None else signal.SIG_IGN)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        insists = self._first is not None and now - self._first >= INSISTS_S
        self._first = now if self._first is None else self._first
        if insists or not self._held:
            raise Interrupted

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Signals are deferred until the end of this block; then `Interrupted` is raised if one arrived."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if self._first is not None and not self._held:
            raise Interrupted


class Outside:
    """The place of a generator outside of all hosts: this machine."""

    name = "this machine"

    def popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        """Start a program in its own session, so that Ctrl-C on the terminal reaches the runner only."""
        process: subprocess.Popen[Any] = subprocess.Popen(*args, start_new_session=True, **kwargs)
        return process


def config_files(
    scenario: Scenario, where: Path, given: Path | None, variant: Variant | None = None
) -> list[Path]:
    """The controller's configuration files, of which later ones override earlier ones: the settings of the
    scenario, written into the directory ``where``, the file that the user has ``given``, and the settings of
    the ``variant``.
    """
    where.mkdir(parents=True, exist_ok=True)
    asked = where / "scenario.conf"
    asked.write_text(
        f"[fairq_ryu]\nsyn = {scenario.syn}\nway = {scenario.way}\n{scenario.far_queues}{tenants(scenario)}"
    )
    own = None if variant is None else variant.write(where)
    return [file for file in (asked, given, own) if file is not None]


def tenants(scenario: Scenario) -> str:
    """The sections of the configuration that name the hosts of each tenant by their addresses, with its
    weight, and the priorities of flows.
    """
    if not scenario.tenants:
        return ""
    address = addresses(make_topology(scenario))
    sections = [
        f"[tenant.{name}]\nhosts = {' '.join(address[host] for host in hosts)}\n"
        f"weight = {scenario.weights.get(name, 1)}\n"
        for name, hosts in scenario.tenants.items()
    ]
    if scenario.dscp_priorities:
        pairs = " ".join(f"{dscp}:{priority}" for dscp, priority in scenario.dscp_priorities.items())
        sections.append(f"[tenants]\ndscp = {pairs}\n")
    return "".join(sections)


def addresses(topology: Any) -> dict[str, str]:
    """The address that Mininet will give to each host of a topology: they are needed before there are any."""
    first = ipaddress.IPv4Address("10.0.0.1")
    return {name: str(first + place) for place, name in enumerate(topology.hosts())}


class Testbed:
    """The network of one policy: `start`, use, `stop`. `stop` may be called at any time."""

    def __init__(self, scenario: Scenario, variant: Variant, logs: Path, config_file: Path | None) -> None:
        """Start nothing yet. Logs of controller, agents and generators go to the directory ``logs``."""
        baseline = variant.baseline
        self.scenario = baseline.applied(scenario)
        """the scenario to run, with the settings of the baseline"""
        self.variant = variant
        self._policy = baseline.policy
        self.qdisc = baseline.qdisc
        """the qdisc of the kernel that every shallow port has; None: a FIFO"""
        self.logs = logs
        """directory for logs and other files of a run"""
        self._config_file = config_file
        self._port = 0
        self.rest_port: int | None = None
        """port of the controller's REST interface on this machine; None without a controller"""
        self.token = secrets.token_hex(32)
        """the controller accepts announcements with this token"""
        self._controller: subprocess.Popen[bytes] | None = None
        self._net: Any = None
        self.workers: list[Worker] = []
        self.has_agents = self._policy != BARE
        self._taildrop: Any = None
        self.hidden: HiddenQueue | None = None
        """the bottleneck's queue, where no agent sees it"""
        self.tcp = HostTcp(self.scenario)
        """the TCP of all hosts"""

    # Up

    def start(self) -> None:
        """Start the controller, then the network; returns when every switch and agent is connected.
        `RunError` when one does not connect.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        self.tcp.load()
        self._port = free_port()
        if self.has_agents:
            self._start_controller(self._port)
        self._build_network(self._port)
        if self.has_agents:
            # A bridge that finds no controller tries again after 1, 2, 4 and 8 s.
            self._wait(self._listening, "the controller to listen")
        self._start_network()
        if self.has_agents:
            self._wait(self._connected, "switches and agents to connect to the controller")
        else:
            for switch in self._bridges:
                run(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", switch.name, "actions=NORMAL"])
        if not self.scenario.batch_loss:
            self._start_taildrop()
        if self.scenario.plan.far_ports:
            self.hidden = HiddenQueue(self.bottleneck()[1], self.scenario.buffer_bytes)

    def _start_controller(self, port: int) -> None:
        # A free port for REST too: another controller may use the default one.
        self.rest_port = free_port()
        command = [
            find_program("ryu-manager"),
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
            *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(self.rest_port)),
        ]
        files = config_files(self.scenario, self.logs, self._config_file, self.variant)
        for file in files:
            command += ["--config-file", str(file)]
        app = app_of(self._policy)
        if app == GENERIC_APP:
            chosen = self.logs / "policy.conf"
            chosen.write_text(f"[fairq_ryu]\npolicy = {self._policy}\n")
            command += ["--config-file", str(chosen)]  # a later file overrides an earlier one
        environment = {**os.environ, "FAIRQ_TOKEN": self.token}
        given = self._token_file()
        if given is not None:
            # The controller accepts one of the two only.
            del environment["FAIRQ_TOKEN"]
            self.token = given.read_text().strip()
        # While it is stopped, SIGTERM would not end it.
        with (self.logs / "controller.log").open("wb") as log, child_setup(signal.SIGKILL) as prepare:
            self._controller = subprocess.Popen(
                [*command, app],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=prepare,
            )

    def _token_file(self) -> Path | None:
        """The token file that the configuration names."""
        if self._config_file is None:
            return None
        name = str(loader.load([self._config_file]).value("fairq_ryu", "token_file"))
        return Path(name) if name else None

    def _build_network(self, port: int) -> None:
        # Imported here: only a run needs Mininet.
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.node import RemoteController

        from mininet_topos.switch import FairQSwitch

        class Remote(RemoteController):
            """Mininet would look for the controller with telnet and warn; `start` waits for it instead."""

            def checkListening(self) -> None:
                """Not needed."""

        setLogLevel("error")
        self._net = Mininet(
            topo=make_topology(self.scenario, self.tcp.cc),
            controller=None,
            switch=FairQSwitch,
            build=False,
        )
        files = config_files(self.scenario, self.logs, self._config_file, self.variant)
        settings = [word for file in files for word in ("--config-file", str(file))]
        for switch in self._net.topo.switches():
            self._net.topo.nodeInfo(switch).update(
                agent=self.has_agents, agentLog=str(self.logs), agentArgs=settings, way=self.scenario.way
            )
        if self.qdisc is not None:
            given = loader.load([] if self._config_file is None else [self._config_file])
            config = self.variant.applied(given)
            for _, _, link in self._net.topo.links(withInfo=True):
                if link.get("rate") is not None:
                    link["qdisc"] = self.qdisc.at(link["rate"], link["buffer"], config)
        topo = self._net.topo
        for place, line in enumerate((topo.line, *getattr(topo, "right_lines", ()))):
            line.log = self.logs / (f"delayline-{place}.log" if place else "delayline.log")
        if self.has_agents:
            self._net.addController("c0", controller=Remote, ip="127.0.0.1", port=port)
        with _mininet_errors():
            self._net.build()
            self._check_addresses()
            self.tcp.configure(self._net.hosts)
            for host in self._net.hosts:
                host.setRate(self.scenario.host_rate_mbit)

    def _check_addresses(self) -> None:
        expected = addresses(self._net.topo)
        for name in (host for hosts in self.scenario.tenants.values() for host in hosts):
            if (found := self.host(name).IP()) != expected[name]:
                raise RunError(f"{name} has the address {found}, and its tenant has {expected[name]}")

    def _start_network(self) -> None:
        with _mininet_errors():
            self._net.start()

    def _start_taildrop(self) -> None:
        """Drop single packets that do not fit the queue, at every shallow port of a switch with the userspace
        datapath, under every policy. The kernel's sends them one by one anyway.
        """
        from fairq_ryu.agent.libbpf import BpfError
        from fairq_ryu.agent.programs.taildrop import start_taildrop

        ports = {
            intf.name: (int(intf.params["buffer"]), number)
            for number, switch in enumerate(self._bridges, start=1)
            for intf in switch.intfs.values()
            if switch.datapath == "user" and getattr(intf, "shallow", False)
        }
        if not ports:
            return
        limits = {name: limit for name, (limit, _) in ports.items()}
        groups = {name: number for name, (_, number) in ports.items()} if self.scenario.shared_buffer else {}
        try:
            self._taildrop = start_taildrop(limits, groups)
        except (BpfError, OSError, UserError) as error:
            raise RunError(f"single packets cannot be dropped ({error}): set batch_loss = true") from error

    def _ask(self, path: str) -> dict[str, Any] | None:
        """The controller's answer; None: it does not answer yet. `RunError` if it has ended."""
        assert self._controller is not None
        if self._controller.poll() is not None:
            raise RunError(
                f"the controller ended with exit code {self._controller.returncode}: {self._last_log_line()}"
            )
        with contextlib.suppress(client.NoController):
            return client.ask(f"http://127.0.0.1:{self.rest_port}", "GET", path, usage="docs/rest.md")
        return None

    def _listening(self) -> bool:
        return self._ask("/v1/health") is not None

    def _connected(self) -> bool:
        for switch in self._bridges:
            if not switch.agentRunning():
                raise RunError(f"the agent of {switch.name} ended: see {self.logs}/agent-{switch.name}.log")
        # The controller knows at once; Open vSwitch updates `is_connected` every five seconds.
        health, wanted = self._ask("/v1/health"), len(self._bridges)
        bridges = 0 if self.scenario.way == "windows" else wanted
        if health is None or (health["bridges"], health["agents"]) != (bridges, wanted):
            return False
        # Before the controller knows which ports lead to hosts, frames can be lost.
        listed = self._ask("/v1/ports")
        return listed is not None and all(port["role"] != "undecided" for port in listed["ports"])

    def _last_log_line(self) -> str:
        text = (self.logs / "controller.log").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "its log is empty"

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        limit = patient(CONNECT_SECONDS)
        deadline = time.monotonic() + limit
        while not ready():
            if time.monotonic() > deadline:
                raise RunError(f"waited {limit:g} s without success for {what}: see the logs in {self.logs}")
            time.sleep(0.1)

    @property
    def _bridges(self) -> list[Any]:
        """The switches that are ours."""
        from mininet_topos.switch import FairQSwitch

        return [each for each in self._net.switches if isinstance(each, FairQSwitch)]

    # In use

    def status(self, switch: str) -> dict[str, Any]:
        """The status of the agent of ``switch``."""
        return read_status(switch)

    def status_path(self, switch: str) -> str | None:
        """The socket at which the agent of ``switch`` tells its status; None without agents."""
        return agent_socket(switch) if self.has_agents else None

    def host(self, name: str) -> Any:
        """The Mininet host ``name``."""
        return self._net[name]

    def bottleneck(self) -> tuple[str, str]:
        """The switch with the bottleneck port, and the name of the port's interface."""
        switch, behind = self.scenario.plan.bottleneck
        (link,) = self._net.linksBetween(self._net[switch], self._net[behind])
        ours = link.intf1 if link.intf1.node.name == switch else link.intf2
        return switch, ours.name

    @property
    def buffer_bytes(self) -> int:
        """The buffer of the bottleneck: the scenario's, or the own one of its qdisc."""
        scenario = self.scenario
        if self.qdisc is None:
            return scenario.buffer_bytes
        return self.qdisc.holds(scenario.rate_mbit, scenario.buffer_bytes)

    def made_qdisc(self, port: str) -> str:
        """Kind and options of the qdisc that the interface ``port`` has in place of a FIFO; "": a FIFO."""
        found = next(
            intf.params.get("qdisc")
            for switch in self._net.switches
            for intf in switch.intfs.values()
            if intf.name == port
        )
        return "" if found is None else str(found.arguments)

    def dropped(self, port: str) -> int | None:
        """Single packets dropped at the interface ``port`` since the start; None with ``batch_loss``, and
        with the kernel's datapath.
        """
        return None if self._taildrop is None else int(self._taildrop.dropped(socket.if_nametoindex(port)))

    def worker(self, host: str, role: str, *arguments: str) -> Worker:
        """Start a role of the load generator in ``host``; it ends with the testbed."""
        worker = Worker(self.host(host), role, self.logs / "traffic.log", *arguments)
        self.workers.append(worker)
        return worker

    def local_worker(self, role: str) -> Worker:
        """Start a role outside every host."""
        worker = Worker(Outside(), role, self.logs / "traffic.log")
        self.workers.append(worker)
        return worker

    @contextlib.contextmanager
    def controller_stopped(self) -> Iterator[None]:
        """Stop the controller (SIGSTOP) until the context ends; without a controller, do nothing."""
        if self._controller is None:
            yield
            return
        try:
            self._controller.send_signal(signal.SIGSTOP)
            yield
        finally:
            self._controller.send_signal(signal.SIGCONT)

    def check_alive(self) -> None:
        """`RunError` when the controller or an agent has ended: the figures would be wrong."""
        if self.has_agents:
            self._connected()

    # Down

    def stop(self) -> list[str]:
        """Stop and remove everything that exists; returns the errors. A signal that is not deferred ends the
        step at hand.
        """
        trouble: list[str] = []

        def attempt(step: Callable[[], object]) -> None:
            try:
                step()
            except (Exception, Interrupted) as error:  # the other steps must still be done
                trouble.append(str(error) or type(error).__name__)

        attempt(lambda: end_all(self.workers))
        if self.hidden is not None:
            attempt(self.hidden.close)
        if self._taildrop is not None:
            attempt(self._taildrop.close)
        if self._net is not None:
            from mininet_topos.delays import end_lines
            from mininet_topos.switch import end_agents

            attempt(lambda: end_agents(self._bridges))
            attempt(lambda: end_lines(self._net.links))
            for switch in self._net.switches:
                attempt(lambda switch=switch: switch.stop(deleteIntfs=False))  # type: ignore[misc]
                attempt(lambda switch=switch: remove_interfaces(switch.name))  # type: ignore[misc]
            for node in [*self._net.hosts, *self._net.switches, *self._net.controllers]:
                attempt(node.terminate)
        attempt(self.tcp.close)
        if self._controller is not None:
            controller = self._controller
            attempt(lambda: end_process(controller))
        return trouble


@contextlib.contextmanager
def _mininet_errors() -> Iterator[None]:
    """Errors of Mininet and our parts of it become `RunError`."""
    # Imported here: only a run needs Mininet.
    from mininet_topos.hosts import HostError
    from mininet_topos.switch import SwitchError

    try:
        yield
    except (CommandError, HostError, SwitchError) as error:
        raise RunError(str(error)) from error
    except Exception as error:  # Mininet raises no more specific class
        raise RunError(f"Mininet cannot build the network: {error}") from error


def make_topology(scenario: Scenario, cc: str = "") -> Any:
    """The Mininet topology that the scenario names, with its queues; ``cc`` replaces the scenario's."""
    topo = _topology(scenario, cc)
    if not scenario.offloads:
        for host in topo.hosts():
            topo.nodeInfo(host).update(offloads=False)
    return topo


def _topology(scenario: Scenario, cc: str) -> Any:
    from mininet_topos.dumbbell import DumbbellTopo
    from mininet_topos.fat_tree import FatTreeTopo
    from mininet_topos.incast import IncastTopo
    from mininet_topos.leaf_spine import LeafSpineTopo
    from mininet_topos.tor import TorTopo

    plan = scenario.plan
    options = {
        "rate": scenario.rate_mbit,
        "buffer": scenario.buffer_bytes,
        "cc": cc or scenario.cc,
        "rtt": scenario.rtt_ms,
    }
    if isinstance(plan, BehindTor):
        return TorTopo(n=plan.n, right=plan.right, shaped=scenario.shaped or 0, **options)
    if isinstance(plan, Incast):
        return IncastTopo(n=plan.n, **options)
    if isinstance(plan, Dumbbell):
        return DumbbellTopo(n=plan.n, right=plan.right, right_rtts=scenario.receiver_rtts_ms, **options)
    options.update(uplink=scenario.uplink_mbit or None, only=plan.receiver)
    if isinstance(plan, LeafSpine):
        return LeafSpineTopo(leaves=plan.leaves, spines=plan.spines, hosts=plan.hosts, **options)
    assert isinstance(plan, FatTree)
    return FatTreeTopo(k=plan.k, **options)


def remove_interfaces(switch: str) -> None:
    """Remove the veth pairs of ``switch`` now: the kernel removes them some time after their namespaces."""
    names = [each["ifname"] for each in json.loads(run(["ip", "-j", "link", "show"]))]
    ours = [name for name in names if name.startswith(f"{switch}-eth")]
    if ours:
        run(["ip", "-force", "-batch", "-"], stdin="".join(f"link del {name}\n" for name in ours))

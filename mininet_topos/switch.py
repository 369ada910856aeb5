"""An Open vSwitch bridge that starts its own FairQ agent."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mininet.link import Intf
from mininet.log import warn
from mininet.node import OVSSwitch, Switch

from mininet_topos.commands import (
    CommandError,
    child_setup,
    end_process,
    end_processes,
    has_kernel_datapath,
    is_alive,
    process_mark,
    run,
)
from mininet_topos.hosts import OFFLOADS, FairQHost
from mininet_topos.links import ShallowIntf
from mininet_topos.patience import patient
from mininet_topos.shells import ShieldedShell

READY_SECONDS = 15.0  # for one agent: loading and attaching eBPF programs on many ports takes a few seconds
END_SECONDS = 5.0  # for one agent, from SIGTERM to its end
# The external_ids key of bridges made here: the process that made it. It identifies leftovers.
_OWNER = "fairq-owner"
WAYS = ("windows", "normal", "paths")


def description(name: str, way: str) -> str:
    """The OpenFlow description of a switch that asks a controller of fairq_ryu for a way."""
    return f"{name}, fairq_ryu: {way}"


class SwitchError(Exception):
    """The switch or its agent cannot start; the text contains the reason and the remedy."""


def fairq_program() -> list[str]:
    """The ``fairq`` command: ``$FAIRQ``, or else that of ``.venv``, or else that on PATH. ``SwitchError`` if
    there is none.
    """
    named = os.environ.get("FAIRQ")
    if named:
        return shlex.split(named)
    beside = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "fairq"
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("fairq") or shutil.which("fairq", path=str(Path(sys.executable).parent))
    if found:
        return [found]
    raise SwitchError(
        f"the program fairq is not installed ({beside} does not exist and PATH has none):"
        " run `make setup`, or set the environment variable FAIRQ to its path"
    )


class FairQSwitch(ShieldedShell, OVSSwitch):
    """Open vSwitch, OpenFlow 1.3, fail mode secure, with one ``fairq agent`` beside it.

    The agents of a network start in parallel: ``start`` does not wait for its agent, and after all switches
    Mininet calls `batchStartup`, which waits for all agents.

    ``way``       how a controller of fairq_ryu governs it, unless the controller's setting ``way`` says so:
                  ``paths`` (the default), ``normal`` or ``windows``. The bridge's OpenFlow description asks
                  for it. With ``windows`` only the agent connects; the bridge has no controller, and is a
                  learning switch in fail mode standalone.
    ``datapath``  ``kernel`` or ``user``; the default is the kernel's if the machine has it.
    ``agent``     False for a switch without an agent.
    ``agentArgs`` more arguments for ``fairq agent``, a list or one string.
    ``agentLog``  a directory for the agent's log, which is kept; without it the log is a temporary file.
    ``batch``     False for a switch that is not started by Mininet's batch: ``start`` waits for the agent.
    """

    def __init__(
        self,
        name: str,
        datapath: str | None = None,
        way: str = "paths",
        agent: bool = True,
        agentArgs: Sequence[str] | str = (),
        agentLog: str | None = None,
        batch: bool = True,
        **params: Any,
    ) -> None:
        if way not in WAYS:
            raise SwitchError(f"switch {name}: way {way!r} is none of {', '.join(WAYS)}")
        # Not where the topology says "secure", because it has loops.
        params.setdefault("failMode", "standalone" if way == "windows" else "secure")
        params.setdefault("protocols", "OpenFlow13")
        # Mininet's own batch would create the bridge after `start`, which is too late for the agent.
        params["batch"] = False
        super().__init__(name, datapath=datapath or ("kernel" if has_kernel_datapath() else "user"), **params)
        self.way = way
        self.agent = agent
        self.agentArgs = shlex.split(agentArgs) if isinstance(agentArgs, str) else list(agentArgs)
        self._log_dir = agentLog
        self._agent_log: Path | None = None
        self._agent_process: subprocess.Popen[bytes] | None = None
        self._in_batch = batch
        self._started = False

    def bridgeOpts(self) -> str:
        """Mininet's options for the bridge, its description, and the mark of the process that made it."""
        # Mininet's own description is the name; of two, the last is in force.
        described = f"other-config:dp-desc='\"{description(self.name, self.way)}\"'"
        return f"{super().bridgeOpts()} {described} external_ids:{_OWNER}={process_mark(os.getpid())}"

    def start(self, controllers: Iterable[Any]) -> None:
        """Create the bridge, install its shallow queues and start the agent.

        At the first start `batchStartup` waits for the agent; later (or without ``batch``) ``start`` does.
        ``SwitchError`` if the bridge is in use or was not created, and as `startAgent`.
        """
        controllers = list(controllers)
        refuse_foreign_bridge(self.name)
        self._started = True
        super().start([] if self.way == "windows" else controllers)
        try:
            run(["ovs-vsctl", "br-exists", self.name])
        except CommandError:
            raise SwitchError(f"Open vSwitch did not create bridge {self.name}: see its log") from None
        for intf in self._data_intfs():
            # Otherwise the machine's own IPv6 stack would send discovery messages through every port.
            quiet = Path(f"/proc/sys/net/ipv6/conf/{intf.name}/disable_ipv6")
            if quiet.exists():
                quiet.write_text("1")
            if isinstance(intf, ShallowIntf) and intf.shallow:
                self._keep_queue(intf)
            self._complete_checksums(intf)
        if self.agent:
            targets = [f"{c.protocol}:{c.IP()}:{c.port}" for c in controllers]
            self.startAgent(targets, wait=not self._in_batch)

    def _data_intfs(self) -> list[Any]:
        return [intf for intf in self.intfList() if self.ports[intf] and not intf.IP()]

    def _keep_queue(self, intf: ShallowIntf) -> None:
        """Configure Open vSwitch to leave the port's queue alone, then install the queue again.

        Without a QoS record of type linux-noop, Open vSwitch removes the root qdisc of a port each time it
        configures the port. It may have done so already, so the queue is installed a second time.
        """
        run(
            ["ovs-vsctl", "--", "--id=@noop", "create", "QoS", "type=linux-noop",
             f"external_ids:fairq-bridge={self.name}",
             "--", "set", "Port", intf.name, "qos=@noop"]
        )  # fmt: skip
        own = intf.params
        intf.shape(own["rate"], own["buffer"], own.get("qdisc"), own.get("overhead", 0))

    def attach(self, intf: Any) -> None:
        """Add a port while the bridge runs, as Mininet does."""
        super().attach(intf)
        if isinstance(intf, Intf):  # Mininet also takes a name
            self._complete_checksums(intf)

    def _complete_checksums(self, intf: Any) -> None:
        """Let the host behind a port of the userspace datapath send whole checksums and no super-packets:
        this datapath forwards them as they are, and TCP hangs. The kernel's datapath completes them.
        """
        if self.datapath != "user" or intf.link is None:
            return
        far = intf.link.intf1 if intf.link.intf2 is intf else intf.link.intf2
        if isinstance(far.node, (Switch, FairQHost)):  # a FairQHost has done it
            return
        try:
            run(
                [
                    "mnexec",
                    "-a",
                    str(far.node.pid),
                    "ethtool",
                    "-K",
                    far.name,
                    *(word for name in OFFLOADS for word in (name, "off")),
                ]
            )
        except CommandError as error:
            warn(f"*** {self.name}: TCP from {far.node.name} will hang: its offloads stay on: {error}\n")

    def startAgent(self, targets: Sequence[str], wait: bool = True) -> None:
        """Start ``fairq agent`` for this bridge; with ``wait``, return when it reports that it is ready.

        ``targets``: addresses of controllers, such as ``tcp:127.0.0.1:6653``. ``SwitchError`` if there is no
        ``fairq`` program, or if the agent exits or is not ready in time; it quotes the agent's log.
        """
        command = [*fairq_program(), "agent", "--bridge", self.name]
        for target in targets:
            command += ["--controller", target]
        command += self.agentArgs
        if self._log_dir is not None:
            Path(self._log_dir).mkdir(parents=True, exist_ok=True)
            self._agent_log = Path(self._log_dir) / f"agent-{self.name}.log"
            handle = os.open(self._agent_log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        else:
            handle, path = tempfile.mkstemp(prefix=f"fairq-agent-{self.name}-", suffix=".log")
            self._agent_log = Path(path)
        try:
            with child_setup() as prepare:
                self._agent_process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=handle,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C reaches Mininet only, which ends the agent in `stop`
                    preexec_fn=prepare,
                )
        except OSError as error:
            raise SwitchError(
                f"cannot start {command[0]}: {error.strerror}: check $FAIRQ, or run `make setup` again"
            ) from None
        finally:
            os.close(handle)
        if wait:
            _wait_ready([self])

    def agentReady(self) -> bool:
        """Whether the agent has reported that it is ready. ``SwitchError`` if it has ended."""
        assert self._agent_process is not None and self._agent_log is not None
        ended = self._agent_process.poll()  # polled first: the log then contains all output before its end
        if f"fairq agent: bridge {self.name} ready" in self._agent_log.read_text(errors="replace"):
            return True
        if ended is not None:
            raise SwitchError(f"the agent of {self.name} ended with exit code {ended}: {self.agentLogTail()}")
        return False

    def agentLogTail(self) -> str:
        """The last lines of the agent's log."""
        return _tail(self._agent_log.read_text(errors="replace")) if self._agent_log is not None else ""

    def stopAgent(self) -> None:
        """End the agent, by its own pid. No effect without an agent."""
        if self._agent_process is not None:
            end_process(self._agent_process, END_SECONDS)
            self._agent_process = None
        if self._agent_log is not None and self._log_dir is None:
            self._agent_log.unlink(missing_ok=True)
        self._agent_log = None

    def agentRunning(self) -> bool:
        """Whether the agent is running."""
        return self._agent_process is not None and self._agent_process.poll() is None

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the agent, then remove the QoS records and the bridge, if `start` has made it."""
        self.stopAgent()
        if self._started:
            self._started = False
            remove_bridge(self.name)
        if deleteIntfs:
            self.deleteIntfs()

    @classmethod
    def batchStartup(cls, switches: Sequence[FairQSwitch], run: Callable[..., Any] | None = None) -> Any:
        """Wait until the agents of all ``switches`` are ready.

        ``SwitchError`` names the first that has ended or is late; then all of these agents are ended.
        """
        _wait_ready([each for each in switches if each._in_batch and each._agent_process is not None])
        for switch in switches:
            switch._in_batch = False  # a second start is not in a batch, as `switch s1 start` of the CLI
        return switches

    @classmethod
    def batchShutdown(cls, switches: Sequence[FairQSwitch], run: Callable[..., Any] | None = None) -> Any:
        """Stop the switches: Mininet's batch would leave agents and QoS records behind. Open vSwitch
        configures itself once for all bridges that go: for a fat tree that took seconds.
        """
        end_agents(switches)
        started = [switch for switch in switches if switch._started]
        remove_bridges([switch.name for switch in started])
        for switch in started:
            switch._started = False
        for switch in switches:
            switch.stop()
        return switches


def end_agents(switches: Iterable[FairQSwitch]) -> None:
    """End the agents of all ``switches`` in parallel. No effect for switches without one."""
    switches = list(switches)
    agents = [each._agent_process for each in switches if each._agent_process is not None]
    end_processes(agents, _patience(END_SECONDS, len(agents)))
    for switch in switches:
        switch.stopAgent()


def _patience(seconds: float, agents: int) -> float:
    """The time limit, seconds, for ``agents`` in parallel if one needs ``seconds``: they share processors."""
    return seconds * max(1.0, agents / (os.cpu_count() or 1))


def _wait_ready(switches: Sequence[FairQSwitch]) -> None:
    """Wait until all agents are ready. If one ends or is late, end them all and raise its ``SwitchError``."""
    patience = patient(_patience(READY_SECONDS, len(switches)))
    deadline = time.monotonic() + patience
    waiting = list(switches)
    try:
        while waiting := [switch for switch in waiting if not switch.agentReady()]:
            if time.monotonic() > deadline:
                late = waiting[0]
                raise SwitchError(
                    f"the agent of {late.name} is not ready after {patience:g} s: {late.agentLogTail()}"
                )
            time.sleep(0.05)
    except BaseException:
        end_agents(switches)
        raise


def refuse_foreign_bridge(name: str) -> None:
    """``SwitchError`` if bridge ``name`` exists, because Mininet would delete it silently.

    A bridge that a `FairQSwitch` of an ended process has left behind is removed instead.
    """
    try:
        run(["ovs-vsctl", "br-exists", name])
    except CommandError:
        return
    if not remove_leftover(name):
        raise SwitchError(
            f"bridge {name} exists already: end the program that uses it,"
            f" or remove it with `ovs-vsctl del-br {name}`"
        )


def remove_leftover(name: str) -> bool:
    """Remove bridge ``name`` if a `FairQSwitch` of an ended process (killed, or before a reboot) made it, and
    its links to other switches: those to hosts have ended with the hosts.

    Returns whether it was removed. Other bridges are not changed.
    """
    owner = run(["ovs-vsctl", "--if-exists", "get", "Bridge", name, f"external_ids:{_OWNER}"])
    owner = owner.strip().strip('"')
    if not re.fullmatch(r"\d+\.\d+", owner) or is_alive(owner):
        return False
    ports = run(["ovs-vsctl", "list-ports", name]).split()
    remove_bridge(name)
    for port in ports:
        if port.startswith(f"{name}-eth"):
            with contextlib.suppress(CommandError):  # it is not there any more
                run(["ip", "link", "del", port])
    return True


def remove_bridge(name: str) -> None:
    """Remove bridge ``name`` and the QoS records of its shallow ports. No effect if it does not exist."""
    remove_bridges([name])


def remove_bridges(names: Sequence[str]) -> None:
    """Remove bridges, the QoS records of their shallow ports, and the flows that their agents have left to
    the next ones. No effect for those that do not exist.
    """
    if not names:
        return
    for name in names:
        Path(os.environ.get("FAIRQ_RUNDIR", "/run/fairq_ryu"), f"{name}.flows").unlink(missing_ok=True)
    _vsctl(["del-br", name] for name in names)
    # The database keeps a QoS record after its port is deleted, until the record itself is destroyed.
    records = _vsctl(["find", "QoS", f"external_ids:fairq-bridge={name}"] for name in names).split()
    if records:
        _vsctl(["destroy", "QoS", record] for record in records)


def _vsctl(commands: Iterable[Sequence[str]]) -> str:
    """The output of several commands in one call of ``ovs-vsctl``; of records it shows the UUID only."""
    called = ["ovs-vsctl"]
    for command in commands:
        option = "--columns=_uuid" if command[0] == "find" else "--if-exists"
        called += ["--", option, *command]
    called.insert(1, "--bare")
    return run(called)


def _tail(text: str, lines: int = 3) -> str:
    """The last lines of a log, on one line."""
    return " | ".join(text.strip().splitlines()[-lines:]) or "its log is empty"

"""An Open vSwitch bridge that starts its own FairQ agent."""

from __future__ import annotations

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

from mininet.node import OVSSwitch

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
from mininet_topos.links import ShallowIntf
from mininet_topos.shells import ShieldedShell

READY_SECONDS = 15.0  # for one agent: loading and attaching eBPF programs on many ports takes a few seconds
END_SECONDS = 5.0  # for one agent, from SIGTERM to its end
# The external_ids key on what we make: the process that made it, so that leftovers are known.
_OWNER = "fairq-owner"


class SwitchError(Exception):
    """The switch or its agent cannot start; the text says why and what to do."""


def fairq_program() -> list[str]:
    """The ``fairq`` command: ``$FAIRQ``, else the one of ``.venv``, else that on PATH. ``SwitchError``."""
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
        " run `make setup`, or name it in the environment variable FAIRQ"
    )


class FairQSwitch(ShieldedShell, OVSSwitch):
    """Open vSwitch, OpenFlow 1.3, fail mode secure, with one ``fairq agent`` beside it.

    The agents of a network start side by side: ``start`` leaves its agent loading, and when all switches are
    there Mininet calls `batchStartup`, which waits for all agents.

    ``datapath``  ``kernel`` or ``user``; by default the kernel's when the machine has it.
    ``agent``     False for a switch without an agent.
    ``agentArgs`` more arguments for ``fairq agent``, a list or one string.
    ``agentLog``  a directory for the agent's log, which is then kept; otherwise a temporary file.
    ``batch``     False for one that is started by itself: its ``start`` waits for the agent.
    """

    def __init__(
        self,
        name: str,
        datapath: str | None = None,
        agent: bool = True,
        agentArgs: Sequence[str] | str = (),
        agentLog: str | None = None,
        batch: bool = True,
        **params: Any,
    ) -> None:
        params.setdefault("failMode", "secure")
        params.setdefault("protocols", "OpenFlow13")
        # Mininet's own batch would make the bridge later than `start`, and the agent needs it there.
        params["batch"] = False
        super().__init__(name, datapath=datapath or ("kernel" if has_kernel_datapath() else "user"), **params)
        self.agent = agent
        self.agentArgs = shlex.split(agentArgs) if isinstance(agentArgs, str) else list(agentArgs)
        self._log_dir = agentLog
        self._agent_log: Path | None = None
        self._agent_process: subprocess.Popen[bytes] | None = None
        self._in_batch = batch
        self._started = False

    def bridgeOpts(self) -> str:
        """As Open vSwitch's, plus a mark of who made the bridge."""
        return f"{super().bridgeOpts()} external_ids:{_OWNER}={process_mark(os.getpid())}"

    def start(self, controllers: Iterable[Any]) -> None:
        """Make the bridge, put its shallow queues in place and start the agent.

        The first time `batchStartup` waits until it is ready, later (or without ``batch``) ``start`` itself.
        ``SwitchError`` when the bridge is in use or was not made, and as `startAgent`.
        """
        controllers = list(controllers)
        refuse_foreign_bridge(self.name)
        self._started = True
        super().start(controllers)
        try:
            run(["ovs-vsctl", "br-exists", self.name])
        except CommandError:
            raise SwitchError(f"Open vSwitch did not make bridge {self.name}: see its log") from None
        for intf in self._data_intfs():
            # The machine's own IPv6 stack would announce itself into the network from every port.
            quiet = Path(f"/proc/sys/net/ipv6/conf/{intf.name}/disable_ipv6")
            if quiet.exists():
                quiet.write_text("1")
            if isinstance(intf, ShallowIntf) and intf.shallow:
                self._keep_queue(intf)
        if self.agent:
            targets = [f"{c.protocol}:{c.IP()}:{c.port}" for c in controllers]
            self.startAgent(targets, wait=not self._in_batch)

    def _data_intfs(self) -> list[Any]:
        return [intf for intf in self.intfList() if self.ports[intf] and not intf.IP()]

    def _keep_queue(self, intf: ShallowIntf) -> None:
        """Tell Open vSwitch to leave the port's queue alone, then put it in place.

        OVS owns the QoS of its ports: without a record of type linux-noop it removes the root qdisc each time
        it looks at the port. It may just have done so, hence the second `shape`.
        """
        run(
            ["ovs-vsctl", "--", "--id=@noop", "create", "QoS", "type=linux-noop",
             f"external_ids:fairq-bridge={self.name}",
             "--", "set", "Port", intf.name, "qos=@noop"]
        )  # fmt: skip
        intf.shape(intf.params["rate"], intf.params["buffer"])

    def startAgent(self, targets: Sequence[str], wait: bool = True) -> None:
        """Start ``fairq agent`` for this bridge; with ``wait``, until it says that it is ready.

        ``targets`` are controllers such as ``tcp:127.0.0.1:6653``. ``SwitchError`` when there is no such
        program, or with the end of the agent's log when it exits or is not ready within 15 s.
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
                    start_new_session=True,  # Ctrl-C is for Mininet, which ends the agent in `stop`
                    preexec_fn=prepare,
                )
        except OSError as error:
            raise SwitchError(
                f"cannot start {command[0]}: {error.strerror}: check $FAIRQ or set up again"
            ) from None
        finally:
            os.close(handle)
        if wait:
            _wait_ready([self])

    def agentReady(self) -> bool:
        """Whether the agent has said that it is ready. ``SwitchError`` when it has ended."""
        assert self._agent_process is not None and self._agent_log is not None
        ended = self._agent_process.poll()  # asked first: what it said before its end is in the log then
        if f"fairq agent: bridge {self.name} ready" in self._agent_log.read_text(errors="replace"):
            return True
        if ended is not None:
            raise SwitchError(f"the agent of {self.name} ended with exit code {ended}: {self.agentWords()}")
        return False

    def agentWords(self) -> str:
        """The last lines of the agent's log."""
        return _tail(self._agent_log.read_text(errors="replace")) if self._agent_log is not None else ""

    def stopAgent(self) -> None:
        """End the agent, by its own pid; harmless when there is none."""
        if self._agent_process is not None:
            end_process(self._agent_process, END_SECONDS)
            self._agent_process = None
        if self._agent_log is not None and self._log_dir is None:
            self._agent_log.unlink(missing_ok=True)
        self._agent_log = None

    def agentRunning(self) -> bool:
        """Whether the agent lives."""
        return self._agent_process is not None and self._agent_process.poll() is None

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the agent, give back the QoS records, then remove the bridge (only the one made by `start`)."""
        self.stopAgent()
        if self._started:
            self._started = False
            remove_bridge(self.name)
        if deleteIntfs:
            self.deleteIntfs()

    @classmethod
    def batchStartup(cls, switches: Sequence[FairQSwitch], run: Callable[..., Any] | None = None) -> Any:
        """Wait for the agents of all, which their ``start`` left loading.

        ``SwitchError`` names the first that ended or is late; then all of these agents are ended.
        """
        _wait_ready([each for each in switches if each._in_batch and each._agent_process is not None])
        for switch in switches:
            switch._in_batch = False  # who starts it again does so alone, as `switch s1 start` of the CLI
        return switches

    @classmethod
    def batchShutdown(cls, switches: Sequence[FairQSwitch], run: Callable[..., Any] | None = None) -> Any:
        """Stop one by one: Mininet's batch would forget agents and QoS records."""
        end_agents(switches)
        for switch in switches:
            switch.stop()
        return switches


def end_agents(switches: Iterable[FairQSwitch]) -> None:
    """End the agents of all ``switches`` side by side; harmless where there is none."""
    switches = list(switches)
    agents = [each._agent_process for each in switches if each._agent_process is not None]
    end_processes(agents, _patience(END_SECONDS, len(agents)))
    for switch in switches:
        switch.stopAgent()


def _patience(seconds: float, agents: int) -> float:
    """How long ``agents`` may take together for what one does within ``seconds``: processors are few."""
    return seconds * max(1.0, agents / (os.cpu_count() or 1))


def _wait_ready(switches: Sequence[FairQSwitch]) -> None:
    """Until all agents are ready. When one is not, end them all and raise its ``SwitchError``."""
    patience = _patience(READY_SECONDS, len(switches))
    deadline = time.monotonic() + patience
    waiting = list(switches)
    try:
        while waiting := [switch for switch in waiting if not switch.agentReady()]:
            if time.monotonic() > deadline:
                late = waiting[0]
                raise SwitchError(
                    f"the agent of {late.name} is not ready after {patience:g} s: {late.agentWords()}"
                )
            time.sleep(0.05)
    except BaseException:
        end_agents(switches)
        raise


def refuse_foreign_bridge(name: str) -> None:
    """``SwitchError`` when bridge ``name`` is in use, where Mininet would delete it without a word.

    One that we made, in a process that is gone, is removed instead.
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
    """Remove bridge ``name`` if we made it, in a process that is gone: killed, or lost with its machine.

    Returns whether it did. Anything else is left as it is.
    """
    said = run(["ovs-vsctl", "--if-exists", "get", "Bridge", name, f"external_ids:{_OWNER}"])
    owner = said.strip().strip('"')
    if not re.fullmatch(r"\d+\.\d+", owner) or is_alive(owner):
        return False
    remove_bridge(name)
    return True


def remove_bridge(name: str) -> None:
    """Remove bridge ``name`` and the QoS records made for its shallow ports. Harmless when it is gone."""
    run(["ovs-vsctl", "--if-exists", "del-br", name])
    # A QoS record is a root of the database: it outlives its port unless destroyed by name.
    records = run(
        ["ovs-vsctl", "--bare", "--columns=_uuid", "find", "QoS", f"external_ids:fairq-bridge={name}"]
    ).split()
    for record in records:
        run(["ovs-vsctl", "--if-exists", "destroy", "QoS", record])


def _tail(text: str, lines: int = 3) -> str:
    """The last lines of a log, on one line."""
    return " | ".join(text.strip().splitlines()[-lines:]) or "its log is empty"

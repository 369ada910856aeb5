"""The processor time of a controller that governs many ports, all of them busy (``python -m bench ports``).

A real controller (``ryu-manager``) and simulated switches, which speak the real channel over TCP on this
machine: the agents are the agent's own modules without a kernel (:mod:`bench.simulated_switches`). Every port
has a busy queue and flows that last, and new connections begin at a rate; their SYNs and FINs are copied to
the controller. Needs no root. ``python -m bench.ports --help`` lists the options.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from bench import figures
from bench.network import ROOT, Child
from bench.simulated_switches import Report, Settings, read_report
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.free_ports import free_port
from fairq_ryu.experiments.measure import intervals
from fairq_ryu.experiments.measure.machine import find_program
from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.commands import child_setup, end_process

LEASE = 2
WANTED = 0.20  # of a core, for 1,000 ports
# Seconds in which all ports must be governed, and of the windows of the measurement.
_START_TIME, _WINDOW = 60.0, 2.0
_ANSWER_TIME = 20.0


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured: ``ports`` in all, at most ``ports_each`` on a switch; ``lasting`` flows and ``rate``
    new connections per second on each port, which last ``lifetime`` seconds; ``sending``: the part of the
    lasting flows that send.
    """

    ports: int
    ports_each: int = 50
    lasting: int = 4
    rate: float = 1.0
    lifetime: float = 1.0
    sending: float = 1.0
    switches_a_process: int = 10

    def settings(self, controller: int) -> list[Settings]:
        """The processes of switches; the ``controller`` listens on that port."""
        switches = -(-self.ports // self.ports_each)
        each = -(-self.ports // switches)
        if each * switches != self.ports or each < 2:
            raise UserError(
                f"{self.ports} ports cannot be spread over {switches} switches",
                "take a number of ports of which every switch has the same part, 2 at least",
            )
        return [
            Settings(
                controller,
                first,
                min(self.switches_a_process, switches + 1 - first),
                each,
                self.lasting,
                self.rate,
                self.lifetime,
                self.sending,
            )
            for first in range(1, switches + 1, self.switches_a_process)
        ]


@dataclass(frozen=True, slots=True)
class Measured:
    """A case's result. ``processor``: the controller's processor time per second in each window, seconds;
    ``waited``: the part of the time for which it waited for a processor that others used; ``seconds`` in all;
    ``memory``: its resident set, bytes.
    """

    processor: Sequence[float]
    waited: float
    seconds: float
    memory: int
    report: Report


class Switches:
    """A process of :mod:`bench.simulated_switches`."""

    def __init__(self, settings: Settings, log: IO[bytes]) -> None:
        with child_setup() as prepare:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.simulated_switches"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                cwd=ROOT,
                preexec_fn=prepare,
            )
        self._write(json.dumps(asdict(settings)))

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except OSError as error:
            raise RunError("the simulated switches have ended, see their log") from error

    def ask(self) -> None:
        """Ask for a report."""
        self._write("")

    def answer(self) -> Report:
        """The report that was asked for. ``RunError`` if it does not come."""
        assert self._process.stdout is not None
        line, deadline = b"", time.monotonic() + _ANSWER_TIME
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise RunError("the simulated switches do not answer")
            data = self._process.stdout.read(1 << 16)
            if not data:
                raise RunError("the simulated switches have ended, see their log")
            line += data
        return read_report(line.decode())

    def end(self) -> None:
        """End the process."""
        end_process(self._process)


def reports(processes: Sequence[Switches]) -> Report:
    """One report of all processes, since the last."""
    for each in processes:
        each.ask()
    whole = Report()
    for each in processes:
        whole.add(each.answer())
    return whole


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used, seconds."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def waiting_seconds(pid: int) -> float:
    """The time for which a process could run and had no processor, seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def resident(pid: int) -> int:
    """The resident set of a process, bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def running(
    case: Case, folder: Path, command: Sequence[str], *apps: str
) -> Iterator[tuple[int, list[Switches]]]:
    """A controller and its switches: the controller's pid, and the processes of the switches. ``command``
    starts ``ryu-manager``; ``apps``: applications beside the controller's.
    """
    port = free_port()
    config = folder / "controller.conf"
    config.write_text(f"[fairq_ryu]\nlease = {LEASE}\n")
    with contextlib.ExitStack() as stack:
        controller = Child(
            folder / "controller.log",
            *command,
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
            *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(free_port())),
            *("--config-file", str(config), "fairq_ryu.apps.fairq", *apps),
        )
        stack.callback(controller.end)
        controller.wait_for("REST:")
        log = stack.enter_context((folder / "switches.log").open("wb"))
        processes = []
        for settings in case.settings(port):
            processes.append(Switches(settings, log))
            stack.callback(processes[-1].end)
        yield controller.process.pid, processes


def measure(
    case: Case, folder: Path, seconds: float, warm_up: float, command: Sequence[str] = ()
) -> Measured:
    """Run a case: ``warm_up`` seconds after all ports are governed, measure for ``seconds``. ``RunError`` if
    they are not.
    """
    command = command or [find_program("ryu-manager")]
    with running(case, folder, command) as (pid, processes):
        deadline = time.monotonic() + _START_TIME
        while min((found := reports(processes)).governed, found.hosts) < case.ports:
            if time.monotonic() > deadline:
                raise RunError(
                    f"{found.governed} of {case.ports} ports are governed after {_START_TIME:g} s, and "
                    f"{found.hosts} hosts are known"
                )
            time.sleep(0.2)
        time.sleep(warm_up)
        reports(processes)
        began, before, windows = time.monotonic(), processor_seconds(pid), []
        waited = waiting_seconds(pid)
        for _ in range(max(2, round(seconds / _WINDOW))):
            start = time.monotonic()
            time.sleep(min(_WINDOW, seconds))
            spent = processor_seconds(pid)
            windows.append((spent - before) / (time.monotonic() - start))
            before = spent
        report = reports(processes)
        seconds = time.monotonic() - began
        return Measured(windows, (waiting_seconds(pid) - waited) / seconds, seconds, resident(pid), report)


def describe(case: Case, found: Measured) -> list[str]:
    """The lines of text for a case."""
    report, share = found.report, intervals.of_mean(found.processor)
    agents, bridges = report.agents, report.bridges
    messages = agents.messages + bridges.messages
    name = f"ports, {case.ports:5}, {case.rate:g} connections/s each:"
    wanted = f", wanted {WANTED:.2f} at most" if case.ports >= 1000 else ""
    second = found.seconds
    return [
        f"{name} {share.mean:.3f} of a core ({share.low:.3f} to {share.high:.3f}){wanted}, "
        f"{share.mean / case.ports * 1e6:.0f} µs a second and port, "
        f"{share.mean * second / max(1, messages) * 1e6:.0f} µs a message, "
        f"memory {found.memory / 1e6:.0f} MB, waited for a processor {figures.share(found.waited, 1.0)} of "
        f"the time",
        f"{name} {messages / second:.0f} messages and {(agents.bytes + bridges.bytes) / second / 1e3:.0f} kB "
        f"a second (to agents {agents.messages_in / second:.0f} messages, from them "
        f"{agents.messages_out / second:.0f}), {report.connections / second:.0f} new connections a second",
        f"{name} ports governed at all times {report.least}, by laws in the switch {report.laws}, "
        f"leases ended {report.lapses}, renewals {report.renewals / second:.0f} a second, longest gap "
        f"{report.gap:.2f} s of {LEASE} s, least left at a renewal {report.left:.0%}",
    ]


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.ports", description=__doc__)
    parser.add_argument("--ports", default="10,100,1000", help="numbers of ports, separated by commas")
    parser.add_argument("--ports-each", type=int, default=50, help="ports of a switch, at most")
    parser.add_argument("--lasting", type=int, default=4, help="flows that last, per port")
    parser.add_argument("--rate", type=float, default=1.0, help="new connections a second, per port")
    parser.add_argument("--lifetime", type=float, default=1.0, help="of a new connection, seconds")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the measurement")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before it")
    given = parser.parse_args(arguments)
    flows = {"lasting": given.lasting, "rate": given.rate, "lifetime": given.lifetime}
    numbers = [int(ports) for ports in given.ports.split(",")]
    cases = [Case(ports, min(ports, given.ports_each), **flows) for ports in numbers]
    if given.rate:  # what do the new connections cost?
        cases.append(replace(max(cases, key=lambda case: case.ports), rate=0.0))
    try:
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                found = measure(case, Path(folder), given.seconds, given.warm_up)
            print("\n".join(describe(case, found)), flush=True)
    except (RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None


if __name__ == "__main__":
    main(sys.argv[1:])

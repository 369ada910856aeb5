"""Several controllers that share many bridges (``python -m bench owners``).

Real controllers (``ryu-manager``), a real database (one ``ovsdb-server``) and simulated agents, which speak
the real channel over TCP on this machine (:mod:`bench.simulated_switches`) and connect to every controller.
Each port has a busy queue and connections that last, and new ones begin at a rate; their agents copy the
segments that begin and end them. Measured are each controller's processor time and memory, how many of the
connections they know, and how long it takes until a controller that is killed is replaced. All share the
processors of the machine: what counts is the processor time of each controller. Needs no root.
``python -m bench.owners --help`` lists the options.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.network import Child
from bench.ports import LEASE, Switches, processor_seconds, reports, resident, waiting_seconds
from bench.simulated_switches import Settings
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.free_ports import free_port
from fairq_ryu.experiments.measure.machine import find_program
from fairq_ryu.experiments.traffic.workers import RunError

# Seconds in which all must be governed and evenly spread, and between two looks.
_START_TIME, _LOOK = 240.0, 0.05
_SWITCHES_A_PROCESS = 50
# How long a new connection lasts, s.
_LIFETIME = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """``controllers``; ``bridges`` with ``ports`` each, and ``connections`` on each port; ``rate``: new
    connections per second on all ports together.
    """

    controllers: int
    bridges: int
    ports: int
    connections: int
    rate: float = 0.0

    @property
    def all_ports(self) -> int:
        """The number of ports of all bridges."""
        return self.bridges * self.ports

    def settings(self, controllers: Sequence[int]) -> list[Settings]:
        """The processes of agents; the ``controllers`` listen on these ports."""
        port, *others = controllers
        return [
            Settings(
                port,
                first,
                min(_SWITCHES_A_PROCESS, self.bridges + 1 - first),
                self.ports,
                self.connections,
                rate=self.rate / self.all_ports,
                seconds=_LIFETIME,
                others=tuple(others),
                bridges=False,
            )
            for first in range(1, self.bridges + 1, _SWITCHES_A_PROCESS)
        ]


@dataclass(frozen=True, slots=True)
class Found:
    """Of a controller: its bridges; processor seconds per second, and the part of the time for which it
    waited for a processor; resident set, bytes.
    """

    bridges: int
    processor: float
    waited: float
    memory: int


@dataclass(frozen=True, slots=True)
class Measured:
    """``rate``: connections that began in a second; ``known``: connections that all controllers together
    have as established; ``lapses`` of leases before a controller is killed. Then: ``claimed``, seconds until
    others own its bridges; ``governed``, until all ports have windows again; ``least``, ports that had
    windows at all times.
    """

    controllers: Sequence[Found]
    rate: float
    known: int
    lapses: int
    claimed: float | None
    governed: float | None
    least: int


class Running:
    """The controllers of a case, their database and the agents."""

    def __init__(self, case: Case, folder: Path, stack: contextlib.ExitStack) -> None:
        file = folder / "fairq.db"
        fairq = find_program("fairq")
        subprocess.run([fairq, "cluster", "init", str(file)], check=True, stdout=subprocess.DEVNULL)
        remote = f"unix:{folder / 'fairq.sock'}"
        words = ["ovsdb-server", str(file), f"--remote=p{remote}", f"--unixctl={folder / 'fairq.ctl'}"]
        server = subprocess.Popen([*words, "-vconsole:off"])
        stack.callback(server.wait)
        stack.callback(server.kill)
        self.case, self.asked, self._folder, self._stack = case, 0, folder, stack
        self._ports = [(free_port(), free_port()) for _ in range(case.controllers)]
        for number in range(case.controllers):
            shared = f"[cluster]\ndatabase = {remote}\nname = c{number}\n"
            text = f"[fairq_ryu]\nlease = {LEASE}\nway = windows\n{shared}"
            (folder / f"c{number}.conf").write_text(text)
        self.children = [self._controller(number) for number in range(case.controllers)]
        for child in self.children:
            child.wait_for("REST:")
        self.wait(lambda: len(self.cluster()["controllers"]) == case.controllers, "controllers")
        log = stack.enter_context((folder / "switches.log").open("wb"))
        self.agents: list[Switches] = []
        for settings in case.settings([port for port, _ in self._ports]):
            self.agents.append(Switches(settings, log))
            stack.callback(self.agents[-1].end)

    def _controller(self, number: int) -> Child:
        port, rest = self._ports[number]
        child = Child(
            self._folder / f"c{number}.log",
            find_program("ryu-manager"),
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
            *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(rest)),
            *("--config-file", str(self._folder / f"c{number}.conf"), "fairq_ryu.apps.fairq"),
        )
        self._stack.callback(child.end)
        return child

    def kill(self, number: int) -> float:
        """Kill a controller; the time of the monotonic clock before. Another one is asked from now on."""
        if self.asked == number:
            self.asked = (number + 1) % self.case.controllers
        began = time.monotonic()
        self.children[number].process.send_signal(signal.SIGKILL)
        return began

    def start(self, number: int) -> None:
        """Start a controller that was killed."""
        self.children[number].end()
        self.children[number] = self._controller(number)
        self.children[number].wait_for("REST:")

    @staticmethod
    def wait(done: Any, what: str) -> float:
        """Wait until something is so; the seconds that it took. ``RunError`` if it takes too long."""
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > _START_TIME:
                raise RunError(f"after {_START_TIME:g} s it is still waited for {what}")
            time.sleep(_LOOK)
        return time.monotonic() - began

    def cluster(self) -> Any:
        """Who owns what, as a controller that lives says."""
        return self._ask("cluster")

    def known(self) -> int:
        """The number of established connections that the controllers know."""
        return int(self._ask("flows?limit=1&state=established")["total"])

    def _ask(self, what: str) -> Any:
        url = f"http://127.0.0.1:{self._ports[self.asked][1]}/v1/{what}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)

    def shares(self) -> list[int]:
        """The number of bridges of each controller."""
        return [row["bridges"] for row in self.cluster()["controllers"]]

    def even(self) -> bool:
        """Whether all bridges have owners, evenly spread, and all ports have windows."""
        shares = self.shares()
        spread = sum(shares) == self.case.bridges and max(shares) - min(shares) <= 0.1 * max(shares) + 1
        return spread and reports(self.agents).governed == self.case.all_ports


def measure(case: Case, folder: Path, seconds: float, warm_up: float) -> Measured:
    """Run a case. ``RunError`` if it does not start."""
    with contextlib.ExitStack() as stack:
        run = Running(case, folder, stack)
        run.wait(run.even, "bridges that are evenly spread, and windows on all ports")
        time.sleep(warm_up)
        reports(run.agents)
        pids = [child.process.pid for child in run.children]
        before = [(processor_seconds(pid), waiting_seconds(pid)) for pid in pids]
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        report = reports(run.agents)
        found = [
            Found(
                bridges,
                (processor_seconds(pid) - processor) / took,
                (waiting_seconds(pid) - waited) / took,
                resident(pid),
            )
            for bridges, pid, (processor, waited) in zip(run.shares(), pids, before, strict=True)
        ]
        measured = Measured(found, report.connections / took, run.known(), report.lapses, None, None, 0)
        if case.controllers == 1:
            return measured
        claimed, governed, least = _kill(run)
        return replace(measured, claimed=claimed, governed=governed, least=least)


def _kill(run: Running) -> tuple[float, float, int]:
    """Kill the last controller."""
    wanted = least = run.case.all_ports
    last = run.case.controllers - 1
    began = run.kill(last)
    claimed = None
    while True:
        report = reports(run.agents)
        least = min(least, report.least)
        now = time.monotonic() - began
        if claimed is None:
            if all(row["owner"] != f"c{last}" for row in run.cluster()["bridges"]):
                claimed = now
        elif now > LEASE and report.governed == wanted:
            return claimed, now, least
        if now > _START_TIME:
            raise RunError(f"{report.governed} of {wanted} ports are governed again")


_HEAD = (
    "controllers",
    "bridges of each",
    "ports",
    "connections that last",
    "new connections a second",
    "connections known",
    "processor of each, of a core",
    "together",
    "waited for a processor, at most",
    "memory of each, at most",
    "leases ended",
    "one killed: other owners after",
    "all ports have windows after, at most",
    "ports that always had windows",
)


def row(case: Case, found: Measured) -> list[str]:
    """The row of a case in the table."""
    each, ports = found.controllers, case.all_ports
    killed = ["", "", ""]
    if found.claimed is not None and found.governed is not None:
        killed = [f"{found.claimed:.2f} s", f"{found.governed:.2f} s", str(found.least)]
    return [
        str(case.controllers),
        ", ".join(str(one.bridges) for one in each),
        str(ports),
        str(ports * case.connections),
        f"{found.rate:.0f}",
        str(found.known),
        ", ".join(f"{one.processor:.2f}" for one in each),
        f"{sum(one.processor for one in each):.2f}",
        f"{max(one.waited for one in each):.0%}",
        f"{max(one.memory for one in each) / 1e6:.0f} MB",
        str(found.lapses),
        *killed,
    ]


def line(cells: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def head(cells: Sequence[str]) -> str:
    """The two lines above the rows of a table in Markdown."""
    return f"{line(cells)}\n{'|---' * len(cells)}|"


def main(arguments: Sequence[str] = ()) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.owners", description=__doc__)
    parser.add_argument("--controllers", default="1,2,4", help="numbers of them, separated by commas")
    parser.add_argument("--bridges", type=int, default=100, help="in all")
    parser.add_argument("--ports", type=int, default=10, help="per bridge")
    parser.add_argument("--connections", type=int, default=20, help="per port")
    parser.add_argument(
        "--rate",
        default="0,200,1000",
        help="new connections a second, on all ports together; several with commas",
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of the measurement")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before it")
    given = parser.parse_args(arguments)
    sizes = given.bridges, given.ports, given.connections
    numbers, rates = map(int, given.controllers.split(",")), list(map(float, given.rate.split(",")))
    print(f"{given.bridges} bridges:\n\n{head(_HEAD)}", flush=True)
    try:
        for case in (Case(number, *sizes, rate) for number in numbers for rate in rates):
            with tempfile.TemporaryDirectory() as folder:
                found = measure(case, Path(folder), given.seconds, given.warm_up)
            print(line(row(case, found)), flush=True)
    except (RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None


if __name__ == "__main__":
    main(sys.argv[1:])

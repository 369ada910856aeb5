"""Several controllers that share many bridges (``python -m bench owners``).

Real controllers (``ryu-manager``), a real database (one ``ovsdb-server``) and simulated agents, which speak
the real channel over TCP on this machine (:mod:`bench.simulated_switches`) and connect to every controller.
Each port has a busy queue and connections that last. Measured are each controller's processor time and
memory, and how long it takes until a controller that is killed is replaced. All share the processors of the
machine: what counts is the processor time of each controller. Needs no root.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Case:
    """``controllers``; ``bridges`` with ``ports`` each, and ``connections`` on each port."""

    controllers: int
    bridges: int
    ports: int
    connections: int

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
                rate=0.0,
                seconds=1.0,
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
    """``lapses`` of leases before a controller is killed. Then: ``claimed``, seconds until others own its
    bridges; ``governed``, until all ports have windows again; ``least``, ports that had windows at all times.
    """

    controllers: Sequence[Found]
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
        self.case, self.children, self.rest = case, list[Child](), list[int]()
        ports = []
        for number in range(case.controllers):
            port, rest = free_port(), free_port()
            config = folder / f"c{number}.conf"
            shared = f"[cluster]\ndatabase = {remote}\nname = c{number}\n"
            config.write_text(f"[fairq_ryu]\nlease = {LEASE}\nway = windows\n{shared}")
            child = Child(
                folder / f"c{number}.log",
                find_program("ryu-manager"),
                *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
                *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(rest)),
                *("--config-file", str(config), "fairq_ryu.apps.fairq"),
            )
            stack.callback(child.end)
            self.children.append(child)
            self.rest.append(rest)
            ports.append(port)
        for child in self.children:
            child.wait_for("REST:")
        self.wait(lambda: len(self.cluster()["controllers"]) == case.controllers, "controllers")
        log = stack.enter_context((folder / "switches.log").open("wb"))
        self.agents: list[Switches] = []
        for settings in case.settings(ports):
            self.agents.append(Switches(settings, log))
            stack.callback(self.agents[-1].end)

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
        """Who owns what, as the first controller says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.rest[0]}/v1/cluster", timeout=20) as answer:
            return json.load(answer)

    def shares(self) -> list[int]:
        """The number of bridges of each controller."""
        return [row["bridges"] for row in self.cluster()["controllers"]]

    def even(self) -> bool:
        """Whether all bridges have owners, evenly spread, and all ports have windows."""
        shares = self.shares()
        spread = sum(shares) == self.case.bridges and max(shares) - min(shares) <= 0.1 * max(shares) + 1
        return spread and reports(self.agents).governed == self.case.bridges * self.case.ports


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
        lapses = reports(run.agents).lapses
        found = [
            Found(
                bridges,
                (processor_seconds(pid) - processor) / took,
                (waiting_seconds(pid) - waited) / took,
                resident(pid),
            )
            for bridges, pid, (processor, waited) in zip(run.shares(), pids, before, strict=True)
        ]
        if case.controllers == 1:
            return Measured(found, lapses, None, None, 0)
        claimed, governed, least = _kill(run)
        return Measured(found, lapses, claimed, governed, least)


def _kill(run: Running) -> tuple[float, float, int]:
    """Kill the last controller."""
    wanted, least = run.case.bridges * run.case.ports, run.case.bridges * run.case.ports
    run.children[-1].process.send_signal(signal.SIGKILL)
    began = time.monotonic()
    claimed = None
    while True:
        report = reports(run.agents)
        least = min(least, report.least)
        now = time.monotonic() - began
        if claimed is None:
            shares = {row["name"]: row["bridges"] for row in run.cluster()["controllers"]}
            if not shares.get(f"c{run.case.controllers - 1}"):
                claimed = now
        elif now > LEASE and report.governed == wanted:
            return claimed, now, least
        if now > _START_TIME:
            raise RunError(f"{report.governed} of {wanted} ports are governed again")


def describe(case: Case, found: Measured) -> Iterator[str]:
    """The lines of text for a case."""
    ports = case.bridges * case.ports
    name = f"owners, {case.controllers} controllers, {case.bridges} bridges, {ports} ports, "
    name += f"{ports * case.connections} connections:"
    each = ", ".join(
        f"{row.bridges} bridges {row.processor:.2f} of a core (waited {row.waited:.0%}) "
        f"{row.memory / 1e6:.0f} MB"
        for row in found.controllers
    )
    yield f"{name} {each}; leases ended {found.lapses}"
    if found.claimed is not None:
        yield (
            f"{name} one killed: its bridges have other owners after {found.claimed:.2f} s, all ports "
            f"have windows after {found.governed:.2f} s at most; of {ports} ports, {found.least} had some at "
            f"all times"
        )


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.owners", description=__doc__)
    parser.add_argument("--controllers", default="1,2,4", help="numbers of them, separated by commas")
    parser.add_argument("--bridges", type=int, default=100, help="in all")
    parser.add_argument("--ports", type=int, default=10, help="per bridge")
    parser.add_argument("--connections", type=int, default=20, help="per port")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the measurement")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before it")
    given = parser.parse_args(arguments)
    try:
        for number in map(int, given.controllers.split(",")):
            case = Case(number, given.bridges, given.ports, given.connections)
            with tempfile.TemporaryDirectory() as folder:
                found = measure(case, Path(folder), given.seconds, given.warm_up)
            print("\n".join(describe(case, found)), flush=True)
    except (RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None


if __name__ == "__main__":
    main(sys.argv[1:])

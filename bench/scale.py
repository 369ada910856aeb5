"""One controller with many bridges and connections (``python -m bench scale``).

A real controller (``ryu-manager``) and simulated bridges and agents, which speak the real channel over TCP on
this machine (:mod:`bench.ports`). All of them connect at once, with their connections open, as after a
restart of the controller; then new connections begin at a rate. Measured are the delay of the controller's
event loop, by a greenlet in it (:mod:`bench.apps.probe`), its processor time and memory, and the time from
the first connection of a switch until the controller knows every connection, every host, and governs every
port. Needs no root. ``python -m bench.scale --help`` lists the options.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import figures
from bench.apps import probe
from bench.ports import Case, Switches, processor_seconds, reports, resident, running, waiting_seconds
from bench.simulated_flows import FIRST_PORT
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure.machine import find_program
from fairq_ryu.experiments.traffic.workers import RunError

PORTS_EACH = 10
WANTED_DELAY, WANTED_START = 0.005, 10.0
# Seconds in which all must be known.
_START_TIME = 120.0
_POLL = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """A case's result. ``start``: from the first connection until all is known, seconds; ``starting`` and
    ``delays``: of the event loop until then and in the measurement, microseconds, ascending; ``own``: those
    of the measurement without the time for which the controller waited for a processor; ``processor``:
    processor seconds per second; ``waited``: the part of the time for which the controller waited for a
    processor; ``memory``: resident set, bytes; ``connections``: in the flow table; ``opened``: new ones per
    second; ``lapses``: leases that have ended.
    """

    start: float
    starting: Sequence[int]
    delays: Sequence[int]
    own: Sequence[int]
    processor: float
    waited: float
    memory: int
    connections: int
    opened: float
    lapses: int


def quantile(ascending: Sequence[int], part: float) -> int:
    """The value below which ``part`` (0 to 1) of the values are. 0 if there are none."""
    return ascending[min(len(ascending) - 1, int(part * len(ascending)))] if ascending else 0


def make_case(bridges: int, connections: int, rate: float, sending: float, processes: int) -> Case:
    """``connections`` and new ones per second (``rate``) of so many bridges, all together."""
    count = bridges * PORTS_EACH
    if connections % count:
        raise UserError(
            f"{connections} connections cannot be spread over {count} ports", f"take a multiple of {count}"
        )
    return Case(
        ports=count,
        ports_each=PORTS_EACH,
        lasting=connections // count,
        rate=rate / count,
        sending=sending,
        switches_a_process=-(-bridges // processes),
    )


class Samples:
    """What the probe has written."""

    def __init__(self, file: Path) -> None:
        self._file, self._read = file, 0
        self.all: list[probe.Sample] = []

    def read(self) -> probe.Sample | None:
        """Read on; the last sample, None before the first."""
        if self._file.exists():
            with self._file.open("rb") as handle:
                handle.seek(self._read)
                whole = handle.read().rpartition(b"\n")[0]
            self._read += len(whole) + 1 if whole else 0
            self.all += [probe.Sample(*json.loads(line)) for line in whole.splitlines()]
        return self.all[-1] if self.all else None

    def delays(self, since: float, until: float) -> list[int]:
        """The delays in a span of time, ascending."""
        return sorted(late for each in self.all if since < each.time <= until for late in each.late)

    def own(self, since: float, until: float) -> list[int]:
        """The same without the waits for a processor."""
        return sorted(late for each in self.all if since < each.time <= until for late in each.own)


def measure(
    case: Case, folder: Path, seconds: float, warm_up: float, command: Sequence[str] = ()
) -> Measured:
    """Run a case: ``warm_up`` seconds after all is known, measure for ``seconds``. ``RunError`` if it takes
    too long.
    """
    file = folder / "probe.jsonl"
    connections = case.ports * case.lasting
    each = case.ports_each * case.lasting
    os.environ[probe.FILE] = str(file)
    os.environ[probe.LASTING] = f"{connections}:{FIRST_PORT + each}"
    command = command or [find_program("ryu-manager")]
    with running(case, folder, command, "bench.apps.probe") as (pid, sims):
        samples = Samples(file)
        began, known = _wait(case, samples, sims)
        time.sleep(warm_up)
        reports(sims)
        since, processor, waited = time.monotonic(), processor_seconds(pid), waiting_seconds(pid)
        time.sleep(seconds)
        until, report = time.monotonic(), reports(sims)
        last = samples.read()
        assert last is not None
        took = until - since
        return Measured(
            start=known - began,
            starting=samples.delays(began, known),
            delays=samples.delays(since, until),
            own=samples.own(since, until),
            processor=(processor_seconds(pid) - processor) / took,
            waited=(waiting_seconds(pid) - waited) / took,
            memory=resident(pid),
            connections=last.connections,
            opened=report.connections / took,
            lapses=report.lapses,
        )


def first_connection(samples: Sequence[probe.Sample]) -> float:
    """The time of the last sample before the first switch has connected: it has connected after that, and may
    have told all before the next sample.
    """
    number = next(number for number, each in enumerate(samples) if each.agents or each.bridges)
    return samples[number - 1].time if number else samples[0].time - probe.WRITE


def _wait(case: Case, samples: Samples, sims: Sequence[Switches]) -> tuple[float, float]:
    """Wait until all is known; the times of the first connection and of that."""
    deadline = time.monotonic() + _START_TIME
    governed = None
    while True:
        time.sleep(_POLL)
        last = samples.read()
        if governed is None:
            found = reports(sims)
            governed = time.monotonic() if min(found.governed, found.hosts) >= case.ports else None
        if governed is not None and last is not None and last.complete:
            began = first_connection(samples.all)
            complete = next(each.time for each in samples.all if each.complete)
            return began, max(governed, complete)
        if time.monotonic() > deadline:
            raise RunError(
                f"after {_START_TIME:g} s, {found.governed} of {case.ports} ports are governed, "
                f"{found.hosts} hosts are known, and {0 if last is None else last.connections} connections"
            )


def describe(case: Case, found: Measured) -> list[str]:
    """The lines of text for a case."""
    bridges = case.ports // case.ports_each
    name = f"scale, {bridges:3} bridges, {case.ports:4} ports, {case.ports * case.lasting:6} connections:"

    def spread(delays: Sequence[int]) -> str:
        values = (quantile(delays, part) / 1000 for part in (0.5, 0.99, 1.0))
        return "p50 {:.2f}, p99 {:.2f}, longest {:.1f} ms".format(*values)

    return [
        f"{name} loop delay {spread(found.delays)}, p99 wanted {WANTED_DELAY * 1000:g} at most; without "
        f"waits for a processor {spread(found.own)}; {found.opened:.0f} new connections a second, "
        f"{found.connections} known",
        f"{name} start to full knowledge {found.start:.1f} s, wanted {WANTED_START:g} at most, with loop "
        f"delay {spread(found.starting)}",
        f"{name} {found.processor:.2f} of a core, waited for a processor "
        f"{figures.share(found.waited, 1.0)} of the time, memory {found.memory / 1e6:.0f} MB, leases ended "
        f"{found.lapses}",
    ]


def growth(small: Measured, large: Measured, factor: float) -> str:
    """The line of text about the growth from one case to the other."""
    delays = [max(1, quantile(each.own, 0.99)) for each in (small, large)]
    return (
        f"scale, {factor:g} times as much: loop delay without waits p99 {delays[1] / delays[0]:.1f} times, "
        f"start {large.start / small.start:.1f} times, processor "
        f"{large.processor / max(small.processor, 0.001):.1f} times, memory "
        f"{large.memory / small.memory:.1f} times"
    )


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--bridges", default="5,20", help="numbers of bridges, separated by commas")
    parser.add_argument("--connections", type=int, default=1000, help="that last, per bridge")
    parser.add_argument("--rate", type=float, default=20.0, help="new connections a second, per bridge")
    parser.add_argument(
        "--sending", type=float, default=1.0, help="part of the lasting connections that send"
    )
    parser.add_argument("--processes", type=int, default=2, help="that simulate bridges and agents")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the measurement")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before it")
    given = parser.parse_args(arguments)
    results: list[tuple[int, Measured]] = []
    try:
        for bridges in [int(number) for number in given.bridges.split(",")]:
            case = make_case(
                bridges,
                bridges * given.connections,
                bridges * given.rate,
                given.sending,
                min(bridges, given.processes),
            )
            with tempfile.TemporaryDirectory() as folder:
                found = measure(case, Path(folder), given.seconds, given.warm_up)
            results.append((bridges, found))
            print("\n".join(describe(case, found)), flush=True)
    except (RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None
    if len(results) > 1:
        (few, small), (many, large) = results[0], results[-1]
        print(growth(small, large, many / few), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

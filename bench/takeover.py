"""The time until a killed controller is replaced, many times (``python -m bench takeover``).

Real controllers, a real database and simulated agents, as in :mod:`bench.owners`. Again and again the
controller with the most bridges is killed, and started again. Measured is the time from the kill until the
rules of all ports of its bridges are another controller's: of the next generation, and in force. It must be
less than a lease: the command ends with 1 if one takes longer. Needs no root.
``python -m bench.takeover --help`` lists the options.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.owners import Case, Running, head, line
from bench.ports import LEASE, reports
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.traffic.workers import RunError

# Seconds from when all are connected until the kill: by then every controller knows who reaches what.
_SETTLED = 2.0
# Seconds between two looks, and until a bridge is given up.
_LOOK, _AT_MOST = 0.02, 60.0


@dataclass(frozen=True, slots=True)
class Takeover:
    """``killed``: the controller. ``seconds`` until each of its bridges had another's rules; ``lapses``: of
    rules whose lease has ended meanwhile.
    """

    killed: int
    seconds: Sequence[float]
    lapses: int

    @property
    def within(self) -> bool:
        """Whether no bridge has waited for longer than a lease."""
        return max(self.seconds) <= LEASE


def take_over(run: Running) -> Takeover:
    """Wait until all is calm, kill the controller with the most bridges, and start it again when it has been
    replaced. ``RunError`` if it is not.
    """
    case = run.case

    def calm() -> bool:
        report = reports(run.agents)
        return report.channels == case.bridges * case.controllers and len(report.owned) == case.bridges

    run.wait(calm, "agents that are connected to all controllers, and have rules")
    time.sleep(_SETTLED)
    reports(run.agents)
    rows = run.cluster()["bridges"]
    name = Counter(row["owner"] for row in rows).most_common(1)[0][0]
    waiting = {str(int(row["dpid"], 16)): row["generation"] for row in rows if row["owner"] == name}
    killed, lapses, found = int(name.removeprefix("c")), 0, list[float]()
    began = run.kill(killed)
    while waiting:
        time.sleep(_LOOK)
        report = reports(run.agents)
        lapses += report.lapses
        for number, (generation, since) in report.owned.items():
            if number in waiting and generation > waiting[number]:
                del waiting[number]
                found.append(max(0.0, since - began))
        if time.monotonic() - began > _AT_MOST:
            raise RunError(f"c{killed} was killed: after {_AT_MOST:g} s {len(waiting)} bridges have no owner")
    run.start(killed)
    return Takeover(killed, found, lapses)


def take_overs(case: Case, folder: Path, times: int) -> Iterator[Takeover]:
    """So many, one after the other."""
    with ExitStack() as stack:
        run = Running(case, folder, stack)
        for _ in range(times):
            yield take_over(run)


def summary(found: Sequence[Takeover]) -> str:
    """The last line."""
    within, last = sum(each.within for each in found), [max(each.seconds) for each in found]
    return (
        f"{within} of {len(found)} within the lease of {LEASE} s; until the last bridge "
        f"{min(last):.2f} to {max(last):.2f} s, median {statistics.median(last):.2f} s"
    )


def main(arguments: Sequence[str] = ()) -> None:
    """Print a table. Ends the program with 1 if a bridge has waited for longer than a lease."""
    parser = argparse.ArgumentParser(prog="python -m bench.takeover", description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how often a controller is killed")
    parser.add_argument("--controllers", type=int, default=2, help="number of them, 2 at least")
    parser.add_argument("--bridges", type=int, default=10, help="in all")
    parser.add_argument("--ports", type=int, default=2, help="per bridge")
    parser.add_argument("--connections", type=int, default=10, help="per port")
    given = parser.parse_args(arguments)
    if given.controllers < 2 or given.ports < 2:
        parser.error("needs two controllers at least, and two ports")
    case = Case(given.controllers, given.bridges, given.ports, given.connections)
    found = []
    print(
        head(("takeover", "killed", "its bridges", "first bridge, s", "last bridge, s", "leases that ended"))
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number, each in enumerate(take_overs(case, Path(folder), given.times), 1):
                found.append(each)
                times = f"{min(each.seconds):.2f}", f"{max(each.seconds):.2f}"
                cells = str(number), f"c{each.killed}", str(len(each.seconds)), *times, str(each.lapses)
                print(line(cells), flush=True)
    except (RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None
    print(f"\n{summary(found)}")
    if not all(each.within for each in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])

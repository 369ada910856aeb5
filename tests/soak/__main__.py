"""``python -m tests.soak --minutes 60``: mixed traffic for a long time; what becomes of memory and counts.

Sessions of half a minute, one after the other, on an Open vSwitch, an agent and a controller that stay: an
incast of short connections, elephants, deadline flows, and connections that are mostly silent. At the end of
each, every byte has arrived, and no flow is active any more. What comes after the first fifth of the time is
judged (tests/soak/judge.py). Ends with 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from mininet_topos.patience import patient
from tests.faults.site import Site, made_site
from tests.floods.site import resident
from tests.soak import judge
from tests.soak.judge import Sample
from tests.soak.recount import Recount
from tests.support.lab import Process, until
from tests.support.traces import mark_processes

_SESSION, _EVERY, _LEAST = 30.0, 1.0, 180.0
_SILENT = 200
_ACTIVE = 0.1875
"""A flow is active for 175 to 200 ms after its data."""
_PROGRAMS = ("controller", "agent")


@dataclass
class Found:
    """What was seen, by the names of the programs."""

    memory: dict[str, list[Sample]] = field(default_factory=lambda: {name: [] for name in _PROGRAMS})
    log: dict[str, list[Sample]] = field(default_factory=lambda: {name: [] for name in _PROGRAMS})
    active: list[Sample] = field(default_factory=list)
    difference: list[Sample] = field(default_factory=list)
    """The agent's count of active flows without the recount, the mean of a session each."""
    sessions: int = 0
    connections: int = 0
    wrong: list[str] = field(default_factory=list)


class Soak:
    """One soak on a site."""

    def __init__(self, site: Site, seconds: float) -> None:
        self.site, self.seconds, self.found = site, seconds, Found()
        self._began = time.monotonic()
        self._recount = Recount(site.name)

    def run(self) -> Found:
        """Sessions until the time is over."""
        try:
            before = None
            while self._now() < self.seconds and not self.found.wrong:
                self._session()
                if before is None and self._now() >= judge.WARM_UP * self.seconds:
                    before = self.site.lasting()
            if before is not None and not until(lambda: self.site.inventory() == before):
                self.found.wrong.append(f"left over: {self.site.differs(before)}")
            if self._recount.missed:
                self.found.wrong.append(f"the recount has missed {self._recount.missed} packets")
        finally:
            self._recount.close()
        return self.found

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _session(self) -> None:
        site, found = self.site, self.found
        differences: list[float] = []
        end = min(self._now() + _SESSION, self.seconds)
        with site.load() as load:
            load.park(_SILENT)
            while self._now() < end:
                time.sleep(_EVERY)
                active, own = site.port_status()["active_flows"], self._recount.active(_ACTIVE)
                found.active.append(Sample(self._now(), active))
                differences.append(active - own)
                for name in _PROGRAMS:
                    program: Process = getattr(site, name)
                    found.memory[name].append(Sample(self._now(), resident(program)))
                    found.log[name].append(Sample(self._now(), program.log.stat().st_size))
            found.wrong += load.finish()
            found.connections += sum(load.done.values())
        found.sessions += 1
        found.difference.append(Sample(self._now(), sum(differences) / len(differences)))
        if not until(lambda: site.port_status()["active_flows"] == 0, patient(5)):
            found.wrong.append(f"flows are active that have ended: {site.port_status()['active_flows']}")
        self._say(differences)

    def _say(self, differences: Sequence[float]) -> None:
        found, number = self.found, len(differences)
        memory = ", ".join(f"{name} {found.memory[name][-1].value:.1f} MB" for name in _PROGRAMS)
        active = sum(each.value for each in found.active[-number:]) / number
        print(
            f"{self._now() / 60:5.1f} min: {found.connections:,} connections, {memory}, "
            f"active flows {active:.2f}, recount {active - sum(differences) / number:.2f}",
            file=sys.stderr,
            flush=True,
        )


def report(found: Found, seconds: float) -> tuple[str, list[str]]:
    """The table, and what does not hold."""
    wrong = list(found.wrong)
    lines = ["| what | first quarter | last quarter | an hour | holds |", "|---|---|---|---|---|"]

    def row(what: str, of: judge.Change, holds: bool | None) -> None:
        verdict = {True: "yes", False: "NO", None: "cannot tell"}[holds]
        lines.append(f"| {what} | {of.first:,.2f} | {of.last:,.2f} | {of.slope:+,.2f} | {verdict} |")
        if holds is False:
            wrong.append(what)

    for name in _PROGRAMS:
        memory = judge.change(judge.judged(found.memory[name], seconds))
        row(f"memory of the {name}, MB", memory, judge.is_flat(memory))
    difference = judge.judged(found.difference, seconds)
    drifted = judge.has_drifted(drift := judge.drift(difference))
    what = "active flows, agent's count without recount"
    row(what, judge.change(difference), None if drifted is None else not drifted)
    for name in _PROGRAMS:
        log = judge.judged(found.log[name], seconds)
        grown = log[-1].value - log[0].value
        row(f"log of the {name}, bytes", judge.change(log), grown <= judge.log_bound(seconds))
    lines.append(f"drift of active flows: {drift.mean:+.2f} [{drift.low:+.2f}, {drift.high:+.2f}]")
    lines.append(f"{seconds / 60:g} minutes, {found.sessions} sessions, {found.connections:,} connections")
    return "\n".join(lines), wrong


def main(arguments: Sequence[str]) -> int:
    """Run one. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long, 3 at least (default: 60)")
    seconds = parser.parse_args(arguments).minutes * 60
    if seconds < _LEAST:
        parser.error("a soak takes 3 minutes at least")
    mark_processes()
    with made_site() as site:
        found = Soak(site, seconds).run()
    text, wrong = report(found, seconds)
    print(text)
    for each in wrong:
        print(f"does not hold: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

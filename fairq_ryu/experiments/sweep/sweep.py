"""``fairq sweep``: runs what the directory does not have yet, and prints the table."""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments import ownership, runner
from fairq_ryu.experiments import scenario as scenarios
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.sweep import axes, schedule, table
from fairq_ryu.experiments.sweep.axes import Axis
from fairq_ryu.experiments.sweep.schedule import Run
from fairq_ryu.experiments.sweep.store import FILE_NAME, Store, describe
from fairq_ryu.experiments.testbed import Interrupted, Interrupts, config_files
from fairq_ryu.experiments.variants import Variant

_FLOOR = "floor"


def main(
    scenario: str,
    varying: Sequence[str],
    policies: Sequence[str],
    out: Path,
    overrides: Mapping[str, str] | None = None,
    config_file: Path | None = None,
    repeat: int = 1,
) -> int:
    """Run a scenario (name or path) at each point of the axes ``varying`` under each policy, ``repeat`` times
    with a seed each, as far as ``out`` does not have it yet, and print the table.

    Returns 0; 1 when a run failed or is not sound (the same call tries failed ones again); 130 when
    interrupted. ``UserError`` before anything starts when something does not fit, also of one point, or
    ``out`` has another sweep; later when there is no room.
    """
    given = axes.read(varying)
    chosen = _at_points(scenario, given, overrides or {})
    variants = runner.known_variants(policies, config_file)
    names = [FILE_NAME, *(point.directory for point in axes.points(given))]
    with ownership.given_to_caller(out, names):
        runner.check(chosen, variants, out, config_file)
        with tempfile.TemporaryDirectory() as directory:
            files = config_files(chosen[0], Path(directory), config_file)
            metadata = machine.metadata(scenario, dict(overrides or {}), variants, config_file, files)
        metadata["settings"] = _common([_settings(each, config_file) for each in chosen])
        store = Store(out, describe(scenario, chosen[0], given, variants, metadata, chosen[1:]))
        store.begin()
        try:
            Sweep(store, chosen, variants, config_file, repeat).run()
        except Interrupted:
            print("fairq sweep: interrupted; the same command continues", file=sys.stderr)
            return 130
        except OSError as error:
            raise UserError(
                f"cannot write to {out}: {error.strerror}", "make room; the same command continues"
            ) from None
    found = store.results()
    table.show(store, found)
    every = [policy for each in found if each is not None for policy in each["policies"]]
    return 1 if any(each["failed"] or each["unsound"] for each in every) else 0


def default_directory(scenario: str, varying: Sequence[str]) -> Path:
    """The directory of a sweep for which none is named. ``UserError`` as `axes.read`."""
    names = "-".join(axis.name for axis in axes.read(varying))
    return Path("results") / f"sweep-{Path(scenario).stem}-{names}"


def _at_points(scenario: str, given: Sequence[Axis], overrides: Mapping[str, str]) -> list[Scenario]:
    """The scenario at each point. ``UserError`` with the faults of all points, each once."""
    if _FLOOR in overrides:
        raise UserError("a sweep does not measure the volleys alone", f"leave --set {_FLOOR} out")
    both = [axis.name for axis in given if axis.name in overrides]
    if both:
        raise UserError(f"{both[0]} varies, and --set gives it one value", "leave one of them out")
    without_floor: dict[str, Any] = {_FLOOR: False}
    found: list[Scenario] = []
    faults: dict[str, UserError] = {}
    for point in axes.points(given):
        try:
            chosen = scenarios.load(scenario, {**overrides, **point.values})
        except UserError as error:
            faults |= {str(each): each for each in error.faults}
        else:
            found.append(replace(chosen, **without_floor) if _FLOOR in chosen.settings else chosen)
    if faults:
        raise all_of(list(faults.values()))
    return found


def _settings(scenario: Scenario, config_file: Path | None) -> dict[str, Any]:
    """Those of the controller, by section."""
    with tempfile.TemporaryDirectory() as directory:
        return loader.load(config_files(scenario, Path(directory), config_file)).as_dict()


def _common(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Those that are equal at all points, by section."""
    first, *others = settings
    return {
        section: {
            key: value
            for key, value in values.items()
            if all(each.get(section, {}).get(key) == value for each in others)
        }
        for section, values in first.items()
    }


Measure = Callable[[Scenario, Variant, Path, Path | None, Interrupts, runner.Report], dict[str, Any]]
"""Makes a run, as `runner.run_policy`."""


class Sweep:
    """The runs of a sweep."""

    def __init__(
        self,
        store: Store,
        scenarios: Sequence[Scenario],
        variants: Sequence[Variant],
        config_file: Path | None,
        repeat: int,
        measure: Measure | None = None,
    ) -> None:
        """``scenarios``: of each point. ``measure``: what makes a run; None: `runner.run_policy`."""
        self._store = store
        self._scenarios = scenarios
        self._variants = {each.name: each for each in variants}
        self._config_file = config_file
        self._repeat = repeat
        self._measure = measure or runner.run_policy
        self._failures: dict[Run, dict[str, Any]] = {}

    def run(self) -> None:
        """Make the runs that are not there, and write the result of a point after each of its repetitions.

        `Interrupted` if a signal arrived; ``OSError`` when there is no room.
        """
        runs = schedule.schedule(len(self._scenarios), list(self._variants), self._repeat)
        took = self._store.took(runs)
        left = [run for run in runs if run not in took]
        if took:
            print(f"{len(took)} of {len(runs)} runs are there already", file=sys.stderr)
        for point in range(len(self._scenarios)):
            self.assemble(point)  # a run may have been the last thing that was written
        with Interrupts() as interrupts, progress(len(runs), len(took)) as begin:
            for place, run in enumerate(left):
                report = begin(self._name(run), schedule.in_words(schedule.seconds_left(left[place:], took)))
                seconds = self.one(run, interrupts, report)
                if seconds is not None:
                    took[run] = seconds
                self.assemble(run.point)

    def _name(self, run: Run) -> str:
        number = f", {run.repetition + 1} of {self._repeat}" if self._repeat > 1 else ""
        return f"{self._store.points[run.point].label}, {run.policy}{number}"

    def one(self, run: Run, interrupts: Interrupts, report: runner.Report) -> float | None:
        """Make a run, and keep its figures; returns how long it took, s, None if it has failed."""
        scenario, variant = self._scenarios[run.point], self._variants[run.policy]
        logs = self._store.point_directory(run.point) / "logs" / variant.directory / str(run.repetition + 1)
        seeded = replace(scenario, seed=scenario.seed + run.repetition)
        began = time.monotonic()
        figures = self._measure(seeded, variant, logs, self._config_file, interrupts, report)
        if figures["failed"]:
            self._failures[run] = figures  # not kept: the next call tries it again
            return None
        seconds = time.monotonic() - began
        self._store.save(run, seconds, figures)
        return seconds

    def assemble(self, point: int) -> None:
        """Write the result of a point from its whole repetitions; none without any."""
        measured: list[dict[str, Any]] = []
        for repetition in itertools.count():
            order = schedule.policies_of(point, repetition, list(self._variants))
            found = [self._figures(Run(point, repetition, policy)) for policy in self._variants]
            policies = [figures for figures in found if figures is not None]
            if len(policies) < len(found):
                break
            measured.append(runner.repetition(self._scenarios[point], order, None, policies))
        if not measured:
            return
        scenario = self._scenarios[point]
        seeds = [scenario.seed + repetition for repetition in range(len(measured))]
        metadata = {
            **self._store.description.metadata,
            "overrides": {
                **self._store.description.metadata["overrides"],
                **self._store.points[point].values,
            },
            "seeds": seeds,
        }
        if self._store.points[point].values:  # some of them are settings of the controller
            metadata["settings"] = _settings(scenario, self._config_file)
        result.save(
            result.assemble(scenario.settings, metadata, measured), self._store.point_directory(point)
        )

    def _figures(self, run: Run) -> dict[str, Any] | None:
        return self._failures.get(run) or self._store.figures(run)


Begin = Callable[[str, str], runner.Report]
"""Called with the name of a run that begins, and the time that is left, in words."""


@contextmanager
def progress(count: int, there: int) -> Iterator[Begin]:
    """A bar on stderr of ``count`` runs, of which so many are there already; a line for each run if stderr is
    not a terminal.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(count, there)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bar:
        yield _bar(bar, count, there)


def _bar(bar: Progress, count: int, there: int) -> Begin:
    task, begun = bar.add_task("", total=count, completed=there), itertools.count(there)

    def begin(name: str, left: str) -> runner.Report:
        done = next(begun)

        def report(step: str, part: float) -> None:
            bar.update(task, description=f"{left}; {name}: {step}", completed=done + part)

        return report

    return begin


def _lines(count: int, there: int) -> Begin:
    numbers = itertools.count(there + 1)

    def begin(name: str, left: str) -> runner.Report:
        print(f"{next(numbers)} of {count}: {name}; {left}", file=sys.stderr, flush=True)
        return lambda _step, _part: None

    return begin

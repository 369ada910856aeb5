"""``fairq run papers``: runs what the directory does not have yet, prints the claims, writes the report."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import ownership, runner
from fairq_ryu.experiments import scenario as scenarios
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.papers import plan, report
from fairq_ryu.experiments.papers.plan import Experiment
from fairq_ryu.experiments.report import formats
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.simulator.runner import Simulation
from fairq_ryu.experiments.sweep import schedule
from fairq_ryu.experiments.sweep.schedule import Run
from fairq_ryu.experiments.sweep.store import Store, describe
from fairq_ryu.experiments.sweep.sweep import Measure, Sweep, progress
from fairq_ryu.experiments.testbed import Interrupted, Interrupts, config_files
from fairq_ryu.experiments.variants import Variant

FILE_NAME = "papers.json"
_CONFIG = "experiment.conf"


def main(out: Path, quick: bool = False, ids: Sequence[str] = ()) -> int:
    """Run the experiments of the plan, or those of these ids, as far as ``out`` does not have them yet, print
    the claims and write the report.

    Returns 0; 1 when a run failed or is not sound (the same call tries failed ones again); 130 when
    interrupted. ``UserError`` before anything starts when something does not fit, or ``out`` has another
    series; later when there is no room.
    """
    experiments = plan.chosen(plan.load(quick), ids)
    with ownership.given_to_caller(out, [FILE_NAME, *(each.id for each in experiments), *report.WRITTEN]):
        _check(out, quick)
        parts = _parts(experiments, out)
        formats.write(out / FILE_NAME, formats.Series("fairq-papers/1", quick))
        try:
            _run(parts)
        except Interrupted:
            print("fairq run papers: interrupted; the same command continues", file=sys.stderr)
            return 130
        except OSError as error:
            raise UserError(
                f"cannot write to {out}: {error.strerror}", "make room; the same command continues"
            ) from None
        report.main(out, quick, out)
    every = [policy for part in parts for policy in part.policies()]
    return 1 if any(each["failed"] or each["unsound"] for each in every) else 0


def is_series(directory: Path) -> bool:
    """Whether a directory has a series."""
    return (directory / FILE_NAME).exists()


def of_directory(directory: Path) -> bool:
    """Whether the series of a directory is a quick one. ``UserError`` if it cannot be read."""
    remedy = "remove it; `fairq run papers` makes it"
    return formats.read(directory / FILE_NAME, formats.Series, remedy).quick


@dataclass(frozen=True)
class _Part:
    """An experiment, and where it is kept."""

    experiment: Experiment
    store: Store
    sweep: Sweep

    @property
    def runs(self) -> list[Run]:
        return schedule.schedule(1, self.experiment.policies, self.experiment.repeat)

    def policies(self) -> list[Mapping[str, Any]]:
        """The figures that are there."""
        return [policy for each in self.store.results() if each is not None for policy in each["policies"]]


def _parts(experiments: Sequence[Experiment], out: Path) -> list[_Part]:
    """Each with its description written. ``UserError`` when the machine cannot run one of them now, or a
    directory has something else; then nothing is written.
    """
    loaded = {each.id: _scenario(each) for each in experiments}
    variants = {each.id: runner.known_variants(each.policies, None) for each in experiments}
    real = [each for each in experiments if not each.simulated]
    every = tuple(dict.fromkeys(each.name for one in real for each in variants[one.id]))
    if real:
        runner.check([loaded[each.id] for each in real], runner.known_variants(every, None), out, None)
    machine.check_directory(out)
    parts = [_part(each, loaded[each.id], variants[each.id], out / each.id) for each in experiments]
    # All of them first: what is refused leaves nothing behind.
    for part in parts:
        part.store.check()
    for part in parts:
        part.store.begin()
        _write_config(part.experiment, part.store.directory)
    return parts


def _scenario(experiment: Experiment) -> Scenario:
    """Without the volleys alone, whose figure no claim needs."""
    found = scenarios.load(experiment.scenario, experiment.set)
    without: dict[str, Any] = {"floor": False}
    return replace(found, **without) if "floor" in found.settings else found


def _part(experiment: Experiment, chosen: Scenario, variants: Sequence[Variant], directory: Path) -> _Part:
    simulation = None
    name = experiment.given
    with tempfile.TemporaryDirectory() as temporary:
        given = _write_config(experiment, Path(temporary))
        if experiment.simulated:
            simulation = Simulation(chosen, experiment.policies, given, ack_every=experiment.ack_every)
            files = [] if given is None else [given]
            metadata = {
                **machine.origin(name, dict(experiment.set), given, files),
                "simulator": simulation.metadata,
                "variants": {},
            }
        else:
            files = config_files(chosen, Path(temporary), given)
            metadata = machine.metadata(name, dict(experiment.set), variants, given, files)
    store = Store(directory, describe(name, chosen, (), variants, metadata))
    given = directory / _CONFIG if experiment.config else None
    measure = None if simulation is None else _simulated(simulation)
    return _Part(experiment, store, Sweep(store, [chosen], variants, given, experiment.repeat, measure))


def _write_config(experiment: Experiment, directory: Path) -> Path | None:
    """Write the configuration of an experiment into a directory; None: it has none."""
    if not experiment.config:
        return None
    path = directory / _CONFIG
    path.write_text(experiment.config)
    return path


def _simulated(simulation: Simulation) -> Measure:
    first = simulation.scenario.seed

    def measure(
        scenario: Scenario,
        variant: Variant,
        _logs: Path,
        _config_file: Path | None,
        interrupts: Interrupts,
        report: runner.Report,
    ) -> dict[str, Any]:
        report("simulating", 0.0)
        return simulation.run(variant.name, scenario.seed - first)

    return measure


def _check(out: Path, quick: bool) -> None:
    """``UserError`` if the directory has the other series."""
    if is_series(out) and of_directory(out) != quick:
        other = "without --quick" if quick else "with --quick"
        raise UserError(f"{out} has a series that was run {other}", "give another --out DIR")


def _run(parts: Sequence[_Part]) -> None:
    """Make the runs that are not there. `Interrupted` if a signal arrived; ``OSError`` without room."""
    runs = [(part, run) for part in parts for run in part.runs]
    took = {(part.experiment.id, run): s for part in parts for run, s in part.store.took(part.runs).items()}
    left = [(part, run) for part, run in runs if (part.experiment.id, run) not in took]
    if took:
        print(f"{len(took)} of {len(runs)} runs are there already", file=sys.stderr)
    for part in parts:
        part.sweep.assemble(0)  # a run may have been the last thing that was written
    with Interrupts() as interrupts, progress(len(runs), len(took)) as begin:
        for place, (part, run) in enumerate(left):
            experiment = part.experiment
            name = f"{experiment.id} {run.policy}, {run.repetition + 1} of {experiment.repeat}"
            ahead = [(each.experiment, run) for each, run in left[place:]]
            began = begin(name, schedule.in_words(seconds_left(ahead, took, [p.experiment for p in parts])))
            start = time.monotonic()
            part.sweep.one(run, interrupts, began)
            took[experiment.id, run] = time.monotonic() - start
            part.sweep.assemble(0)


def seconds_left(
    left: Sequence[tuple[Experiment, Run]],
    took: Mapping[tuple[str, Run], float],
    experiments: Sequence[Experiment],
) -> float:
    """How long these runs will take, s: as the same policy took in the same experiment, or else as planned,
    times how much longer than planned all others took.
    """
    planned = {each.id: each.seconds for each in experiments}
    behind = sum(planned[name] for name, _run in took)
    slower = sum(took.values()) / behind if behind else 1.0
    total = 0.0
    for experiment, run in left:
        same = [s for (name, each), s in took.items() if (name, each.policy) == (experiment.id, run.policy)]
        total += sum(same) / len(same) if same else slower * experiment.seconds
    return total

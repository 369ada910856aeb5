"""What the directory of a sweep holds: its description, and what has been measured.

    sweep.json                      the description, `formats.Sweep`
    POINT/runs/POLICY.REPETITION.json   a run, `formats.Run`
    POINT/result.json               the result of the point, of all its whole repetitions
    POINT/logs/POLICY/NUMBER

Each file is there as a whole or not at all. So a sweep that was ended in whatever way continues where it was,
with the same command; a description that differs is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments import differences
from fairq_ryu.experiments.report import formats, result
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.sweep.axes import Axis, Point, points
from fairq_ryu.experiments.sweep.schedule import Run
from fairq_ryu.experiments.variants import Variant

FILE_NAME = "sweep.json"
_SAME = ("scenario_name", "axes", "scenario", "policies")
_SAME_METADATA = (
    *("settings", "variants", "project_version", "git_commit", "git_changes"),
    *("kernel", "cpus", "open_vswitch", "datapath"),
)


def describe(
    name: str,
    scenario: Scenario,
    axes: Sequence[Axis],
    variants: Sequence[Variant],
    metadata: Mapping[str, Any],
    others: Sequence[Scenario] = (),
) -> formats.Sweep:
    """The description of a sweep. ``metadata``: as in a result; ``others``: at all points but the first."""
    varying = {axis.name for axis in axes}
    # A setting may change others: hosts = period has another congestion control.
    for each in others:
        varying |= {key for key, value in scenario.settings.items() if each.settings[key] != value}
    return formats.Sweep(
        schema="fairq-sweep/1",
        scenario_name=name,
        axes={axis.name: list(axis.values) for axis in axes},
        scenario={key: value for key, value in scenario.settings.items() if key not in varying},
        policies=[each.name for each in variants],
        metadata=dict(metadata),
    )


class Store:
    """The directory of a sweep."""

    def __init__(self, directory: Path, description: formats.Sweep) -> None:
        """Nothing is written yet."""
        self.directory = directory
        self.description = description
        axes = [Axis(name, tuple(values)) for name, values in description.axes.items()]
        self.points: list[Point] = points(axes)
        self._places = {name: place for place, name in enumerate(description.policies)}

    @classmethod
    def load(cls, directory: Path) -> Store:
        """The sweep that a directory has. ``UserError`` when there is none, or it cannot be read."""
        remedy = "make one with `fairq sweep incast senders=1..32 --out DIR`"
        return cls(directory, formats.read(directory / FILE_NAME, formats.Sweep, remedy))

    def begin(self) -> None:
        """Write the description, unless the directory has the same one. ``UserError`` as `check` has it."""
        self.check()
        if not (self.directory / FILE_NAME).exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            formats.write(self.directory / FILE_NAME, self.description)

    def check(self) -> None:
        """``UserError`` when the directory has another description, with all differences, or the result of a
        run, or runs of which nothing is known. Nothing is written.
        """
        if not (self.directory / FILE_NAME).exists():
            if (self.directory / result.FILE_NAME).exists():
                raise UserError(f"{self.directory} has the result of a run", "give another --out DIR")
            if any((self.point_directory(place) / "runs").exists() for place in range(len(self.points))):
                raise UserError(f"{self.directory} has runs and no {FILE_NAME}", "give another --out DIR")
            return
        before = Store.load(self.directory).description
        faults = [
            UserError(
                f"{self.directory} has another sweep: {line} now", "give another --out DIR, or undo that"
            )
            for line in _changes(before, self.description)
        ]
        if faults:
            raise all_of(faults)

    def _file(self, run: Run) -> Path:
        # Numbered: names of policies may contain what the name of a file may not.
        name = f"{self._places[run.policy] + 1}.{run.repetition + 1}.json"
        return self.point_directory(run.point) / "runs" / name

    def point_directory(self, point: int) -> Path:
        """Where the result of a point is."""
        return self.directory / self.points[point].directory

    def took(self, runs: Sequence[Run]) -> dict[Run, float]:
        """Of these runs those that are there, with the time that each took, s."""
        there = [run for run in runs if self._file(run).exists()]
        return {run: self._read(run).took_s for run in there}

    def save(self, run: Run, took_s: float, figures: Mapping[str, Any]) -> None:
        """Keep the figures of a run. ``OSError`` when there is no room."""
        path = self._file(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        formats.write(path, formats.Run("fairq-run/1", took_s, dict(figures)))

    def figures(self, run: Run) -> dict[str, Any] | None:
        """The figures of a run; None: it is not there."""
        return self._read(run).figures if self._file(run).exists() else None

    def _read(self, run: Run) -> formats.Run:
        path, remedy = self._file(run), "remove it: that run is then made again"
        found = formats.read(path, formats.Run, remedy)
        if (found.figures.get("policy"), found.figures.get("failed", "")) != (run.policy, None):
            raise UserError(f"{path} is damaged: it is no run of {run.policy}", remedy)
        return found

    def results(self) -> list[dict[str, Any] | None]:
        """The result of each point; None: it has none yet."""
        found = [self.point_directory(place) for place in range(len(self.points))]
        return [result.load(each) if (each / result.FILE_NAME).exists() else None for each in found]


def _changes(before: formats.Sweep, now: formats.Sweep) -> list[str]:
    wholes = [asdict(each) for each in (before, now)]
    parts = [({key: each[key] for key in _SAME} for each in wholes)]
    parts.append({key: each["metadata"].get(key) for key in _SAME_METADATA} for each in wholes)
    return [line for one, other in parts for line in differences.settings(one, other)]


def is_sweep(directory: Path) -> bool:
    """Whether a directory has a sweep. An experiment of a series has its result beside the description."""
    return (directory / FILE_NAME).exists() and not (directory / result.FILE_NAME).exists()

"""How often each fault was made, how often everything held, and how soon normal control was back:
``docs/data/faults.json``, of which `make docs` makes two columns of the table of faults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from fairq_ryu.experiments.measure import machine

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs/data/faults.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault at a commit. Times are those of the rounds that passed, seconds; 0: none did."""

    commit: str
    made: int
    passed: int
    median: float
    longest: float


def outcome(made: int, times: Sequence[float]) -> Outcome:
    """Of a fault that was ``made`` so often, and after which control came back in ``times``, in seconds."""
    middle, longest = (median(times), max(times)) if times else (0.0, 0.0)
    commit = (machine.commit() or "unknown")[:8]
    return Outcome(commit, made, len(times), round(middle, 1), round(longest, 1))


def write(path: Path, outcomes: Mapping[str, Outcome]) -> None:
    """Put what a run found into a file, by the names of the faults; what it has of others stays. ``OSError``
    if that fails.
    """
    found = {**(read(path) if path.exists() else {}), **outcomes}
    path.write_text(json.dumps({name: asdict(each) for name, each in found.items()}, indent=1) + "\n")


def read(path: Path = FILE) -> dict[str, Outcome]:
    """What a file has of each fault."""
    return {name: Outcome(**each) for name, each in json.loads(path.read_text()).items()}

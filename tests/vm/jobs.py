"""What runs in a virtual machine, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.vm.boot import Outcome
from tests.vm.machines import Machine


@dataclass(frozen=True, slots=True)
class Job:
    """A script of bash, and how long it may take with TCG, seconds. It leaves files in /exchange."""

    name: str
    script: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """A job in a machine, and the directory that was its /exchange."""

    machine: Machine
    kernel: str
    job: Job
    outcome: Outcome
    exchange: Path


@dataclass(frozen=True, slots=True)
class Summary:
    """All results: a text, rows for a file, and whether everything passed."""

    text: str
    rows: list[dict[str, Any]]
    passed: bool


_PYTHON = ".venv/bin/python"
_PATIENCE = "export FAIRQ_PATIENCE=6"
_OVS = "scripts/start-ovs.sh"
_OBJECTS = Job(
    "objects",
    f"""set -e
{_PYTHON} -m tests.vm.guest.load_objects /objects/* >/exchange/objects.jsonl
{_PYTHON} -m tests.vm.guest.about >/exchange/about.json
""",
    240,
)
_INCAST = Job(
    "incast",
    f"""set -e
{_PATIENCE}
{_OVS}
{_PYTHON} -m tests.vm.guest.incast
""",
    480,
)
SHORT = [_OBJECTS, _INCAST]
LONG = SHORT


def verdict(outcome: Outcome) -> str:
    """How a job ended, in words."""
    if outcome.code is None:
        return "the machine ended without a result"
    return "ok" if outcome.code == 0 else f"exit code {outcome.code}"


def _objects(result: Result) -> list[dict[str, Any]]:
    file = result.exchange / "objects.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def summary(results: Sequence[Result]) -> Summary:
    """What all jobs found."""
    lines, rows, passed = [], [], 0
    for result in results:
        rows_here = _objects(result)
        faults = [each for each in rows_here if each["error"] and not each["error"].startswith("needs ")]
        good = result.outcome.code == 0 and not faults
        passed += good
        lines.append(f"{result.machine.name} ({result.kernel}) {result.job.name}: {'passed' if good else 'FAILED'}")
        lines += [f"    {each['compiler']} {each['object']}: {each['error']}" for each in faults]
        rows.append(
            {
                "machine": result.machine.name,
                "kernel": result.kernel,
                "job": result.job.name,
                "passed": good,
                "seconds": round(result.outcome.seconds),
                "objects": rows_here,
            }
        )
    lines.append(f"virtual machines: {passed} passed, {len(results) - passed} failed")
    return Summary("\n".join(lines), rows, passed == len(results))

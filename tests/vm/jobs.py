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
# Everything is slower by about this factor than the limits of tests and experiments expect.
_BEGIN = "set -e; export FAIRQ_PATIENCE=6"
_NO_KERNEL_DATAPATH = "echo install openvswitch /bin/false >/etc/modprobe.d/fairq.conf"
_PYTEST = ".venv/bin/pytest -q -p no:cacheprovider --color=no"
# Incast under three policies, deadlines, restarts of controller and agent, ports of Open vSwitch, attacks.
_E2E = """
.venv/bin/fairq run incast --policy droptail,fairq,iqm --set rate_mbit=10 --set rounds=2 --out /tmp/incast
$PYTEST tests/e2e/test_attacks.py tests/e2e/test_ports_of_ovs.py tests/e2e/test_release.py \\
    tests/e2e/test_experiments.py::test_flows_with_deadlines \\
    tests/e2e/test_controller.py::test_when_the_controller_dies_traffic_continues_and_windows_expire \\
    tests/e2e/test_switch_laws.py::test_a_law_ends_with_its_agent_and_comes_back_with_the_next
""".replace("$PYTEST", _PYTEST)


def _job(name: str, minutes: float, *lines: str) -> Job:
    return Job(name, "\n".join((_BEGIN, *lines, "")), minutes * 60)


SHORT = [
    _job(
        "objects",
        4,
        f"{_PYTHON} -m tests.vm.guest.load_objects /objects/* >/exchange/objects.jsonl",
        f"{_PYTHON} -m tests.vm.guest.about >/exchange/about.json",
    ),
    _job("incast", 8, "scripts/start-ovs.sh", f"{_PYTHON} -m tests.vm.guest.incast"),
]
LONG = [
    *SHORT,
    _job("doctor", 5, "make setup", ".venv/bin/fairq doctor"),
    _job("switch", 75, "make setup", f"{_PYTEST} tests/switch"),
    _job("e2e-kernel", 60, "make setup", _E2E),
    _job("e2e-userspace", 60, _NO_KERNEL_DATAPATH, "make setup", _E2E),
]


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
        lines.append(
            f"{result.machine.name} ({result.kernel}) {result.job.name}: {'passed' if good else 'FAILED'}"
        )
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

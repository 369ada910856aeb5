"""What runs in a virtual machine, and what becomes of it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.vm.boot import Outcome
from tests.vm.machines import Machine
from tests.vm.results import MachineRun, ObjectRun, Results


@dataclass(frozen=True, slots=True)
class Job:
    """A script of bash, and how long it may take with TCG, seconds. It leaves files in /exchange."""

    name: str
    script: str
    seconds: float
    datapath: str = ""
    """The one that it uses, if any."""


@dataclass(frozen=True, slots=True)
class Result:
    """A job in a machine, and the directory that was its /exchange."""

    machine: Machine
    kernel: str
    job: Job
    outcome: Outcome
    exchange: Path
    starts: int = 1
    """How often the machine was started until it came to the script."""


_PYTHON = ".venv/bin/python"
# Everything is slower by about this factor than the limits of tests and experiments expect.
_BEGIN = "set -e; export FAIRQ_PATIENCE=6"
_ABOUT = f"{_PYTHON} -m tests.vm.guest.about >/exchange/about.json"
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

# A host as OpenStack makes it, and the queue in a switch above.
_BRIDGES = f"{_PYTEST} tests/fabric/test_bridges.py tests/e2e/test_far.py tests/e2e/test_far_queues.py"
# What only the distributions' kernels have: these qdiscs, and what Open vSwitch polices with.
_QDISCS = f"{_PYTEST} tests/e2e/test_kernel_qdiscs.py tests/fabric/test_agent.py -k 'qdisc or dctcp'"


def _job(name: str, minutes: float, *lines: str, datapath: str = "") -> Job:
    return Job(name, "\n".join((_BEGIN, _ABOUT, *lines, "")), minutes * 60, datapath)


SHORT = [
    _job("objects", 4, f"{_PYTHON} -m tests.vm.guest.load_objects /objects/* >/exchange/objects.jsonl"),
    _job("incast by hand", 12, "make setup", f"{_PYTHON} -m tests.vm.guest.incast", datapath="kernel"),
]
LONG = [
    *SHORT,
    _job("make setup, doctor", 5, "make setup", ".venv/bin/fairq doctor", datapath="kernel"),
    _job("make demo", 60, "make demo", datapath="kernel"),
    _job("make demo", 60, _NO_KERNEL_DATAPATH, "make demo", datapath="userspace"),
    _job("tests/switch", 75, "make setup", f"{_PYTEST} tests/switch", datapath="kernel"),
    _job("bridges and far queues", 60, "make setup", _BRIDGES, datapath="kernel"),
    _job("qdiscs of the kernel", 60, "make setup", _QDISCS, datapath="kernel"),
    _job("tests/faults", 90, "make setup", f"FAIRQ_FAULT_ROUNDS=1 {_PYTEST} tests/faults", datapath="kernel"),
    _job("soak of 10 minutes", 30, "make setup", f"{_PYTHON} -m tests.soak --minutes 10", datapath="kernel"),
    _job("tests/e2e, chosen", 60, "make setup", _E2E, datapath="kernel"),
    _job("tests/e2e, chosen", 60, _NO_KERNEL_DATAPATH, "make setup", _E2E, datapath="userspace"),
]


def command(words: Sequence[str], seconds: float, datapath: str) -> Job:
    """A command in the checkout as a job, by the name of what was typed."""
    typed = shlex.join(words)
    without = [_NO_KERNEL_DATAPATH] if datapath == "userspace" else []
    return _job(typed, seconds / 60, *without, typed, datapath=datapath)


def chosen(names: Sequence[str], datapath: str) -> list[Job]:
    """The jobs of :data:`LONG` with these names, on one datapath (empty: on each)."""
    return [each for each in LONG if each.name in names and datapath in ("", each.datapath)]


def _objects(result: Result) -> list[ObjectRun]:
    file = result.exchange / "objects.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [ObjectRun(kernel=result.kernel, **row) for row in rows]


def _is_refused(run: ObjectRun) -> bool:
    return bool(run.error) and not run.error.startswith("needs ")


def verdict(result: Result) -> tuple[bool, str]:
    """Whether a job has passed, and how it ended, in words: those of pytest, or its own."""
    refused = [each for each in _objects(result) if _is_refused(each)]
    outcome = result.outcome
    if outcome.code is None:
        return False, "the machine " + ("ended without a result" if outcome.started else "did not start")
    if outcome.code or refused:
        return False, f"exit code {outcome.code}" if outcome.code else f"{len(refused)} objects refused"
    counts = re.search(r"(\d+ \w+, )*\d+ \w+(?= in \d)", outcome.last)  # of pytest
    words = counts[0] if counts else "passed"
    again = f", at start {result.starts} of the machine" if result.starts > 1 else ""
    return "passed" in words, words + again


def summary(results: Sequence[Result], commit: str) -> tuple[str, Results, bool]:
    """What all jobs found at a commit: a text, the same for docs/data/machines.json, and whether everything
    passed.
    """
    lines, objects, passed = [], [], 0
    ran: dict[tuple[str, str], dict[str, str]] = {}
    about: dict[str, dict[str, str]] = {}
    for result in results:
        tried = _objects(result)
        good, how = verdict(result)
        passed += good
        lines.append(f"{result.machine.name} ({result.kernel}) {result.job.name}: {how}")
        lines += [f"    {each.compiler} {each.object}: {each.error}" for each in tried if _is_refused(each)]
        objects += tried
        if (result.exchange / "about.json").exists():
            about[result.machine.name] = json.loads((result.exchange / "about.json").read_text())
        if result.job.datapath:
            row = ran.setdefault((result.machine.name, result.job.datapath), {})
            row[result.job.name] = f"{how if good else f'failed: {how}'} ({commit[:8]})"
    machines = [
        MachineRun(name=name, datapath=datapath, ran=jobs, **about[name])
        for (name, datapath), jobs in ran.items()
        if name in about
    ]
    lines.append(f"virtual machines: {passed} passed, {len(results) - passed} failed")
    return "\n".join(lines), Results(tuple(machines), tuple(objects)), passed == len(results)

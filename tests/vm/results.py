"""What has been run on which machine: ``docs/data/machines.json``; ``make docs`` makes tables of it.

    python3 -m tests.vm.results NEW.json ...   add what these files have, in the place of older results

A file is one JSON object of two lists, :class:`MachineRun` in ``machines`` and :class:`ObjectRun` in
``objects``, with the names of the fields below. Nothing is in it that did not come from a run.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "docs/data/machines.json"


@dataclass(frozen=True, slots=True)
class MachineRun:
    """What was run on a machine with one datapath. A newer entry with both replaces it; with the same kernel,
    only the results of what was run again.
    """

    name: str
    """Of the machine: a word"""
    distribution: str
    """Debian GNU/Linux 12 (bookworm)"""
    kernel: str
    """as ``uname -r`` prints it"""
    datapath: str
    """Open vSwitch's: kernel or userspace"""
    ovs: str
    python: str
    clang: str
    """versions"""
    ran: dict[str, str] = field(default_factory=dict)
    """how each thing ended and of which commit, or day, by its name: {"make demo": "passed (8ef46a83)"};
    nothing: not run
    """

    @property
    def key(self) -> tuple[str, ...]:
        """Of two with the same key, the newer one is kept."""
        return self.name, self.datapath


@dataclass(frozen=True, slots=True)
class ObjectRun:
    """What a kernel's verifier said of one eBPF object."""

    kernel: str
    compiler: str
    """clang-14"""
    object: str
    """window"""
    error: str
    """why the kernel refused it, or what it needs; empty: loaded"""
    instructions: dict[str, int] = field(default_factory=dict)
    """by program, the instructions that the verifier walked through"""

    @property
    def key(self) -> tuple[str, ...]:
        """Of two with the same key, the newer one is kept."""
        # A newer kernel of the same series replaces the older one.
        return version(self.kernel), self.compiler, self.object


@dataclass(frozen=True, slots=True)
class Results:
    """The content of a file."""

    machines: tuple[MachineRun, ...] = ()
    objects: tuple[ObjectRun, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Results:
        """The content of ``path``; TypeError or KeyError if it has other fields."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            tuple(MachineRun(**each) for each in content["machines"]),
            tuple(ObjectRun(**each) for each in content["objects"]),
        )

    def write(self, path: Path) -> None:
        """Write it to ``path``."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def with_newer(self, newer: Results) -> Results:
        """This and what is newer, in the order of kernels."""
        machines = {each.key: each for each in self.machines}
        for each in newer.machines:
            old = machines.get(each.key)
            same = old is not None and old.kernel == each.kernel
            machines[each.key] = replace(each, ran={**old.ran, **each.ran}) if old and same else each
        objects = {each.key: each for each in (*self.objects, *newer.objects)}
        return Results(
            tuple(sorted(machines.values(), key=lambda each: (_numbers(each.kernel), each.key))),
            tuple(sorted(objects.values(), key=lambda each: (_numbers(each.kernel), each.key))),
        )


def version(kernel: str) -> str:
    """6.1 of 6.1.0-50-amd64."""
    return ".".join(map(str, _numbers(kernel)))


def _numbers(kernel: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", kernel)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def machine_table(results: Results) -> list[tuple[str, ...]]:
    """The machines, a row for each datapath, below their head."""
    rows: list[tuple[str, ...]] = [
        ("distribution", "kernel", "datapath", "Open vSwitch", "Python", "clang", "what was run")
    ]
    for each in results.machines:
        ran = "; ".join(f"{name}: {how}" for name, how in each.ran.items()) or "not run"
        rows.append((each.distribution, each.kernel, each.datapath, each.ovs, each.python, each.clang, ran))
    return rows


def object_table(results: Results) -> list[tuple[str, ...]]:
    """The verifier's instructions for each program, by kernel and compiler, below their head."""
    columns = list(dict.fromkeys((each.kernel, each.compiler) for each in results.objects))
    found = {(each.object, each.kernel, each.compiler): each for each in results.objects}
    programs = {(each.object, name): None for each in results.objects for name in each.instructions}
    # One that no kernel loads has no program that is known, and a row all the same.
    for each in results.objects:
        if not any(name == each.object for name, _ in programs):
            programs[each.object, "-"] = None
    rows: list[tuple[str, ...]] = [
        ("object", "program", *(f"{version(kernel)}, {compiler}" for kernel, compiler in columns))
    ]
    for name, program in sorted(programs):
        cells = [_cell(found.get((name, *column)), program) for column in columns]
        rows.append((f"`{name}`", f"`{program}`", *cells))
    return rows


def _cell(run: ObjectRun | None, program: str) -> str:
    if run is None:
        return "not run"
    if run.error:
        return run.error if run.error.startswith("needs ") else "refused"
    return f"{run.instructions[program]:,}" if program in run.instructions else "-"


def main(files: list[str]) -> None:
    """Add the results of these files."""
    results = Results.read(FILE)
    for each in files:
        results = results.with_newer(Results.read(Path(each)))
    results.write(FILE)


if __name__ == "__main__":
    main(sys.argv[1:])

"""How a job in a virtual machine ended, in words."""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from pathlib import Path

import pytest

import tests.vm.__main__ as main
from tests.vm import boot, jobs, roots
from tests.vm.__main__ import Bench
from tests.vm.boot import Outcome
from tests.vm.kernels import Kernel
from tests.vm.machines import MACHINES, Machine
from tests.vm.results import Results


def result(exchange: Path, code: int | None, last: str, starts: int = 1) -> jobs.Result:
    outcome = Outcome(code, 1.0, code is not None, last, "")
    return jobs.Result(MACHINES["debian12"], "6.1.0", jobs.SHORT[0], outcome, exchange, starts)


@pytest.mark.parametrize(
    ("code", "last", "starts", "verdict"),
    [
        (0, "incast: 48 mice", 1, (True, "passed")),
        (0, "33 passed, 1 skipped in 5.20s", 1, (True, "33 passed, 1 skipped")),
        (1, "1 failed, 33 passed in 5.20s", 1, (False, "exit code 1")),
        (None, "", 2, (False, "the machine did not start")),
        (0, "", 2, (True, "passed, at start 2 of the machine")),
    ],
)
def test_the_verdict(
    tmp_path: Path, code: int | None, last: str, starts: int, verdict: tuple[bool, str]
) -> None:
    assert jobs.verdict(result(tmp_path, code, last, starts)) == verdict


def test_the_summary_counts_and_says_what_was_started_again(tmp_path: Path) -> None:
    text, _, passed = jobs.summary([result(tmp_path, 0, "", 2), result(tmp_path, 2, "")], "0123456789abcdef")
    assert "passed, at start 2 of the machine" in text and "virtual machines: 1 passed, 1 failed" in text
    assert not passed


def test_the_row_of_a_command(tmp_path: Path) -> None:
    """It has the name that was typed, and the datapath."""
    about = {"kernel": "6.1.0", "distribution": "D", "python": "3", "ovs": "3", "clang": "14"}
    (tmp_path / "about.json").write_text(json.dumps(about))
    rows = {}
    for datapath, code in (("kernel", 0), ("userspace", 2)):
        job = jobs.command(["make", "demo", "ARGS=a b"], 60, datapath)
        assert job.script.endswith("\nmake demo 'ARGS=a b'\n") and job.seconds == 60
        assert ("openvswitch /bin/false" in job.script) is (datapath == "userspace")
        ended = dataclasses.replace(result(tmp_path, code, ""), job=job)
        (row,) = jobs.summary([ended], "0123456789abcdef")[1].machines
        rows[row.datapath] = row.ran
    assert rows == {
        "kernel": {"make demo 'ARGS=a b'": "passed (01234567)"},
        "userspace": {"make demo 'ARGS=a b'": "failed: exit code 2 (01234567)"},
    }


def test_jobs_are_chosen_by_name_and_datapath() -> None:
    found = jobs.chosen(["make demo", "tests/switch"], "")
    assert [(each.name, each.datapath) for each in found] == [
        ("make demo", "kernel"),
        ("make demo", "userspace"),
        ("tests/switch", "kernel"),
    ]
    assert [each.name for each in jobs.chosen(["make demo", "tests/switch"], "userspace")] == ["make demo"]


def test_the_results_of_a_command_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake(Bench):
        def prepare(self, *arguments: str, whole: bool) -> None:
            self.kernels["debian12"] = Kernel("6.1.0", tmp_path, tmp_path, tmp_path)

        def run(self, machine: Machine, job: jobs.Job, how: str) -> jobs.Result:
            about = dict.fromkeys(("kernel", "distribution", "python", "ovs", "clang"), "")
            (tmp_path / "about.json").write_text(json.dumps(about))
            return dataclasses.replace(result(tmp_path, 3, ""), job=job)

    monkeypatch.setenv("FAIRQ_VM_CACHE", str(tmp_path / "cache"))
    for name, instead in {"Bench": Fake, "check_machine": lambda: None}.items():
        monkeypatch.setattr(main, name, instead)
    monkeypatch.setattr(roots, "commit_of", lambda commit: "0" * 40)
    monkeypatch.setattr(boot, "accelerator", lambda kernel: "tcg")
    file = tmp_path / "results.json"
    monkeypatch.setattr(sys, "argv", ["x", "--machine", "debian12", "--results", str(file), "--", "false"])
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main.main() == 3
    finally:
        signal.signal(signal.SIGTERM, handler)
    (row,) = Results.read(file).machines
    assert (row.name, row.datapath, row.ran) == (
        "debian12",
        "kernel",
        {"false": "failed: exit code 3 (00000000)"},
    )


def test_only_a_machine_that_does_not_come_to_the_script_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = MACHINES["debian12"]
    bench = Bench([machine], tmp_path, "0" * 40)
    bench.kernels[machine.name] = Kernel("6.1.0", tmp_path, tmp_path, tmp_path)
    panic, failed, passed = (
        Outcome(code, 1.0, started, "", "") for code, started in ((None, False), (1, True), (0, True))
    )
    hangs = Outcome(None, 1.0, True, "", "")
    for outcomes, starts in (
        ([panic, passed], 2),
        ([panic, panic], 2),
        ([failed], 1),
        ([hangs], 1),
        ([passed], 1),
    ):
        left = list(outcomes)
        monkeypatch.setattr(boot, "boot", lambda *_, left=left: left.pop(0))
        found = bench.run(machine, jobs.SHORT[0], "tcg")
        assert (found.outcome, found.starts, left) == (outcomes[-1], starts, [])

"""The file of the machines, and the tables that are made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairq_ryu.cli.doctor import kernel
from tests.vm import results
from tests.vm.results import MachineRun, ObjectRun, Results

OLD = MachineRun("old", "Debian 12", "6.1.0-50-amd64", "kernel", "3.1.0", "3.11", "14", {"demo": "passed"})
NEW = MachineRun("new", "Debian 13", "6.12.1-amd64", "userspace", "3.5.0", "3.13", "19")
WINDOW = ObjectRun("6.12.1-amd64", "clang-19", "window", "", {"fq_egress": 123_456, "fq_delivered": 7})
REFUSED = ObjectRun("6.1.0-50-amd64", "clang-19", "window", "misaligned stack access")
DCTCP = ObjectRun("6.1.0-50-amd64", "clang-19", "dctcp", "needs Linux 6.4")


def test_doctor_calls_no_kernel_too_old_on_which_it_was_run() -> None:
    run = [each.kernel for each in Results.read(results.FILE).machines if each.ran]
    assert min(tuple(map(int, results.version(each).split("."))) for each in run) == kernel.OLDEST_RUN


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = Results((OLD, NEW), (WINDOW, REFUSED))
    written.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == written
    (tmp_path / "results.json").write_text('{"machines": [{"name": "x"}], "objects": []}')
    with pytest.raises(TypeError):
        Results.read(tmp_path / "results.json")


def test_newer_results_replace_those_of_the_same_machine_and_series_of_kernels() -> None:
    newer_old = replace(OLD, kernel="6.1.0-51-amd64", ran={"demo": "failed"})
    newer_window = replace(WINDOW, kernel="6.12.2-amd64", instructions={"fq_egress": 1})
    userspace = replace(OLD, datapath="userspace")
    before = Results((NEW, OLD), (WINDOW, REFUSED))
    after = before.with_newer(Results((userspace, newer_old), (newer_window,)))
    assert after.machines == (newer_old, userspace, NEW)
    assert after.objects == (REFUSED, newer_window)


def test_machines_that_were_not_run_are_said_not_to_have_been() -> None:
    table = results.machine_table(Results((OLD, NEW)))
    assert [row[-1] for row in table] == ["what was run", "demo: passed", "not run"]
    assert table[1][:3] == ("Debian 12", "6.1.0-50-amd64", "kernel")


def test_every_program_has_its_count_or_why_there_is_none() -> None:
    assert results.object_table(Results((), (REFUSED, DCTCP, WINDOW))) == [
        ("object", "program", "6.1, clang-19", "6.12, clang-19"),
        ("`dctcp`", "`-`", "needs Linux 6.4", "not run"),
        ("`window`", "`fq_delivered`", "refused", "7"),
        ("`window`", "`fq_egress`", "refused", "123,456"),
    ]

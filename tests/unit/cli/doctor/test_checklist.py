from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairq_ryu.cli.doctor import checklist, kernel
from fairq_ryu.cli.doctor.check import Check, Status

REPOSITORY = Path(checklist.__file__).resolve().parents[3]


def test_a_check_that_raises_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Check:
        raise PermissionError("no")

    monkeypatch.setattr(checklist, "CHECKS", (("one", broken), ("two", lambda: [Check("two", "ok", "here")])))
    one, two = checklist.run_checks()
    assert (one.status, one.found) == ("fail", "could not be checked: no")
    assert two.status == "ok"


@pytest.mark.parametrize(
    ("statuses", "code"), [(["ok", "ok"], 0), (["ok", "warn"], 0), (["warn", "fail"], 1), ([], 0)]
)
@pytest.mark.parametrize("json_output", [False, True])
def test_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    statuses: list[Status],
    code: int,
    json_output: bool,
) -> None:
    checks = [
        Check(f"c{n}", status, "found [it]", "" if status == "ok" else "do so")
        for n, status in enumerate(statuses)
    ]
    monkeypatch.setattr(checklist, "run_checks", lambda: checks)
    assert checklist.main(json_output=json_output) == code
    printed = capsys.readouterr().out
    if json_output:
        document = json.loads(printed)
        assert document["ok"] is (code == 0)
        assert [check["status"] for check in document["checks"]] == statuses
    else:
        assert printed.count("found [it]") == len(statuses)
        assert printed.count("do so") == sum(status != "ok" for status in statuses)


def test_without_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    checklist.print_table([Check("kernel BTF", "fail", "no file", "get one")])
    assert capsys.readouterr().out.splitlines() == [
        "fail  kernel BTF  no file",
        "                  -> get one",
    ]


def test_an_installed_package_needs_no_mininet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [name for name, _ in checklist.CHECKS]
    assert set(names) >= checklist.FOR_CHECKOUTS
    kept = tuple((name, lambda name=name: Check(name, "ok", "here")) for name in names)
    monkeypatch.setattr(checklist, "CHECKS", kept)
    assert [check.name for check in checklist.run_checks()] == names
    monkeypatch.setattr(kernel, "BPF_DIR", tmp_path)
    wanted = [name for name in names if name not in checklist.FOR_CHECKOUTS]
    assert [check.name for check in checklist.run_checks()] == wanted


def test_doctor_imports_the_standard_library_only() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import fairq_ryu.cli.doctor.checklist"
    # -S: no site-packages at all.
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(REPOSITORY)], check=True)


def test_every_check_runs_here_and_each_lack_has_a_remedy() -> None:
    checks = checklist.run_checks()
    assert len({check.name for check in checks}) == len(checks) >= 15
    for check in checks:
        assert "could not be checked" not in check.found, check
        assert bool(check.remedy) == (check.status != "ok"), check
        assert check.found, check

"""What doctor says of the programs that it has tried; tests/switch/test_trial.py tries them."""

from __future__ import annotations

import json

import pytest

from fairq_ryu.cli.doctor import trial
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.cli.doctor.commands import Output

FINE = dict.fromkeys(("programs", "packets", *trial.LOST), "")
REFUSED = "the kernel refused eBPF object x.bpf.o: Permission denied: misaligned stack access"


@pytest.fixture(autouse=True)
def root(as_root: None) -> None:
    pass


def checks(commands: dict[str, Output], faults: dict[str, str]) -> list[Check]:
    commands["unshare"] = Output(0, f"a warning of a library\n{json.dumps(faults)}\n")
    return trial.check_programs()


def test_all_works(commands: dict[str, Output]) -> None:
    (check,) = checks(commands, FINE)
    assert check.status == "ok"
    assert check.found.startswith("a window was lowered") and all(each in check.found for each in trial.LOST)


@pytest.mark.parametrize("name", trial.LOST)
def test_what_is_lost_without_a_program_is_said_with_the_reason(
    commands: dict[str, Output], name: str
) -> None:
    good, lack = checks(commands, {**FINE, name: REFUSED})
    assert (good.status, name in good.found) == ("ok", False)
    assert (lack.name, lack.status) == (f"without {name}", "warn")
    assert lack.found == f"{trial.LOST[name]} ({REFUSED})" and lack.remedy


@pytest.mark.parametrize("faults", [{"programs": REFUSED}, {**FINE, "packets": REFUSED}])
def test_without_the_windows_nothing_runs(commands: dict[str, Output], faults: dict[str, str]) -> None:
    (check,) = checks(commands, faults)
    assert (check.status, check.found) == ("fail", REFUSED)
    assert "README" in check.remedy


def test_a_container_without_the_right_is_told_how_to_have_it(commands: dict[str, Output]) -> None:
    (check,) = checks(commands, {"programs": "the kernel refused it: Operation not permitted"})
    assert check.remedy.startswith("docker run --privileged")


def test_without_root(commands: dict[str, Output], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (check,) = trial.check_programs()
    assert (check.status, check.remedy.startswith("sudo ")) == ("fail", True)


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'ovs'", "README"),
        ("unshare: Operation not permitted", "docker"),
    ],
)
def test_a_trial_that_fails_itself_is_no_success(commands: dict[str, Output], why: str, remedy: str) -> None:
    commands["unshare"] = Output(1, f"Traceback\n{why}\n")
    (check,) = trial.check_programs()
    assert (check.status, check.found) == ("fail", f"they cannot be tried: {why}") and remedy in check.remedy

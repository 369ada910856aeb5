"""How a job in a virtual machine ended, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vm import jobs
from tests.vm.boot import Outcome
from tests.vm.machines import MACHINES


def result(exchange: Path, code: int | None, last: str, before: str = "") -> jobs.Result:
    return jobs.Result(
        MACHINES["debian12"], "6.1.0", jobs.SHORT[0], Outcome(code, 1.0, last, ""), exchange, before
    )


@pytest.mark.parametrize(
    ("code", "last", "before", "verdict"),
    [
        (0, "incast: 48 mice", "", (True, "passed")),
        (0, "33 passed, 1 skipped in 5.20s", "", (True, "33 passed, 1 skipped")),
        (1, "1 failed, 33 passed in 5.20s", "", (False, "exit code 1")),
        (None, "", "", (False, "the machine ended without a result")),
        (0, "", "exit code 1", (True, "passed, the second time (the first time: exit code 1)")),
    ],
)
def test_the_verdict(
    tmp_path: Path, code: int | None, last: str, before: str, verdict: tuple[bool, str]
) -> None:
    assert jobs.verdict(result(tmp_path, code, last, before)) == verdict


def test_the_summary_counts_and_keeps_what_failed_first(tmp_path: Path) -> None:
    text, _, passed = jobs.summary(
        [result(tmp_path, 0, "", "exit code 1"), result(tmp_path, 2, "")], "2026-01-01"
    )
    assert "the first time: exit code 1" in text and "virtual machines: 1 passed, 1 failed" in text
    assert not passed

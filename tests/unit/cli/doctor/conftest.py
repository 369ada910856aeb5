"""Fixtures of the tests of doctor's checks."""

from collections.abc import Sequence

import pytest

from fairq_ryu.cli.doctor import commands as doctor_commands
from fairq_ryu.cli.doctor.commands import Output


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> dict[str, Output]:
    """The only existing commands, by their first word, with their output."""
    known: dict[str, Output] = {}

    def run(command: Sequence[str], timeout: float = 10.0) -> Output:
        return known.get(command[0], Output(127, f"{command[0]}: No such file or directory"))

    monkeypatch.setattr(doctor_commands, "run", run)
    monkeypatch.setattr(
        doctor_commands, "which", lambda command: f"/usr/bin/{command}" if command in known else None
    )
    return known


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)

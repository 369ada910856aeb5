from __future__ import annotations

from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.doctor.commands import Output


def test_missing_and_hanging_commands_are_reported() -> None:
    assert commands.run(["no-such-command-anywhere"]).code == 127
    assert commands.run(["sleep", "5"], timeout=0.05).code == 124
    assert commands.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == Output(3, "out\n", "err\n")


def test_a_warning_is_no_part_of_an_answer_and_a_failure_is_told_by_stderr() -> None:
    warned = Output(0, "\n 3.1.0\nlast\n", "a warning\n")
    assert (warned.first_line, warned.last_line) == ("3.1.0", "last")
    failed = Output(1, "out\n", "\nwhy\n\n")
    assert (failed.first_line, failed.last_line) == ("out", "why")
    only_errors = Output(0, "", "version 2.3.0\n")
    assert (only_errors.first_line, only_errors.last_line) == ("version 2.3.0", "version 2.3.0")
    assert (Output(1, "", "").first_line, Output(1, "out", "").last_line) == ("", "out")

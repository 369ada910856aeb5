from __future__ import annotations

from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.doctor.commands import Output


def test_missing_and_hanging_commands_are_reported() -> None:
    assert commands.run(["no-such-command-anywhere"]).code == 127
    assert commands.run(["sleep", "5"], timeout=0.05).code == 124
    assert commands.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == Output(3, "out\nerr\n")

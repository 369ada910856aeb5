"""The system programs that fairq_ryu starts, read from programs.txt, for set-up, doctor and tests.

Standard library only, because doctor must work on a machine where nothing else is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Purpose = Literal["run", "build", "test", "optional", "system"]
PURPOSES: dict[str, Purpose] = {each: each for each in get_args(Purpose)}
WITHOUT_NAMESPACES = "run it where root may make namespaces and / is a mount point, as on a plain machine"
"""What to do where ``mnexec -n true`` fails."""
TABLE = Path(__file__).with_name("programs.txt")


@dataclass(frozen=True)
class SystemProgram:
    """A program: its name, its Debian package, its purpose, and its use; for an optional program, the use is
    the function that is missing without it.
    """

    name: str
    package: str
    purpose: Purpose
    use: str


def parse(text: str) -> Iterator[SystemProgram]:
    """The programs of a table. ``ValueError`` names a line that is not one."""
    for line in text.splitlines():
        words = line.partition("#")[0].split(maxsplit=3)
        if not words:
            continue
        name, package, purpose, use = (*words, "", "", "")[:4]
        if purpose not in PURPOSES or (purpose != "system" and not use):
            raise ValueError(f"{TABLE.name}: not a program, a package, a purpose and a use: {line!r}")
        yield SystemProgram(name, package, PURPOSES[purpose], use)


@cache
def known() -> tuple[SystemProgram, ...]:
    """All programs of the table."""
    return tuple(parse(TABLE.read_text(encoding="utf-8")))


def needed(*purposes: Purpose) -> list[SystemProgram]:
    """The programs for these purposes."""
    return [each for each in known() if each.purpose in purposes]

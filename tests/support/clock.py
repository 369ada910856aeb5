"""A clock of its own for a program that a test starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = Path(__file__).parent.parent / "faults/clock.c"


def compiled(folder: Path) -> Path:
    """The library that programs with such a clock load before all others."""
    made = folder / "clock.so"
    subprocess.run(["clang", "-O2", "-shared", "-fPIC", str(_SOURCE), "-o", str(made)], check=True)
    return made


class Clock:
    """The clock of programs that are started with this ``environment``: in steps at the file ``shared``, and
    with the steady clock at ``percent`` of its speed.
    """

    def __init__(self, library: Path, shared: Path, percent: int = 100) -> None:
        self._shared = shared
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAIRQ_CLOCK": str(shared),
            "FAIRQ_CLOCK_PERCENT": str(percent),
        }
        shared.write_bytes(bytes(8))

    def step(self, seconds: int) -> None:
        """The wall clock differs so much from the machine's."""
        with self._shared.open("r+b", buffering=0) as file:
            file.write(seconds.to_bytes(8, "little", signed=True))

"""The programs with shorter times, for tests that would wait for minutes: silent flows are forgotten within
seconds, and an agent tries ten times a second to connect.

``python -m tests.support.hasty fairq|ryu-manager ARGUMENTS``; :func:`script` makes a file of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def script(path: Path, program: str) -> Path:
    """A file that runs one of the programs."""
    path.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m tests.support.hasty {program} "$@"\n')
    path.chmod(0o755)
    return path


def main(program: str) -> int:
    """Run one of the programs, with the arguments of the process."""
    sys.argv[1:] = sys.argv[2:]
    if program == "fairq":
        from fairq_ryu.agent import agent, controller_connection

        agent._IDLE_NS = 5 * 10**9
        controller_connection._LAST_RETRY = 0.1
        from fairq_ryu.cli.main import main as run
    else:
        from fairq_ryu.fabric.flows import table

        table.IDLE_TIMEOUT = 3.0  # before others take it from there
        from fairq_ryu.ryu_compat.manager import main as run
    return int(run() or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

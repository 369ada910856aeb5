"""Runs the benchmarks and prints one line for each figure."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from bench import (
    attacks,
    beside,
    connections,
    far,
    idle,
    laws,
    owners,
    ports,
    program,
    queue_laws,
    rest,
    rules,
    scale,
    serving,
    step,
    takeover,
    ticks,
)

BENCHES: dict[str, Callable[[], None]] = {
    "laws": laws.main,
    "far": far.main,
    "beside": beside.main,
    "program": program.main,
    "queue-laws": queue_laws.main,
    "rules": rules.main,
    "ticks": ticks.main,
    "step": step.main,
    "idle": idle.main,
    "connections": connections.main,
    "rest": rest.main,
    "serving": serving.main,
    "ports": ports.main,
    "scale": scale.main,
    "owners": owners.main,
    "attacks": attacks.main,
    "takeover": takeover.main,
}
WITHOUT_ROOT = {"laws", "far", "beside", "ports", "scale", "owners", "takeover"}


def main() -> int:
    """Run the benchmarks named on the command line, or all; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], help="benchmarks to run (default: all)")
    names = parser.parse_args().names or list(BENCHES)
    if os.geteuid() != 0 and not WITHOUT_ROOT.issuperset(names):
        print("bench: needs root. Remedy: run it with sudo", file=sys.stderr)
        return 2
    for name in names:
        BENCHES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())

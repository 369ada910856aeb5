"""At the end: how often each fault was made, and how soon normal control was back. FAIRQ_FAULT_RESULTS names
a file that gets the same for `make docs`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.faults import results

WIDTH = 28


def pytest_terminal_summary(terminalreporter: Any) -> None:
    times: dict[str, list[float]] = defaultdict(list)
    made: dict[str, int] = defaultdict(int)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if "test_nothing_is_lost" in report.nodeid and report.when == "call":
                name = report.nodeid.rstrip("]").partition("[")[2].partition("-")[2]
                made[name] += 1
                if outcome == "passed":
                    times[name] += [value for key, value in report.user_properties if key == "back"]
    if not made:
        return
    found = {name: results.outcome(count, times[name]) for name, count in made.items()}
    terminalreporter.write_sep("=", "faults")
    terminalreporter.write_line(f"{'':{WIDTH}}   passed   back after, s: median, longest")
    for name, each in found.items():
        middle = f"{each.median:8.1f}{each.longest:8.1f}" if each.passed else ""
        terminalreporter.write_line(f"{name:{WIDTH}} {each.passed:3} of {each.made:2} {middle}")
    if path := os.environ.get("FAIRQ_FAULT_RESULTS"):
        results.write(Path(path), found)

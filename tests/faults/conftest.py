"""At the end: how often each fault was made, and how soon normal control was back."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

WIDTH = 28


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed: dict[str, list[float]] = defaultdict(list)
    failed: dict[str, int] = defaultdict(int)
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            if "test_nothing_is_lost" in report.nodeid and report.when == "call":
                name = report.nodeid.rstrip("]").partition("[")[2].partition("-")[2]
                passed[name] += [value for key, value in report.user_properties if key == "back"]
                failed[name] += outcome != "passed"
    if not passed:
        return
    terminalreporter.write_sep("=", "faults")
    terminalreporter.write_line(f"{'':{WIDTH}}   passed   back after, s: median, longest")
    for name, times in passed.items():
        made = len(times) + failed[name]
        middle = f"{sorted(times)[len(times) // 2]:8.1f}{max(times):8.1f}" if times else ""
        terminalreporter.write_line(f"{name:{WIDTH}} {len(times):3} of {made:2} {middle}")

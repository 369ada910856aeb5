"""The list of checks, and how `fairq doctor` prints their outcomes.

Doctor must work where other parts do not, so it imports the standard library only, changes nothing on the
machine, and reports every unexpected error as a failed check instead of a traceback.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from fairq_ryu.cli.doctor import kernel, network, switch, tools, trial
from fairq_ryu.cli.doctor.check import Check
from fairq_ryu.errors import plain

CHECKS: tuple[tuple[str, Callable[[], Check | Iterable[Check]]], ...] = (
    ("Python", tools.check_python),
    ("kernel", kernel.check_kernel),
    ("root", kernel.check_root),
    ("kernel BTF", kernel.check_btf),
    ("libbpf", kernel.check_libbpf),
    ("eBPF objects", kernel.check_bpf_objects),
    ("eBPF programs", trial.check_programs),
    ("compilers", tools.check_compilers),
    ("Open vSwitch", switch.check_ovs),
    ("send buffer", switch.check_send_buffer),
    ("receive buffer", switch.check_receive_buffer),
    ("Mininet", tools.check_mininet),
    ("namespaces", network.check_namespaces),
    ("Ryu", tools.check_ryu),
    ("network tools", tools.check_network_tools),
    ("programs", tools.check_programs),
    ("qdiscs", network.check_ports),
    ("hosts of bridges", network.check_hosts),
    ("kernel qdiscs", network.check_kernel_qdiscs),
    ("congestion control", network.check_congestion_control),
    ("host TCP", kernel.check_host_controls),
    ("controller port", network.check_controller_port),
)


# What set-up, Mininet and experiments need, and an agent or a controller from a package does not.
FOR_CHECKOUTS = {
    *("compilers", "Mininet", "namespaces", "Ryu", "network tools", "programs"),
    *("kernel qdiscs", "host TCP"),
}


def run_checks() -> list[Check]:
    """Run every check, in the order in which to fix what they find. Takes a few seconds; raises nothing."""
    checks: list[Check] = []
    left_out = set() if kernel.in_checkout() else FOR_CHECKOUTS
    for name, check in CHECKS:
        if name in left_out:
            continue
        try:
            outcome = check()
        except Exception as error:  # a check that raises must not hide the others
            outcome = Check(
                name, "fail", f"could not be checked: {error or type(error).__name__}", "make setup"
            )
        checks.extend([outcome] if isinstance(outcome, Check) else outcome)
    return checks


def print_plain(checks: Sequence[Check]) -> None:
    """The table without rich."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        print(f"{check.status:<4}  {check.name:<{width}}  {plain(check.found)}")
        if check.remedy:
            print(f"{'':4}  {'':{width}}  -> {plain(check.remedy)}")


def print_table(checks: Sequence[Check]) -> None:
    """The table for people, on stdout."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print_plain(checks)
        return
    colours = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in "check", "", "found":
        table.add_column(heading, overflow="fold")
    for check in checks:
        # Text, not markup: what was found may contain square brackets.
        found = Text(plain(check.found))
        if check.remedy:
            found.append(f"\n-> {plain(check.remedy)}", style=colours[check.status])
        table.add_row(Text(check.name), Text(check.status, style=colours[check.status]), found)
    Console().print(table)


def main(json_output: bool = False) -> int:
    """Check, print a table (or one JSON object) on stdout; 1 if fairq_ryu cannot run here, else 0."""
    checks = run_checks()
    failed = [check.name for check in checks if check.status == "fail"]
    if json_output:
        print(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}, indent=2))
        return 1 if failed else 0
    print_table(checks)
    if failed:
        corrected = " `make setup` corrects most of it." if kernel.in_checkout() else ""
        advice = " Start with root." if "root" in failed else corrected
        print(f"fairq_ryu cannot run here: {', '.join(failed)}.{advice}")
        return 1
    print("fairq_ryu can run here.")
    return 0


if __name__ == "__main__":
    sys.exit(main("--json" in sys.argv[1:]))

"""``fairq run``: each policy in turn on the same network and traffic, then one result and one table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import oversight
from fairq_ryu.experiments import scenario as scenarios
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.measure.machine import BARE, DROPTAIL
from fairq_ryu.experiments.report import repetitions, result, table
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.testbed import (
    Interrupted,
    Interrupts,
    Testbed,
    config_files,
    make_topology,
)
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads import registry
from mininet_topos.commands import CommandError

Report = Callable[[str, float], None]
WRITTEN = (result.FILE_NAME, "logs")
"""What a run writes to its directory."""
FLOOR = "floor"
"""The name of the run of the volleys alone, in progress messages and logs."""


def main(
    scenario: str,
    policies: Sequence[str],
    out: Path,
    overrides: Mapping[str, str] | None = None,
    config_file: Path | None = None,
    repeat: int = 1,
    full: bool = False,
) -> int:
    """Run a scenario (name or path) under each policy, ``repeat`` times, write ``out``/result.json and print
    the table, short or ``full``.

    Returns 0; 1 when a policy or its run failed (the others are still in the result); 130 when interrupted.
    ``UserError`` before anything starts when scenario, policies, directory or machine are not suitable; after
    the table when the result cannot be written.
    """
    chosen = scenarios.load(scenario, overrides)
    machine.check_policies(policies)
    machine.check_loops(chosen, policies)
    if config_file is not None and not config_file.is_file():
        raise UserError(f"there is no configuration file {config_file}", "give the path of an existing one")
    if config_file is not None:
        loader.load([config_file])  # reports an error in the file before anything starts
    if any(policy != machine.BARE for policy in policies):
        machine.find_program("ryu-manager")
    # Needed for the names of the switches only; nothing is started.
    machine.check_machine(switch_names(chosen))
    machine.check_controls(chosen, policies)
    machine.check_qdiscs(chosen, policies, config_file)
    machine.check_directory(out)
    # Made before the run: at its end nothing but the result must need room on the disk.
    files = config_files(chosen, out / "logs", config_file)
    metadata = machine.metadata(scenario, dict(overrides or {}), config_file, files)
    try:
        measured = run(chosen, policies, out, config_file, repeat)
    except Interrupted:
        print("fairq run: interrupted; the network has been removed", file=sys.stderr)
        return 130
    assembled = result.assemble(chosen.settings, metadata, measured)
    table.show(assembled, full)
    print(f"result: {result.saved(assembled, out)}", file=sys.stderr)
    return 1 if any(each["failed"] or each.get("unsound") for each in assembled["policies"]) else 0


def switch_names(chosen: Scenario) -> list[str]:
    """The names of the bridges that the scenario will create. ``UserError`` without Mininet."""
    try:
        return list(make_topology(chosen).switches())
    except ImportError:
        raise UserError(
            "this Python does not have Mininet", "run `make setup`, and use .venv/bin/fairq"
        ) from None


def run(
    chosen: Scenario, policies: Sequence[str], out: Path, config_file: Path | None = None, repeat: int = 1
) -> list[dict[str, Any]]:
    """Run all policies; returns an object for each repetition, as `result` documents it. A policy that failed
    has the reason in it.

    `Interrupted` if a signal arrived.
    """
    measured: list[dict[str, Any]] = []
    workload = registry.WORKLOADS[chosen.traffic]
    alone = workload.floor(chosen)
    with Interrupts() as interrupts, _progress([FLOOR, *policies] if alone else policies) as reports:
        report = dict(zip([FLOOR, *policies] if alone else policies, reports, strict=True))

        def one(scenario: Scenario, policy: str, name: str, number: int) -> dict[str, Any]:
            logs = out / "logs" / name
            logs = logs / str(number + 1) if repeat > 1 else logs
            progress = _part(report[name], number, repeat)
            steps = workload.steps(scenario)
            found: list[dict[str, Any]] = []
            try:
                for place, (step, chosen) in enumerate(steps.items()):
                    testbed = Testbed(chosen, policy, logs / step, config_file)
                    found.append(_measure(testbed, interrupts, _part(progress, place, len(steps))))
                figures = workload.joined(found)
            except (RunError, CommandError, OSError) as error:  # OSError: no room for logs, too
                print(f"fairq run: {name} failed: {error}", file=sys.stderr)
                return {"policy": name, "failed": str(error)}
            return {"policy": name, "failed": None, **figures}

        for number in range(repeat):
            order = repetitions.order(policies, number)
            # The floor measures the limit of the test bed: without a controller, where there are no loops.
            floor = one(alone, DROPTAIL if chosen.plan.loops else BARE, FLOOR, number) if alone else None
            if floor is not None and floor["failed"]:
                floor = None
            found = {policy: one(chosen, policy, policy, number) for policy in order}
            for figures in found.values():
                if not figures["failed"]:
                    workload.add_limits(chosen, figures, floor)
            measured.append(
                {"order": order, "floor": floor, "policies": [found[policy] for policy in policies]}
            )
    return measured


def _part(report: Report, number: int, repeat: int) -> Report:
    """Progress of one repetition as a part of all repetitions."""
    if repeat == 1:
        return report

    def of_one(step: str, part: float) -> None:
        report(f"{number + 1} of {repeat}: {step}", (number + part) / repeat)

    return of_one


def _measure(testbed: Testbed, interrupts: Interrupts, report: Report) -> dict[str, Any]:
    """Start the testbed, measure, and remove it, also after a failure."""
    try:
        with interrupts.deferred():
            report("starting controller and network", 0.0)
            testbed.start()
        measurement = registry.WORKLOADS[testbed.scenario.traffic].measurement()
        figures = measurement(testbed, testbed.scenario, report).run()
        unsound = oversight.unsound(testbed.rest_port, testbed.logs / "controller.log")
        tcp = {"tcp": testbed.tcp.described(), "tcp_left_out": testbed.tcp.left_out()}
        return {"unsound": unsound, **tcp, **figures}
    finally:
        with interrupts.deferred():
            for trouble in testbed.stop():
                print(
                    f"fairq run: while removing the network of {testbed.policy}: {trouble}", file=sys.stderr
                )


@contextmanager
def _progress(policies: Sequence[str]) -> Iterator[list[Report]]:
    """A progress bar for each policy on stderr; a line for each new step if stderr is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield [_plain(policy) for policy in policies]
        return
    with Progress(
        TextColumn("{task.fields[policy]:<10}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
    ) as bars:
        yield [_bar(bars, policy) for policy in policies]


def _bar(bars: Progress, policy: str) -> Report:
    task = bars.add_task("waiting", total=1.0, policy=policy, start=False)

    def report(step: str, part: float) -> None:
        bars.start_task(task)
        bars.update(task, description=step, completed=part)

    return report


def _plain(policy: str) -> Report:
    last = ""

    def report(step: str, part: float) -> None:
        nonlocal last
        if step != last:
            last = step
            print(f"{policy}: {part:4.0%} {step}", file=sys.stderr, flush=True)

    return report

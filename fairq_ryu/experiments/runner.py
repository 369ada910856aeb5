"""``fairq run``: each policy in turn on the same network and traffic, then one result and one table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

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
from fairq_ryu.experiments.variants import Variant
from fairq_ryu.experiments.variants import read as read_variants
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
    variants = known_variants(policies, config_file)
    check([chosen], variants, out, config_file)
    # Made before the run: at its end nothing but the result must need room on the disk.
    files = config_files(chosen, out / "logs", config_file)
    metadata = machine.metadata(scenario, dict(overrides or {}), variants, config_file, files)
    try:
        measured = run(chosen, variants, out, config_file, repeat)
    except Interrupted:
        print("fairq run: interrupted; the network has been removed", file=sys.stderr)
        return 130
    left = repeat - len(measured)
    if left:
        missing = f"{left} of {repeat} repetitions are missing"
        print(f"fairq run: interrupted; the network has been removed, and {missing}", file=sys.stderr)
    seeds = [chosen.seed + number for number in range(len(measured))]
    assembled = result.assemble(chosen.settings, {**metadata, "seeds": seeds}, measured)
    table.show(assembled, full)
    print(f"result: {result.saved(assembled, out)}", file=sys.stderr)
    if left:
        return 130
    return 1 if any(each["failed"] or each["unsound"] for each in assembled["policies"]) else 0


def known_variants(policies: Sequence[str], config_file: Path | None) -> tuple[Variant, ...]:
    """The policies of these names. ``UserError`` when one is not known, or its settings or the configuration
    file are wrong.
    """
    return read_variants(policies, machine.known_policies(), config_file)


def check(
    chosen: Sequence[Scenario], variants: Sequence[Variant], out: Path, config_file: Path | None
) -> None:
    """``UserError`` when this machine cannot run all these policies in all these scenarios now."""
    if any(each.base != BARE for each in variants):
        machine.find_program("ryu-manager")
    for each in chosen:
        machine.check_loops(each, variants)
    # Needed for the names of the switches only; nothing is started.
    machine.check_machine(list(dict.fromkeys(name for each in chosen for name in switch_names(each))))
    for each in chosen:
        machine.check_controls(each, variants)
        machine.check_memory(each, variants)
        machine.check_qdiscs(each, variants, config_file)
    machine.check_directory(out)


def switch_names(chosen: Scenario) -> list[str]:
    """The names of the bridges that the scenario will create. ``UserError`` without Mininet."""
    try:
        return list(make_topology(chosen).switches())
    except ImportError:
        raise UserError(
            "this Python does not have Mininet", "run `make setup`, and use .venv/bin/fairq"
        ) from None


def run(
    chosen: Scenario, variants: Sequence[Variant], out: Path, config_file: Path | None = None, repeat: int = 1
) -> list[dict[str, Any]]:
    """Run all policies; returns an object for each repetition, as `result` documents it. A policy that failed
    has the reason in it.

    A signal ends it: then only whole repetitions are there. `Interrupted` without any.
    """
    measured: list[dict[str, Any]] = []
    workload = registry.WORKLOADS[chosen.traffic]
    alone = workload.floor(chosen)
    alone = alone and replace(alone, trace_flows=0)
    shown = [*([FLOOR] if alone else []), *(each.name for each in variants)]
    with Interrupts() as interrupts, _progress(shown) as reports:
        report = dict(zip(shown, reports, strict=True))

        def one(scenario: Scenario, variant: Variant, number: int) -> dict[str, Any]:
            logs = out / "logs" / variant.directory
            logs = logs / str(number + 1) if repeat > 1 else logs
            progress = _part(report[variant.name], number, repeat)
            seeded = replace(scenario, seed=scenario.seed + number)
            return run_policy(seeded, variant, logs, config_file, interrupts, progress)

        try:
            for number in range(repeat):
                order = repetitions.order([each.name for each in variants], number)
                floor = one(alone, floor_policy(chosen), number) if alone else None
                by_name = {each.name: each for each in variants}
                found = {name: one(chosen, by_name[name], number) for name in order}
                measured.append(repetition(chosen, order, floor, [found[each.name] for each in variants]))
        except Interrupted:
            if not measured:
                raise
    return measured


def floor_policy(scenario: Scenario) -> Variant:
    """What runs the volleys alone: they measure the limit of the test bed, so without a controller where
    there are no loops.
    """
    return Variant(FLOOR, DROPTAIL if scenario.plan.loops else BARE)


def repetition(
    scenario: Scenario, order: Sequence[str], floor: dict[str, Any] | None, policies: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A repetition, as `result.assemble` takes it, of the figures of its floor and of its policies; adds to
    these what no policy can beat.
    """
    if floor is not None and floor["failed"]:
        floor = None
    for figures in policies:
        if not figures["failed"]:
            registry.WORKLOADS[scenario.traffic].add_limits(scenario, figures, floor)
    return {"order": list(order), "floor": floor, "policies": list(policies)}


def run_policy(
    scenario: Scenario,
    variant: Variant,
    logs: Path,
    config_file: Path | None,
    interrupts: Interrupts,
    report: Report,
) -> dict[str, Any]:
    """Run one policy once; returns its figures, or the reason why it has failed.

    `Interrupted` if a signal arrived.
    """
    workload = registry.WORKLOADS[scenario.traffic]
    steps = workload.steps(scenario)
    found: list[dict[str, Any]] = []
    try:
        for place, (step, chosen) in enumerate(steps.items()):
            testbed = Testbed(chosen, variant, logs / step, config_file)
            found.append(_measure(testbed, interrupts, _part(report, place, len(steps))))
        figures = workload.joined(found)
    except (RunError, CommandError, OSError) as error:  # OSError: no room for logs, too
        print(f"{variant.name} failed: {error}", file=sys.stderr)
        return {"policy": variant.name, "failed": str(error)}
    return {"policy": variant.name, "failed": None, **figures}


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
                print(f"while removing the network of {testbed.variant.name}: {trouble}", file=sys.stderr)


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

"""``fairq simulate``: each policy in turn in the simulator, then one result and one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import baselines, runner
from fairq_ryu.experiments import scenario as scenarios
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.report import result, table
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.simulator import order, program
from fairq_ryu.experiments.simulator.figures import figures_of
from fairq_ryu.experiments.simulator.laws import Laws, laws_of
from fairq_ryu.experiments.simulator.network import network_of
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads.incast import limits
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario

WRITTEN = (result.FILE_NAME,)
"""What a run writes to its directory."""


def main(
    scenario: str,
    policies: Sequence[str],
    out: Path,
    overrides: Mapping[str, str] | None = None,
    config_file: Path | None = None,
    repeat: int = 1,
    full: bool = False,
    link_mbit: float | None = None,
    ack_every: int = order.ACK_EVERY,
) -> int:
    """Simulate a scenario (name or path) under each policy, with ``repeat`` seeds, write ``out``/result.json
    and print the table. ``link_mbit`` and ``ack_every``: as in `order.Hosts`; None: the
    rate of the bottleneck.

    Returns 0, or 1 when a policy failed. ``UserError`` before anything starts when scenario, policies or
    directory are not suitable, or the simulator is not there.
    """
    chosen = scenarios.load(scenario, overrides)
    if not policies or len(set(policies)) < len(policies):
        raise UserError("no policy, or one twice", "name one or more policies, each once")
    simulation = Simulation(chosen, policies, config_file, link_mbit, ack_every)
    machine.check_directory(out)
    files = [] if config_file is None else [config_file]
    metadata = machine.origin(scenario, dict(overrides or {}), config_file, files)
    metadata["simulator"] = simulation.metadata
    measured = []
    for number in range(repeat):
        floor = simulation.floor(number)
        found = [_told(simulation, name, number, repeat) for name in policies]
        measured.append(runner.repetition(simulation.scenario, policies, floor, found))
    assembled = result.assemble(chosen.settings, metadata, measured)
    table.show(assembled, full)
    print(f"result: {result.saved(assembled, out)}", file=sys.stderr)
    return 1 if any(each["failed"] for each in assembled["policies"]) else 0


def _told(simulation: Simulation, name: str, number: int, repeat: int) -> dict[str, Any]:
    which = f"{number + 1} of {repeat}: " if repeat > 1 else ""
    print(f"{name}: {which}seed {simulation.scenario.seed + number}", file=sys.stderr, flush=True)
    return simulation.run(name, number)


def _scenario(chosen: IncastScenario, policy: str) -> IncastScenario:
    """The scenario with the settings of a baseline. ``UserError`` if it has what is not simulated."""
    changed = baselines.of(policy).applied(chosen)
    assert isinstance(changed, IncastScenario)
    order.check(changed)
    return changed


class Simulation:
    """Runs of one scenario under some policies."""

    def __init__(
        self,
        chosen: Scenario,
        policies: Sequence[str],
        config_file: Path | None = None,
        link_mbit: float | None = None,
        ack_every: int = order.ACK_EVERY,
    ) -> None:
        """``UserError`` when scenario or policies are not simulated, or the simulator is not there."""
        if not isinstance(chosen, IncastScenario):
            raise UserError(
                f"traffic {chosen.traffic!r} is not simulated", "name a scenario with traffic incast"
            )
        self.scenario = chosen
        config = loader.load([] if config_file is None else [config_file])
        self._hosts = order.Hosts(chosen.rate_mbit if link_mbit is None else link_mbit, ack_every)
        network_of(chosen, self._hosts.link_mbit)
        trip = order.round_trip_ms(chosen)
        self._scenarios = {name: _scenario(chosen, name) for name in policies}
        self._laws = {name: laws_of(name, config, chosen.rate_mbit, trip) for name in policies}
        self._built = program.built()
        self._active_timeout_s = config.number("agent", "active_timeout")

    @property
    def metadata(self) -> dict[str, Any]:
        """What a result says of the simulator."""
        trip = order.round_trip_ms(self.scenario)
        return {"ns3": program.find_ns3().version, **asdict(self._hosts), "round_trip_ms": trip}

    def floor(self, number: int) -> dict[str, Any] | None:
        """The figures of the volleys alone; None: they are not wanted."""
        alone = limits.floor(self.scenario)
        return self._run("floor", alone, Laws(None, None), number) if alone else None

    def run(self, name: str, number: int) -> dict[str, Any]:
        """The figures of one policy in one repetition, counted from 0, or why it failed."""
        return self._run(name, self._scenarios[name], self._laws[name], number)

    def _run(self, name: str, scenario: IncastScenario, laws: Laws, number: int) -> dict[str, Any]:
        seed = scenario.seed + number
        text = order.order(
            replace(scenario, seed=seed),
            laws,
            self._hosts,
            seed=seed,
            active_timeout_s=self._active_timeout_s,
        )
        try:
            answer = program.answer(self._built, text)
        except RunError as error:
            return {"policy": name, "failed": str(error)}
        tcp = {scenario.cc: f"{scenario.cc} of ns-3"}
        figures = figures_of(answer, scenario, laws.queue.name if laws.queue else None)
        return {"policy": name, "failed": None, "unsound": None, "tcp": tcp, "tcp_left_out": {}, **figures}

"""``fairq simulate``: each policy in turn in the simulator, then one result and one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fairq_ryu.config import loader
from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import baselines, runner
from fairq_ryu.experiments import scenario as scenarios
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.report import result, table
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
    if not isinstance(chosen, IncastScenario):
        raise UserError(f"traffic {chosen.traffic!r} is not simulated", "name a scenario with traffic incast")
    if not policies or len(set(policies)) < len(policies):
        raise UserError("no policy, or one twice", "name one or more policies, each once")
    files = [] if config_file is None else [config_file]
    config = loader.load(files)
    hosts = order.Hosts(chosen.rate_mbit if link_mbit is None else link_mbit, ack_every)
    network_of(chosen, hosts.link_mbit)
    scenarios_of = {name: _scenario(chosen, name) for name in policies}
    laws = {name: laws_of(name, config, chosen.rate_mbit, order.round_trip_ms(chosen)) for name in policies}
    built = program.built()
    machine.check_directory(out)
    metadata = machine.origin(scenario, dict(overrides or {}), config_file, files)
    metadata["simulator"] = {
        "ns3": program.find_ns3().version,
        **asdict(hosts),
        "round_trip_ms": order.round_trip_ms(chosen),
    }
    one = _Simulated(built, config, hosts)
    measured = []
    for number in range(repeat):
        alone = limits.floor(chosen)
        floor = one.run("floor", alone, Laws(None, None), number, repeat) if alone else None
        found = [one.run(name, scenarios_of[name], laws[name], number, repeat) for name in policies]
        measured.append(runner.repetition(chosen, policies, floor, found))
    assembled = result.assemble(chosen.settings, metadata, measured)
    table.show(assembled, full)
    print(f"result: {result.saved(assembled, out)}", file=sys.stderr)
    return 1 if any(each["failed"] for each in assembled["policies"]) else 0


def _scenario(chosen: IncastScenario, policy: str) -> IncastScenario:
    """The scenario with the settings of a baseline. ``UserError`` if it has what is not simulated."""
    changed = baselines.of(policy).applied(chosen)
    assert isinstance(changed, IncastScenario)
    order.check(changed)
    return changed


class _Simulated:
    """Runs of one scenario."""

    def __init__(self, built: Path, config: Config, hosts: order.Hosts) -> None:
        self._built, self._hosts = built, hosts
        self._active_timeout_s = config.number("agent", "active_timeout")

    def run(
        self, name: str, scenario: IncastScenario, laws: Laws, number: int, repeat: int
    ) -> dict[str, Any]:
        """The figures of one policy in one repetition, or why it failed."""
        seed = scenario.seed + number
        which = f"{number + 1} of {repeat}: " if repeat > 1 else ""
        print(f"{name}: {which}seed {seed}", file=sys.stderr, flush=True)
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

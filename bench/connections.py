"""The rate of new TCP connections through one bridge, for several ways in which its controller treats them.

The cases are measured in turn, in several rounds, so that other load on the machine affects all of them
equally. Clients, server, switch and controller share the same processors: a figure is the cost of a
connection for all of them together, and only the ratios can be compared with other machines.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import figures
from bench.network import Measurement, Network
from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.testbed import Interrupted, Interrupts
from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.commands import CommandError

ROUNDS = 3
SECONDS, WARM_UP = 3.0, 0.4
FLIGHT = 48
FAIRQ = "fairq_ryu.apps.fairq"


@dataclass(slots=True)
class Row:
    """One way to treat new connections, and its measurements."""

    name: str
    app: str | None = None  # None: the bridge forwards by itself
    settings: str = ""  # content of the controller's configuration file
    agent: bool = False
    copies: int = 0  # number of segments of each connection that are copied to the controller
    base: str = ""  # the name of the baseline case
    wanted: float = 0.0  # the ratio to the baseline should be at least this
    controller: str | None = None  # the key of its running controller in `Network.controllers`
    results: list[Measurement] = field(default_factory=list)


def rows() -> list[Row]:
    """The cases, in the order of measurement."""
    return [
        Row("bridge alone"),
        Row("copies discarded", "bench.apps.discard", copies=2, base="bridge alone"),
        Row("fairq, syn = copy", FAIRQ, agent=True, copies=4, base="copies discarded", wanted=0.8),
        Row("reactive rules", "bench.apps.reactive", base="bridge alone"),
        Row(
            "fairq, syn = hold",
            FAIRQ,
            "[fairq_ryu]\nsyn = hold\n",
            agent=True,
            base="reactive rules",
            wanted=1.0,
        ),
    ]


def main() -> None:
    """Print the figures."""
    try:
        with Interrupts() as interrupts, tempfile.TemporaryDirectory() as directory:
            network = Network(Path(directory))
            try:
                with interrupts.deferred():
                    network.start(FLIGHT)
                    measured = [row for row in rows() if _start(network, row, Path(directory))]
                for number in range(ROUNDS):
                    # Alternately forward and backward, so that a drift of the machine's speed cancels out.
                    for row in measured if number % 2 == 0 else reversed(measured):
                        _measure(network, row)
            finally:
                with interrupts.deferred():
                    network.stop()
    except Interrupted:
        print("bench: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except (CommandError, RunError, UserError) as error:
        raise SystemExit(f"bench: {error}") from None
    for row in measured:
        print(describe(row, measured))


def _start(network: Network, row: Row, directory: Path) -> bool:
    """Start the controller of a case. If this version does not know its settings, print that and return
    False.
    """
    if row.app is None:
        return True
    arguments = []
    if row.settings:
        file = directory / "controller.conf"
        file.write_text(row.settings)
        try:
            loader.load([file])
        except UserError as error:
            print(f"new connections, {row.name:18} not available: {error.message.removeprefix(f'{file}: ')}")
            return False
        arguments = ["--config-file", str(file)]
    row.controller = network.controller(row.app, *arguments)
    return True


def _measure(network: Network, row: Row) -> None:
    try:
        _measure_once(network, row)
    except RunError as error:
        raise RunError(f"{row.name}: {error}") from error


def _measure_once(network: Network, row: Row) -> None:
    network.clear()
    if row.controller is None:
        network.forward()
    else:
        network.connect_bridge(row.controller)
        if row.agent:
            network.agent(row.controller)
    row.results.append(network.measure(WARM_UP, SECONDS))


def describe(row: Row, measured: Sequence[Row]) -> str:
    """The line of text for a case."""
    rates = [each.rate for each in row.results]
    text = f"new connections, {row.name:18} {figures.spread(rates, '.0f')} a second"
    for base in measured:
        if base.name == row.base:
            found = figures.ratios(rates, [each.rate for each in base.results])
            text += f", ratio to {base.name} {figures.spread(found, '.2f')}"
            text += f", wanted {row.wanted:.2f}" if row.wanted else ""
    costs = [each.processor / each.connections for each in row.results]
    text += f", processors {statistics.median(costs) * 1e6:.0f} µs each"
    if row.copies:
        made = row.copies * sum(each.connections for each in row.results)
        text += f", copies lost {figures.share(sum(each.dropped for each in row.results), made)}"
    if repeated := sum(each.repeated for each in row.results):
        text += f", segments sent again {repeated}"
    return text

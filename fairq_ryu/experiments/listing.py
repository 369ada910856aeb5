"""``fairq run --list``: the scenarios and policies that can be named, with their descriptions."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect

from rich.console import Console
from rich.table import Table

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.baselines import BASELINES
from fairq_ryu.experiments.measure import machine

_OURS = {
    machine.BARE: "the same bridges with neither controller nor agent: shows the cost of the others",
    **{name: baseline.help for name, baseline in BASELINES.items()},
}


def scenarios() -> list[tuple[str, str, str, str]]:
    """Name, topology, traffic and title of each scenario that comes with the project."""
    found = [(name, scenario.load(name)) for name in scenario.names()]
    return [(name, chosen.topology, chosen.traffic, chosen.title) for name, chosen in found]


def policies() -> list[tuple[str, str]]:
    """Name of each policy that ``--policy`` accepts, and its description in a line."""
    return [(name, _OURS.get(name) or _about(name)) for name in machine.known_policies()]


def _about(policy: str) -> str:
    """First paragraph of the policy's module, without its name; of its class, if the module has several."""
    entries = importlib.metadata.entry_points(group="fairq_ryu.policies")
    modules = [entry.module for entry in entries]
    for entry in entries:
        if entry.name == policy:
            try:
                module, policy_class = importlib.import_module(entry.module), entry.load()
            except Exception as error:  # a policy of another package is listed even if it cannot be loaded
                return f"cannot be loaded: {error}"
            documented = (policy_class, module) if modules.count(entry.module) > 1 else (module, policy_class)
            paragraph = next(filter(None, map(_first_paragraph, documented)), "")
            name, colon, rest = paragraph.partition(": ")
            return rest if colon and name.lower() == policy else paragraph
    return ""


def _first_paragraph(documented: object) -> str:
    """The first paragraph of its docstring, on one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())


def show(console: Console | None = None) -> None:
    """Print both lists; ``UserError`` when a scenario of the project cannot be read."""
    console = console or Console()
    if not console.is_terminal:
        console.width = max(console.width, 200)  # one line for each entry, for grep
    for heads, rows in (
        (("scenario", "topology", "traffic", "title"), scenarios()),
        (("policy", "what it does"), policies()),
    ):
        table = Table(*heads, box=None, padding=(0, 2, 0, 0), header_style="bold")
        for row in rows:
            table.add_row(*row)
        console.print(table, highlight=False, markup=False)
        console.print()


def nothing_named() -> UserError:
    """The error for a call without a scenario."""
    return UserError(
        "no scenario given",
        f"name one of {', '.join(scenario.names())}, or a .toml file; `fairq run --list` describes them",
    )

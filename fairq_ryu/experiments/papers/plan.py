"""The plan of the series: which experiments of which papers, under which policies, and what is claimed.

It is data, a file for each paper, in ../scenarios/papers. The form of such a file:

    paper      its name in tables
    cite       authors, title, where it was published
    experiment (several)
      id         in tables, and the name of its directory
      like       the id of another one above: what is not said here is as there, and set is added to its own;
                 it has those claims whose policies it has, and it is no part of --quick
      scenario   a stored one, or with simulated = true a file in simulator/scenarios, without .toml
      policies   the first is the one with which tables compare
      repeat     repetitions
      seconds    that one policy takes once, about, from the start of its network to its end
      set        settings of the scenario that are changed
      config     settings of controller and agents, by section, for all policies
      ack_every  of simulated hosts
      quick      for --quick: set (added to the other), policies, repeat, seconds; without it, the experiment
                 is left out there
      claim (several)
        id         if it has another one than the experiment
        words      what the paper says
        paper      the paper's figure, or where it is
        ours       what is compared
        short      the same in a few words, for the picture
        holds      the claim, see `expression`
        differs    what explains a difference, if it is known: shown only where the claim does not agree
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.papers import expression
from fairq_ryu.experiments.papers.expression import Expression
from fairq_ryu.experiments.scenario import STORED
from fairq_ryu.experiments.simulator import order, program
from fairq_ryu.setting import did_you_mean, value_text

FOLDER = STORED / "papers"
_ORDER = ("fairq", "ipccc", "iqm", "sed", "afcd", "ctrltcp")


@dataclass(frozen=True)
class Claim:
    """What a paper says, in a form that can be compared."""

    id: str
    words: str
    paper: str
    ours: str
    short: str
    holds: str
    differs: str = ""

    @property
    def expression(self) -> Expression:
        """``ValueError`` if it is none."""
        return expression.parse(self.holds)


@dataclass(frozen=True)
class Experiment:
    """An experiment as it is to be run."""

    id: str
    scenario: str
    """a name or a path"""
    policies: tuple[str, ...]
    repeat: int
    seconds: float
    set: Mapping[str, str]
    claims: tuple[Claim, ...]
    place: int
    """among the experiments of its paper"""
    simulated: bool = False
    ack_every: int = order.ACK_EVERY
    config: str = ""
    """as a configuration file; "": none"""

    @property
    def given(self) -> str:
        """The scenario as `fairq run` or, in the project's directory, `fairq simulate` takes it."""
        if not self.simulated:
            return self.scenario
        return str(Path(self.scenario).relative_to(program.SOURCES.parent))


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments. Without those that are left out."""

    name: str
    cite: str
    experiments: tuple[Experiment, ...]
    left_out: tuple[Experiment, ...] = ()
    """those that --quick leaves out, as they are without it"""


def load(quick: bool = False) -> tuple[Paper, ...]:
    """The plan of the whole series, or that of ``--quick``."""
    return tuple(_paper(FOLDER / f"{name}.toml", quick) for name in _ORDER)


def chosen(papers: Sequence[Paper], ids: Sequence[str]) -> list[Experiment]:
    """The experiments of these ids, in the order of the plan; of none, all. ``UserError`` if there is none of
    an id.
    """
    every = [each for paper in papers for each in paper.experiments]
    for wanted in ids:
        if wanted not in [each.id for each in every]:
            left_out = [each.id for paper in papers for each in paper.left_out]
            if wanted in left_out:
                raise UserError(f"--quick has no experiment {wanted}", "run it without --quick")
            raise UserError(
                f"there is no experiment {wanted!r}", did_you_mean(wanted, [each.id for each in every])
            )
    return [each for each in every if not ids or each.id in ids]


def _paper(path: Path, quick: bool) -> Paper:
    with path.open("rb") as file:
        found = tomllib.load(file)
    there: list[Experiment] = []
    left_out: list[Experiment] = []
    for place, each in enumerate(_completed(found["experiment"])):
        if quick and "quick" in each:
            there.append(_experiment(each, each["quick"], place))
        else:
            (left_out if quick else there).append(_experiment(each, {}, place))
    return Paper(found["paper"], found["cite"], tuple(there), tuple(left_out))


def _completed(given: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The experiments of a file, each with what it has from the one that it is like."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in given:
        own = dict(each)
        if "like" in own:
            other = {name: value for name, value in found[own.pop("like")].items() if name != "quick"}
            own = {**other, **own, "set": {**other.get("set", {}), **own.get("set", {})}}
            own["claim"] = [
                claim
                for claim in own["claim"]
                if set(expression.parse(claim["holds"]).policies) <= set(own["policies"])
            ]
        found[own["id"]] = own
    return list(found.values())


def _experiment(found: Mapping[str, Any], changed: Mapping[str, Any], place: int) -> Experiment:
    simulated = found.get("simulated", False)
    name = found["scenario"]
    given = {**found.get("set", {}), **changed.get("set", {})}
    return Experiment(
        id=found["id"],
        scenario=str(program.SOURCES / "scenarios" / f"{name}.toml") if simulated else name,
        policies=tuple(changed.get("policies", found["policies"])),
        repeat=changed.get("repeat", found["repeat"]),
        seconds=changed.get("seconds", found["seconds"]),
        set={key: value_text(value) for key, value in given.items()},
        claims=tuple(Claim(**{"id": found["id"], **each}) for each in found.get("claim", ())),
        place=place,
        simulated=simulated,
        ack_every=found.get("ack_every", order.ACK_EVERY),
        config="".join(
            f"[{section}]\n" + "".join(f"{key} = {value_text(value)}\n" for key, value in values.items())
            for section, values in found.get("config", {}).items()
        ),
    )

"""Scenarios: read from small data files and checked as a whole; all faults are reported together."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments.checking import Checked
from fairq_ryu.experiments.settings import TOPOLOGIES, Scenario, type_of
from fairq_ryu.experiments.workloads.registry import WORKLOADS
from fairq_ryu.setting import did_you_mean

__all__ = ["STORED", "TOPOLOGIES", "Scenario", "build", "load", "names", "type_of"]

STORED = Path(__file__).parent / "scenarios"


def names() -> list[str]:
    """The scenarios that come with the project."""
    return sorted(path.stem for path in STORED.glob("*.toml"))


def load(scenario: str, overrides: Mapping[str, str] | None = None) -> Scenario:
    """Read a stored scenario by name, or any ``.toml`` by path; ``overrides`` such as ``{"rounds": "20"}``.

    ``UserError`` if it does not exist, is not TOML, or has unknown, missing or wrong settings (lists all).
    """
    if scenario.endswith(".toml") or "/" in scenario:
        path, remedy = Path(scenario), "give the path of a .toml file, or a name: " + ", ".join(names())
    else:
        path = STORED / f"{scenario}.toml"
        remedy = f"{did_you_mean(scenario, names())} `fairq run --list` describes them; or give a .toml file"
    try:
        with path.open("rb") as file:
            values: dict[str, Any] = tomllib.load(file)
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(f"there is no scenario {scenario!r}", remedy) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "check its permissions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}", "correct that line") from None
    values.setdefault("title", path.stem)
    read, faults = _read_overrides(overrides or {})
    return build(values | read, path.name, overridden=read, faults=faults)


def build(
    values: Mapping[str, Any],
    where: str = "scenario",
    *,
    overridden: Collection[str] = (),
    faults: Sequence[UserError] = (),
) -> Scenario:
    """A scenario of the class of its workload; ``where`` is named in errors, or ``--set`` for values in
    ``overridden``.

    ``UserError`` with all faults, a line each; ``faults`` are those that are known already.
    """
    checked = Checked(values, where, overridden)
    if found := [*faults, *checked.faults]:
        raise all_of(found)
    scenario = WORKLOADS[checked.values["traffic"]].scenario(**checked.values)
    try:
        scenario.check()
    except UserError as error:
        raise all_of([UserError(f"{where}: {each.message}", each.remedy) for each in error.faults]) from None
    return scenario


def _read_overrides(overrides: Mapping[str, str]) -> tuple[dict[str, Any], list[UserError]]:
    """The values of ``--set NAME=TEXT``, read as TOML (a bare word is a text), and the faults."""
    values: dict[str, Any] = {}
    faults = []
    for name, text in overrides.items():
        if not text:
            faults.append(UserError(f"--set {name}: no value", f"write --set {name}=VALUE"))
            continue
        try:
            read = tomllib.loads(f"value = {text}")
        except tomllib.TOMLDecodeError:
            read = {}
        values[name] = read["value"] if len(read) == 1 else text
    return values, faults

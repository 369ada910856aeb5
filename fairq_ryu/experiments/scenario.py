"""Scenarios: read from small data files, checked as a whole, and refused with all that is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments.checking import Checked
from fairq_ryu.experiments.settings import (
    DEADLINES,
    FANIN,
    FLOOD,
    INCAST,
    TOPOLOGIES,
    Scenario,
    type_of,
)
from fairq_ryu.setting import did_you_mean

__all__ = ["STORED", "TOPOLOGIES", "Scenario", "build", "load", "names", "type_of"]

STORED = Path(__file__).parent / "scenarios"


def names() -> list[str]:
    """The scenarios that come with the project."""
    return sorted(path.stem for path in STORED.glob("*.toml"))


def load(scenario: str, overrides: Mapping[str, str] | None = None) -> Scenario:
    """Read a stored scenario by name, or any ``.toml`` by path; ``overrides`` such as ``{"rounds": "20"}``.

    ``UserError`` when it does not exist, is no TOML, or has unknown, missing or wrong settings: all of them.
    """
    if scenario.endswith(".toml") or "/" in scenario:
        path, remedy = Path(scenario), "give the path of a .toml file, or a name: " + ", ".join(names())
    else:
        path = STORED / f"{scenario}.toml"
        remedy = (
            f"{did_you_mean(scenario, names())} `fairq run --list` says what each is; or give a .toml file"
        )
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
    """A scenario of ready values; ``where`` is named in errors, and ``--set`` for those in ``overridden``.

    ``UserError`` with all that is wrong, a line each; ``faults`` are those that are known already.
    """
    checked = Checked(values, where, overridden)
    if found := [*faults, *checked.faults]:
        raise all_of(found)
    scenario = Scenario(**checked.values)
    _check_together(where, scenario)
    return scenario


def _check_together(where: str, scenario: Scenario) -> None:
    """What the bounds of single settings cannot say."""
    try:
        scenario.shape.senders(scenario.senders)
    except ValueError as error:
        raise UserError(f"{where}: {error}", "change senders, or the settings of the network") from None
    if scenario.traffic == INCAST and not scenario.elephants and not scenario.mice_per_sender:
        raise UserError(f"{where}: there is nothing to send", "raise elephants or mice_per_sender")
    if scenario.traffic == FLOOD and (scenario.senders < 2 or not scenario.elephants):
        raise UserError(
            f"{where}: a flood needs elephants, and a sender besides the one that floods",
            "give senders at least 2 and elephants at least 1",
        )
    if scenario.traffic in (DEADLINES, FANIN):
        sizes, deadlines = len(scenario.sizes_bytes), len(scenario.deadlines_s)
        if sizes != deadlines:
            raise UserError(
                f"{where}: sizes_bytes has {sizes} entries and deadlines_s {deadlines}",
                "give one deadline for each size, 0 where there is none",
            )


def _read_overrides(overrides: Mapping[str, str]) -> tuple[dict[str, Any], list[UserError]]:
    """The values of ``--set NAME=TEXT``, as TOML reads them (a bare word is a text), and what is wrong."""
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

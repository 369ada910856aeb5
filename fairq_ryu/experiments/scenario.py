"""Scenarios: read from small data files, checked as a whole, and refused in one line when something is
wrong.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import (
    DEADLINES,
    FANIN,
    FLOOD,
    INCAST,
    TOPOLOGIES,
    Scenario,
    belongs,
    type_of,
)

__all__ = ["STORED", "TOPOLOGIES", "Scenario", "build", "load", "names", "type_of"]

STORED = Path(__file__).parent / "scenarios"


def names() -> list[str]:
    """The scenarios that come with the project."""
    return sorted(path.stem for path in STORED.glob("*.toml"))


def load(scenario: str, overrides: Mapping[str, str] | None = None) -> Scenario:
    """Read a stored scenario by name, or any ``.toml`` by path; ``overrides`` such as ``{"rounds": "20"}``.

    ``UserError`` when it does not exist, is no TOML, or has an unknown, missing or wrong setting.
    """
    if scenario.endswith(".toml") or "/" in scenario:
        path, remedy = Path(scenario), "give the path of a .toml file, or a name: " + ", ".join(names())
    else:
        path, remedy = STORED / f"{scenario}.toml", "choose one of: " + ", ".join(names())
    try:
        with path.open("rb") as file:
            values: dict[str, Any] = tomllib.load(file)
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(f"there is no scenario {scenario!r}", remedy) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "check its permissions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}", "mend that line") from None
    for key, text in (overrides or {}).items():
        values[key] = _read_override(key, text)
    return build(values, where=path.name)


def build(values: Mapping[str, Any], where: str = "scenario") -> Scenario:
    """A scenario of ready values; ``where`` is named in errors. ``UserError`` on the first fault."""
    known = {each.name: each for each in fields(Scenario)}
    for key in values:
        if key not in known:
            raise UserError(f"{where}: unknown setting {key!r}", "choose from " + ", ".join(known))
    given = dict(values)
    for key in ("topology", "traffic"):  # they say which settings there are
        if key in given:
            _checked(where, known[key], given[key])
    traffic = given.get("traffic", known["traffic"].metadata["default"])
    for key, each in known.items():
        default = each.metadata["default"]
        if not belongs(each, given.get("topology"), traffic):
            if key in given:
                raise _stray(where, each, given, traffic)
        elif key not in given and default is None:
            raise UserError(f"{where}: setting {key!r} is missing", f"add it: {each.metadata['help']}")
        else:
            given.setdefault(key, default)
    scenario = Scenario(**{key: _checked(where, known[key], value) for key, value in given.items()})
    _check_together(where, scenario)
    return scenario


def _stray(where: str, each: Any, given: Mapping[str, Any], traffic: object) -> UserError:
    """A setting that neither topology nor traffic has."""
    for kind, allowed, chosen in (
        ("topology", each.metadata["topologies"], given.get("topology")),
        ("traffic", each.metadata["traffics"], traffic),
    ):
        if allowed is not None and chosen not in allowed:
            return UserError(
                f"{where}: {kind} {chosen!r} has no setting {each.name!r}",
                f"take it out, or choose a {kind} that has it: {', '.join(allowed)}",
            )
    raise AssertionError(each.name)


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


def _read_override(key: str, text: str) -> Any:
    """The value of ``--set key=text``: as TOML reads it, and a bare word is a string."""
    if not text:
        raise UserError(f"--set {key}: no value", f"write --set {key}=VALUE")
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return read["value"] if len(read) == 1 else text


def _checked(where: str, each: Any, value: Any) -> Any:
    """The value in the setting's type, or ``UserError``."""
    limits = each.metadata
    wrong = f"{where}: {each.name} is {value!r}"
    kind = type_of(each)
    if kind == "str":
        if not isinstance(value, str) or not value:
            raise UserError(f"{wrong}, must be a text", limits["help"])
        if limits["choices"] and value not in limits["choices"]:
            raise UserError(f"{wrong}, which is unknown", "choose one of: " + ", ".join(limits["choices"]))
        return value
    if kind == "bool":
        value = {"yes": True, "no": False}.get(value, value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise UserError(f"{wrong}, must be yes or no", limits["help"])
        return value
    if kind.startswith("tuple"):
        if not isinstance(value, (list, tuple)) or not value:
            raise UserError(f"{wrong}, must be a list such as [1, 2]", limits["help"])
        return tuple(_number(where, each, "int" in kind, member) for member in value)
    return _number(where, each, kind == "int", value)


def _number(where: str, each: Any, whole: bool, value: Any) -> int | float:
    """A number within the setting's bounds, or ``UserError``."""
    limits = each.metadata
    unit = f" {limits['unit']}" if limits["unit"] else ""
    wrong = f"{where}: {each.name} is {value!r}"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise UserError(f"{wrong}, must be a {'whole ' if whole else ''}number{unit}", limits["help"])
    if not limits["low"] <= value <= limits["high"]:  # false for NaN too
        raise UserError(
            f"{wrong}, out of bounds", f"{limits['low']:,} to {limits['high']:,}{unit} ({limits['help']})"
        )
    return value if whole else float(value)

"""Checks values against the settings of a scenario. Reports all errors, each on one line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, fields
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario, belongs, type_of
from fairq_ryu.experiments.workloads.registry import WORKLOADS
from fairq_ryu.setting import did_you_mean

COMMON: Mapping[str, Field[Any]] = {each.name: each for each in fields(Scenario)}
"""The settings that all workloads have, by name."""
KNOWN: Mapping[str, Field[Any]] = dict(COMMON) | {
    each.name: each for workload in WORKLOADS.values() for each in fields(workload.scenario)
}
"""The settings of all workloads, by name."""
_SELECTORS = ("topology", "traffic")


def workloads_with(name: str) -> tuple[str, ...]:
    """The workloads that have this setting."""
    return tuple(
        workload.name
        for workload in WORKLOADS.values()
        if name in {each.name for each in fields(workload.scenario)}
    )


class Checked:
    """Checked values, with defaults for those that were left out, and the errors that were found.

    ``where``: the file, for the error messages; ``overridden``: the names whose values come from ``--set``.
    """

    def __init__(self, given: Mapping[str, Any], where: str, overridden: Collection[str] = ()) -> None:
        self._where = where
        self._overridden = overridden
        self.values: dict[str, Any] = {}
        """in the types of the settings; complete when there are no faults"""
        self.faults: list[UserError] = []
        for name in given:
            if name not in KNOWN:
                self._fault(name, f"unknown setting {name!r}", did_you_mean(name, KNOWN))
        for name in _SELECTORS:  # these determine which settings there are
            self._take(KNOWN[name], given)
        own = self._own_settings()
        for name, each in KNOWN.items():
            if name in _SELECTORS:
                continue
            if name in own and belongs(own[name], self.values.get("topology")):
                self._take(own[name], given)
            elif name in given:
                self._refuse(each)

    def _own_settings(self) -> Mapping[str, Field[Any]]:
        """The settings of the chosen workload; those of all workloads when it is unknown."""
        if "traffic" not in self.values:
            return COMMON
        return {each.name: each for each in fields(WORKLOADS[self.values["traffic"]].scenario)}

    def _take(self, each: Field[Any], given: Mapping[str, Any]) -> None:
        if each.name in given:
            self._check(each, given[each.name])
        elif each.metadata["default"] is not None:
            self.values[each.name] = each.metadata["default"]
        else:
            self._fault(each.name, f"setting {each.name!r} is missing", f"add {self._example(each)}")

    def _refuse(self, each: Field[Any]) -> None:
        """A setting that the topology or the traffic does not have. If these are unknown, it is not an
        error.
        """
        owners = {"topology": each.metadata["topologies"], "traffic": workloads_with(each.name)}
        for selector, allowed in owners.items():
            chosen = self.values.get(selector)
            if chosen is not None and allowed is not None and chosen not in allowed:
                self._fault(
                    each.name,
                    f"{selector} {chosen!r} has no setting {each.name!r}",
                    f"remove it, or choose a {selector} that has it: {', '.join(allowed)}",
                )
                return

    def _check(self, each: Field[Any], value: Any) -> None:
        try:
            self.values[each.name] = _reader(each)(each, value)
        except ValueError as error:
            remedy = f"write a plain {_plain(each)}, for example {self._example(each)}"
            if choices := _choices(each):
                remedy = did_you_mean(str(value), choices)
            self._fault(each.name, f"{each.name} is {_short(value)}, {error}", remedy)

    def _example(self, each: Field[Any]) -> str:
        """An example of the setting in the file or after --set, with its meaning."""
        written = _written(each.metadata["example"])
        how = f"--set {each.name}={written}" if each.name in self._overridden else f"{each.name} = {written}"
        return f"{how} ({each.metadata['help']})"

    def _fault(self, name: str, message: str, remedy: str) -> None:
        place = "--set" if name in self._overridden else self._where
        self.faults.append(UserError(f"{place}: {message}", remedy))


def _reader(each: Field[Any]) -> Callable[[Field[Any], Any], Any]:
    kind = type_of(each)
    readers = {"str": _text, "bool": _yes_or_no, "int": _number, "float": _number}
    return _list if kind.startswith("tuple") else readers[kind]


def _choices(each: Field[Any]) -> Collection[str] | None:
    return WORKLOADS if each.name == "traffic" else each.metadata["choices"]


def _text(each: Field[Any], value: Any) -> str:
    if not isinstance(value, str) or not (value or each.metadata["default"] == ""):
        raise ValueError("must be a text")
    choices = _choices(each)
    if choices and value not in choices:
        raise ValueError("which is unknown")
    return value


def _yes_or_no(_each: Field[Any], value: Any) -> bool:
    value = {"yes": True, "no": False}.get(value, value) if isinstance(value, str) else value
    if not isinstance(value, bool):
        raise ValueError("must be yes or no")
    return value


def _list(each: Field[Any], value: Any) -> tuple[int | float | str, ...]:
    # A list that has no members if it is left out may be given so.
    if not isinstance(value, list | tuple) or (not value and each.metadata["default"] != ()):
        raise ValueError(f"must be a {_plain(each)}")
    if "str" in type_of(each):
        return tuple(_text(each, member) for member in value)
    return tuple(_number(each, member, "member ") for member in value)


def _number(each: Field[Any], value: Any, what: str = "") -> int | float:
    """A number within the setting's bounds, both of which are allowed."""
    limits = each.metadata
    whole = "int" in type_of(each)
    unit = f" in {limits['unit']}" if limits["unit"] else ""
    which = f"and its {what}{_short(value)} " if what else ""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"{which}must be a {'whole ' if whole else ''}number{unit}")
    if not limits["low"] <= value <= limits["high"]:  # false for NaN too
        raise ValueError(f"{which}must be from {limits['low']:,} to {limits['high']:,}{unit}")
    return value if whole else float(value)


def _plain(each: Field[Any]) -> str:
    """The type of the setting's value as text."""
    kind = type_of(each)
    words = {"str": "text", "bool": "yes or no", "int": "whole number", "float": "number"}
    members = "texts" if "str" in kind else "whole numbers" if "int" in kind else "numbers"
    return words.get(kind) or f"list of {members}"


def _written(value: Any) -> str:
    """A value in TOML syntax."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."

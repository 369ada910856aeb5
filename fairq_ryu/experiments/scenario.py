"""What a scenario may say: every setting with its type, unit and bounds, in one list, and nothing else."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fairq_ryu.errors import UserError
from mininet_topos import shapes

STORED = Path(__file__).parent / "scenarios"


def _setting(
    help: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    topologies: tuple[str, ...] | None = None,
) -> Any:
    """A field of a scenario; ``low`` and ``high`` are both allowed values.

    With ``topologies`` it is a setting of these only: required there, refused elsewhere, and then None here.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "low": low,
        "high": high,
        "choices": choices,
        "topologies": topologies,
    }
    return field(metadata=metadata) if topologies is None else field(metadata=metadata, default=None)


def _incast(scenario: Scenario) -> shapes.Shape:
    return shapes.Incast(scenario.senders)


def _dumbbell(scenario: Scenario) -> shapes.Shape:
    return shapes.Dumbbell(scenario.senders, right=1)


def _leaf_spine(scenario: Scenario) -> shapes.Shape:
    assert scenario.leaves is not None
    assert scenario.spines is not None
    return shapes.LeafSpine.with_senders(scenario.leaves, scenario.spines, scenario.senders)


def _fat_tree(scenario: Scenario) -> shapes.Shape:
    assert scenario.k is not None
    return shapes.FatTree(scenario.k)


TOPOLOGIES: dict[str, Callable[[Scenario], shapes.Shape]] = {
    "incast": _incast,
    "dumbbell": _dumbbell,
    "leafspine": _leaf_spine,
    "fattree": _fat_tree,
}
"""What a scenario may name as its topology, and the shape that it then has."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One experiment. Read with `load`; every setting must be given that its topology has."""

    title: str = _setting("one line for tables and pictures")
    topology: str = _setting("which network", choices=tuple(TOPOLOGIES))
    leaves: int | None = _setting(
        "leaf switches; the receiver is at the last",
        low=shapes.LEAVES[0],
        high=shapes.LEAVES[1],
        topologies=("leafspine",),
    )
    spines: int | None = _setting(
        "spine switches", low=shapes.SPINES[0], high=shapes.SPINES[1], topologies=("leafspine",)
    )
    k: int | None = _setting(
        "pods, an even number; the receiver is in the last",
        low=shapes.PODS[0],
        high=shapes.PODS[1],
        topologies=("fattree",),
    )
    uplink_mbit: float | None = _setting(
        "rate of each link between switches, with the bottleneck's buffer; 0: as fast as it goes",
        unit="Mbit/s",
        low=0,
        high=100_000,
        topologies=("leafspine", "fattree"),
    )
    senders: int = _setting("sending hosts", low=1, high=250)
    rate_mbit: float = _setting("rate of the bottleneck port", unit="Mbit/s", low=1, high=100_000)
    buffer_bytes: int = _setting("buffer of the bottleneck port", unit="bytes", low=1514, high=1 << 30)
    cc: str = _setting("congestion control of every host, as the kernel names it")
    elephants: int = _setting("long-lived bulk flows, one a sender in turn", low=0, high=1000)
    mice_per_sender: int = _setting("new connections a sender answers in each round", low=0, high=1000)
    mice_bytes: int = _setting("bytes that each mouse brings", unit="bytes", low=1, high=100_000_000)
    rounds: int = _setting("volleys of mice, each opened at once", low=1, high=100_000)
    round_interval_s: float = _setting(
        "from the start of one volley to the next, more when the volley takes longer",
        unit="s",
        low=0,
        high=3600,
    )
    round_timeout_s: float = _setting("after this a mouse is unfinished", unit="s", low=0.1, high=3600)
    warmup_s: float = _setting(
        "elephants run this long before anything is measured", unit="s", low=0, high=3600
    )
    elephants_only_s: float = _setting(
        "measured phase without mice; 0 leaves it out", unit="s", low=0, high=3600
    )
    seed: int = _setting("of everything that is random here", low=0, high=(1 << 31) - 1)

    @property
    def shape(self) -> shapes.Shape:
        """Who sends, who receives, and where the bottleneck is."""
        return TOPOLOGIES[self.topology](self)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting that its topology has, as `build` takes it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if _belongs(each, self.topology)}

    @property
    def mice(self) -> int:
        """Mice of the whole run."""
        return self.senders * self.mice_per_sender * self.rounds

    @property
    def expected_s(self) -> float:
        """About how long one policy's traffic takes, s."""
        return self.warmup_s + self.elephants_only_s + self.rounds * self.round_interval_s


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
    if "topology" in values:  # it says which settings there are
        _checked(where, known["topology"], values["topology"])
    for key, each in known.items():
        belongs = _belongs(each, values.get("topology"))
        if belongs and key not in values:
            raise UserError(f"{where}: setting {key!r} is missing", f"add it: {each.metadata['help']}")
        if not belongs and key in values:
            raise UserError(
                f"{where}: topology {values['topology']!r} has no setting {key!r}",
                f"take it out, or choose a topology that has it: {', '.join(each.metadata['topologies'])}",
            )
    scenario = Scenario(**{key: _checked(where, known[key], value) for key, value in values.items()})
    try:
        scenario.shape.senders(scenario.senders)
    except ValueError as error:
        raise UserError(f"{where}: {error}", "change senders, or the settings of the network") from None
    if not scenario.elephants and not scenario.mice_per_sender:
        raise UserError(f"{where}: there is nothing to send", "raise elephants or mice_per_sender")
    return scenario


def type_of(each: Any) -> str:
    """The type of a field's value when it is given: ``str``, ``int`` or ``float``."""
    return str(each.type).removesuffix(" | None")


def _belongs(each: Any, topology: object) -> bool:
    """Whether a topology has this setting; as long as it is not known, it has those that all have."""
    return each.metadata["topologies"] is None or topology in each.metadata["topologies"]


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
    unit = f" {limits['unit']}" if limits["unit"] else ""
    wrong = f"{where}: {each.name} is {value!r}"
    kind = type_of(each)
    if kind == "str":
        if not isinstance(value, str) or not value:
            raise UserError(f"{wrong}, must be a text", limits["help"])
        if limits["choices"] and value not in limits["choices"]:
            raise UserError(f"{wrong}, which is unknown", "choose one of: " + ", ".join(limits["choices"]))
        return value
    whole = kind == "int"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise UserError(f"{wrong}, must be a {'whole ' if whole else ''}number{unit}", limits["help"])
    if not limits["low"] <= value <= limits["high"]:  # false for NaN too
        raise UserError(
            f"{wrong}, out of bounds", f"{limits['low']:,} to {limits['high']:,}{unit} ({limits['help']})"
        )
    return value if whole else float(value)

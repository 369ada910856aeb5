"""What ``--policy`` names: policies and baselines, each with settings of its own in brackets.

    droptail,fairq,fairq[alpha=0.5,base_rtt=0.002],kernel-red[gentle=no]

The settings are those that the policy uses, of its section and of those that policies share, and are checked
as a configuration file is. So several variants of a policy can be compared in one run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairq_ryu.config import loader
from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import settings_of
from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments import baselines
from fairq_ryu.experiments.baselines import Baseline
from fairq_ryu.policies import choice
from fairq_ryu.setting import Value, did_you_mean, read_value, value_text

_FORM = re.compile(r"(?P<base>[^\[\]]*?)\s*(?:\[(?P<settings>[^\[\]]*)\])?")
_EXAMPLE = "write for example fairq[alpha=0.5]"


def directory_of(name: str) -> str:
    """The name of a variant as that of a directory, for logs: without characters that shells interpret."""
    return re.sub(r"[^\w.,=+-]+", "-", name).strip("-")


@dataclass(frozen=True)
class Variant:
    """A policy of a run."""

    name: str
    """as it was typed, with its brackets"""
    base: str
    """the policy or baseline in front of them"""
    settings: Mapping[str, Value] = field(default_factory=dict)
    """those of the baseline, overridden by those in the brackets; in the types of the settings of `section`
    """

    @property
    def baseline(self) -> Baseline:
        """What the base changes beside the policy."""
        return baselines.of(self.base)

    @property
    def section(self) -> str:
        """The policy whose settings it may change, or the section of the configuration."""
        found = self.baseline
        return found.policy if found.qdisc is None else found.qdisc.law

    @property
    def written(self) -> dict[str, dict[str, Value]]:
        """Its settings by the section in which each is written."""
        there = settings_of(self.section)
        found: dict[str, dict[str, Value]] = {}
        for name, value in self.settings.items():
            found.setdefault(there[name].section, {})[name] = value
        return found

    @property
    def directory(self) -> str:
        """The name as that of a directory, for logs."""
        return directory_of(self.name)

    def applied(self, config: Config) -> Config:
        """The configuration with its settings. ``UserError`` when they do not fit the rest of it."""
        return config.changed(self.section, self.settings) if self.settings else config

    def write(self, directory: Path) -> Path | None:
        """Write its settings as a configuration file into a directory; None: it has none."""
        if not self.settings:
            return None
        lines: list[str] = []
        for section, values in self.written.items():
            lines += f"[{section}]", *(f"{name} = {value_text(value)}" for name, value in values.items())
        path = directory / "variant.conf"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path


def split(text: str) -> list[str]:
    """The parts of a list between commas, without those that are empty; commas within brackets separate
    nothing.
    """
    parts = re.findall(r"(?:\[[^\]]*(?:\]|$)|[^,\[])+", text)
    return [part.strip() for part in parts if part.strip()]


def read(
    names: Sequence[str], known: Collection[str], config_file: Path | None = None
) -> tuple[Variant, ...]:
    """The variants of these names, of which each has a base that is ``known``; their settings must fit the
    rest of ``config_file``. ``UserError`` with all faults: of unknown policies and settings, wrong values,
    the same variant twice, or none at all.
    """
    if not names:
        raise UserError("no policy given", "name one or more of: " + ", ".join(known))
    config = loader.load([] if config_file is None else [config_file])
    found: list[Variant] = []
    faults: list[UserError] = []
    for name in names:
        try:
            variant = _variant(name, known)
            _check(variant, config)
        except UserError as error:
            faults += error.faults
            continue
        twice = next((e for e in found if (e.base, e.settings) == (variant.base, variant.settings)), None)
        if twice is not None:
            same = f"policy {name!r} is named twice"
            faults.append(
                UserError(
                    same if twice.name == name else f"{same}, before as {twice.name!r}", "name each once"
                )
            )
        found.append(variant)
    if faults:
        raise all_of(faults)
    return tuple(found)


def _variant(name: str, known: Collection[str]) -> Variant:
    """Read a name. ``UserError`` with all faults."""
    matched = _FORM.fullmatch(name)
    if matched is None:
        raise UserError(f"policy {name!r} is not NAME or NAME[SETTING=VALUE,...]", _EXAMPLE)
    base, inside = matched["base"], matched["settings"]
    if base not in known:
        raise UserError(f"there is no policy {base!r}", did_you_mean(base, known))
    plain = Variant(name, base, baselines.of(base).parameters)
    if inside is None:
        return plain
    there = settings_of(plain.section)
    if not there:
        raise UserError(f"--policy {name}: {base} has no settings", "write it without brackets")
    settings: dict[str, Value] = {}
    faults: list[UserError] = []
    where = f"--policy {name}"
    for part in split(inside):
        key, sign, text = (each.strip() for each in part.partition("="))
        if not sign or not key or not text:
            faults.append(UserError(f"{where}: {part!r} is not SETTING=VALUE", _EXAMPLE))
        elif key in settings:
            faults.append(UserError(f"{where}: {key} is set twice", "set it once"))
        else:
            try:
                settings[key] = read_value(where, there, plain.section, key, text)
            except UserError as error:
                faults.append(error)
    if not settings and not faults:
        faults.append(UserError(f"{where}: nothing is set", f"{_EXAMPLE}; known are {', '.join(there)}"))
    if faults:
        raise all_of(faults)
    return Variant(name, base, {**plain.settings, **settings})


def _check(variant: Variant, config: Config) -> None:
    """``UserError`` when the settings contradict each other or the rest of the configuration."""
    if not variant.settings:
        return
    try:
        choice.make(variant.section, variant.applied(config))
    except UserError as error:
        raise UserError(f"--policy {variant.name}: {error.message}", error.remedy) from None

"""Every setting of fairq_ryu: one list, with type, unit, default and bounds.

The file is the one that ``ryu-manager --config-file`` reads (INI, as oslo.config has it); our
sections stand beside Ryu's own ``[DEFAULT]``. Unknown keys and values out of bounds are refused with
one line that says where; nothing is guessed.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fairq_ryu.errors import UserError

Value = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``minimum`` and ``maximum`` are inclusive; ``choices`` limits a text."""

    section: str
    name: str
    default: Value
    unit: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def type_name(self) -> str:
        """The type in words."""
        return {int: "whole number", float: "number", bool: "yes or no", str: "text"}[type(self.default)]

    def parse(self, text: str) -> Value:
        """The value of ``text``. Raises ValueError, saying what is wrong with it."""
        text = text.strip()
        value: Value
        if isinstance(self.default, bool):
            words = {"true": True, "yes": True, "on": True, "1": True}
            words |= {"false": False, "no": False, "off": False, "0": False}
            if text.lower() not in words:
                raise ValueError(f"{text!r} is not yes or no")
            return words[text.lower()]
        if isinstance(self.default, str):
            if self.choices and text not in self.choices:
                raise ValueError(f"{text!r} is none of {', '.join(self.choices)}")
            return text
        try:
            value = int(text) if isinstance(self.default, int) else float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a {self.type_name}") from None
        if value != value or (self.minimum is not None and value < self.minimum):
            raise ValueError(f"{text} is less than {self.minimum:g} {self.unit}".rstrip())
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{text} is more than {self.maximum:g} {self.unit}".rstrip())
        return value


SETTINGS: tuple[Setting, ...] = (
    # The controller, whatever its policy.
    Setting("fairq_ryu", "lease", 2, "s", "How long a window rule stands without being renewed.", 1, 60),
    Setting(
        "fairq_ryu",
        "flow_idle_timeout",
        60.0,
        "s",
        "A flow whose packets its switch has not seen for this long leaves the flow table.",
        1,
        86400,
    ),
    Setting(
        "fairq_ryu",
        "flow_poll_interval",
        1.0,
        "s",
        "How often the switches' flow records are compared with the controller's flow table.",
        0.1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "default_buffer",
        0,
        "bytes",
        "Buffer of ports whose queueing discipline does not say (0: leave such ports alone).",
        0,
        1 << 31,
    ),
    Setting(
        "fairq_ryu",
        "packet_in_rate",
        10000,
        "packets/s",
        "At most so many packets are copied to the controller by a bridge that has meters (0: no limit).",
        0,
        10_000_000,
    ),
    Setting(
        "fairq_ryu",
        "host_idle_timeout",
        300,
        "s",
        "A host that sends nothing for this long is forgotten; it is learnt again with its next packet.",
        10,
        65535,
    ),
    Setting(
        "fairq_ryu",
        "syn",
        "copy",
        "",
        "copy: a SYN goes on while its copy is handled; hold: it goes on once path and windows stand.",
        choices=("copy", "hold"),
    ),
    Setting(
        "fairq_ryu",
        "hold_lease",
        3,
        "s",
        "With syn = hold: new connections pass unheld once the controller has been gone for this long.",
        1,
        60,
    ),
    Setting(
        "fairq_ryu",
        "path_choice",
        "hash",
        "",
        "Which shortest path a new flow gets: hash (of addresses and ports), or least-loaded (fewest flows).",
        choices=("hash", "least-loaded"),
    ),
    Setting(
        "fairq_ryu",
        "discovery_time",
        1.5,
        "s",
        "A port that no switch has shown itself at for this long is a host's.",
        0.1,
        60,
    ),
    # FairQ.
    Setting("fairq", "interval", 0.002, "s", "T: how often the queue is read.", 0.0005, 10),
    Setting("fairq", "increments", 8, "", "M: the window moves once in so many readings.", 1, 1000),
    Setting("fairq", "alpha", 0.25, "", "Target queue as a fraction of the buffer.", 0.01, 1),
    Setting("fairq", "slow_start", True, "", "Open the window fast until the queue first meets the target."),
    Setting(
        "fairq",
        "base_rtt",
        0.001,
        "s",
        "Round-trip time with empty queues; the pool never exceeds the buffer plus this times the rate.",
        0,
        10,
    ),
    Setting(
        "fairq",
        "linger",
        2.0,
        "s",
        "A port that has had no flows for this long loses its windows.",
        0,
        3600,
    ),
    Setting(
        "fairq",
        "floor_segments",
        2,
        "segments",
        "Windows are not pressed below this, as long as the buffer holds them all.",
        1,
        10,
    ),
    # Fixed.
    Setting("fixed", "pool", 100000, "bytes", "The pool that the flows of a port share.", 1, 1 << 31),
    Setting(
        "fixed",
        "interval",
        0.1,
        "s",
        "How often the queue is read, to see whether there are flows.",
        0.0005,
        10,
    ),
    # The agent.
    Setting("agent", "flows", 65536, "", "Connections remembered per bridge.", 64, 16_777_216),
    Setting("agent", "rules", 4096, "", "Rules for single flows per bridge.", 1, 1_048_576),
    Setting("agent", "ports", 512, "", "Ports per bridge.", 1, 65279),
    Setting(
        "agent",
        "active_timeout",
        0.2,
        "s",
        "A flow that has sent no data for this long takes no share of the pool.",
        0.008,
        60,
    ),
    Setting(
        "agent",
        "flow_idle_timeout",
        300.0,
        "s",
        "A silent flow is forgotten after this; its window scale with it.",
        1,
        86400,
    ),
    Setting("agent", "closed_timeout", 2.0, "s", "A closed flow is forgotten after this.", 0.1, 3600),
    Setting(
        "agent",
        "congestion_gap",
        0.002,
        "s",
        "Controllers are told of a port's congestion at most once in this time; the last state always.",
        0,
        10,
    ),
    Setting(
        "agent",
        "drop_rate",
        20000,
        "packets/s",
        "At most so many dropped packets are handed to controllers that asked for them.",
        1,
        1_000_000,
    ),
    Setting(
        "agent", "reconnect_max", 8.0, "s", "Longest pause between attempts to reach a controller.", 0.1, 300
    ),
)

SECTIONS: Mapping[str, Mapping[str, Setting]] = MappingProxyType(
    {
        section: MappingProxyType({s.name: s for s in SETTINGS if s.section == section})
        for section in dict.fromkeys(s.section for s in SETTINGS)
    }
)


class Config:
    """The settings in force. Frozen; ``config.value("fairq", "alpha")`` or ``config.section("fairq")``."""

    def __init__(self, values: Mapping[tuple[str, str], Value] | None = None) -> None:
        given = dict(values or {})
        self._values: dict[tuple[str, str], Value] = {
            (s.section, s.name): given.pop((s.section, s.name), s.default) for s in SETTINGS
        }
        if given:
            raise KeyError(f"no such settings: {sorted(given)}")

    def value(self, section: str, name: str) -> Value:
        """One setting. KeyError if there is no such."""
        return self._values[section, name]

    def number(self, section: str, name: str) -> float:
        """One setting that is a number."""
        value = self._values[section, name]
        assert not isinstance(value, str)
        return float(value)

    def section(self, section: str) -> dict[str, Value]:
        """All settings of a section, by name."""
        return {name: value for (where, name), value in self._values.items() if where == section}

    def as_dict(self) -> dict[str, dict[str, Value]]:
        """Everything, by section and name."""
        return {section: self.section(section) for section in SECTIONS}


def load(paths: Iterable[str | Path]) -> Config:
    """Read files in order, later ones winning. Raises :class:`UserError` naming the first thing wrong.

    Sections that are not ours (``[DEFAULT]``, Ryu's and other applications') are passed over.
    """
    values: dict[tuple[str, str], Value] = {}
    for path in paths:
        values.update(_read(Path(path)))
    config = Config(values)
    _check_together(config)
    return config


def _check_together(config: Config) -> None:
    """What single bounds cannot say. Raises :class:`UserError`."""
    lease = config.number("fairq_ryu", "lease")
    for section in SECTIONS:
        interval = config.section(section).get("interval")
        if isinstance(interval, float) and interval > lease / 4:
            raise UserError(
                f"[{section}] interval = {interval:g} s is too long for [fairq_ryu] lease = {lease:g} s: "
                "rules would end before they are renewed",
                "make the interval at most a quarter of the lease",
            )


def _read(path: Path) -> dict[tuple[str, str], Value]:
    # No interpolation and no DEFAULT section: what oslo.config puts there is not ours.
    parser = configparser.ConfigParser(
        interpolation=None, default_section="\0", strict=True, comment_prefixes=("#", ";")
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read {path}: {reason}", "check the path and its permissions") from None
    try:
        parser.read_string(text, str(path))
    except configparser.Error as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path}: {first}", "write it as [section] and name = value lines") from None
    values: dict[tuple[str, str], Value] = {}
    for section in parser.sections():
        known = SECTIONS.get(section)
        if known is None:
            close = _closest(section, SECTIONS)
            if close:
                raise UserError(f"{path}: unknown section [{section}]", f"did you mean [{close}]?")
            continue
        for name, text in parser.items(section, raw=True):
            setting = known.get(name)
            if setting is None:
                close = _closest(name, known)
                remedy = f"did you mean {close}?" if close else f"known are {', '.join(known)}"
                raise UserError(f"{path}: [{section}] has no setting {name}", remedy)
            try:
                values[section, name] = setting.parse(text)
            except ValueError as error:
                unit = f", in {setting.unit}" if setting.unit else ""
                raise UserError(
                    f"{path}: [{section}] {name}: {error}",
                    f"give a {setting.type_name}{unit}; the default is {setting.default}",
                ) from None
    return values


def _closest(name: str, known: Iterable[str]) -> str | None:
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None

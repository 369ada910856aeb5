"""What a setting is: a name in a section, with type, unit, default and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

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


def read_value(where: str, known: Mapping[str, Setting], section: str, name: str, text: str) -> Value:
    """The value of a line of a section. Raises :class:`UserError`, naming the file ``where`` it stands."""
    setting = known.get(name)
    if setting is None:
        close = closest(name, known)
        remedy = f"did you mean {close}?" if close else f"known are {', '.join(known)}"
        raise UserError(f"{where}: [{section}] has no setting {name}", remedy)
    try:
        return setting.parse(text)
    except ValueError as error:
        unit = f", in {setting.unit}" if setting.unit else ""
        raise UserError(
            f"{where}: [{section}] {name}: {error}",
            f"give a {setting.type_name}{unit}; the default is {setting.default}",
        ) from None


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like ``name``, if any is."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None

"""A setting: a name in a section, with type, unit, default and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from fairq_ryu.errors import UserError

Value = int | float | bool | str
_EXAMPLES = {
    "bytes": " and without a unit, for example 12000000 for 12 MB",
    "s": " and without a unit, for example 0.3 for 300 ms",
}


def value_text(value: object) -> str:
    """A value as a user writes it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``minimum`` and ``maximum`` are inclusive; ``choices`` limits a text, and
    ``grammar`` raises :class:`UserError` for a wrong one.
    """

    section: str
    name: str
    default: Value
    unit: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    grammar: Callable[[str], object] | None = None

    @property
    def type_name(self) -> str:
        """The type, in words."""
        return {int: "whole number", float: "number", bool: "yes or no", str: "text"}[type(self.default)]

    def parse(self, text: str) -> Value:
        """The value of ``text``. Raises ValueError with the reason, or what `grammar` raises, if it is not
        valid.
        """
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
                raise ValueError(f"{text!r} is none of {', '.join(filter(None, self.choices))}")
            if self.grammar is not None:
                self.grammar(text)
            return text
        try:
            value = int(text) if isinstance(self.default, int) else float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a {self.type_name}") from None
        return self._within(value, text)

    def check(self, value: Value) -> Value:
        """The same for a value that has a type already. Raises ValueError with the reason."""
        if isinstance(self.default, str) and isinstance(value, str):
            return self.parse(value)
        if isinstance(self.default, bool) and isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer() and type(self.default) is int:
            value = int(value)  # JSON does not distinguish the two
        numbers = int if isinstance(self.default, int) else int | float
        if isinstance(self.default, str | bool) or isinstance(value, bool) or not isinstance(value, numbers):
            raise ValueError(f"{_short(value)} is not a {self.type_name}".replace("a yes or no", "yes or no"))
        try:
            return self._within(value if isinstance(self.default, int) else float(value), _short(value))
        except OverflowError:
            raise ValueError(f"{_short(value)} is too much") from None

    def _within(self, value: int | float, text: str) -> int | float:
        if value != value or (self.minimum is not None and value < self.minimum):
            raise ValueError(f"{text} is less than {self.minimum:g} {self.unit}".rstrip())
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{text} is more than {self.maximum:g} {self.unit}".rstrip())
        return value


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."


def read_value(where: str, known: Mapping[str, Setting], section: str, name: str, text: str) -> Value:
    """The value of a line of a section. Raises :class:`UserError`, which names the file ``where``."""
    setting = _known(where, known, section, name)
    try:
        return setting.parse(text)
    except (ValueError, UserError) as error:
        raise _wrong(where, setting, section, error) from None


def check_value(where: str, known: Mapping[str, Setting], section: str, name: str, value: Value) -> Value:
    """The same for a value that has a type already."""
    setting = _known(where, known, section, name)
    try:
        return setting.check(value)
    except (ValueError, UserError) as error:
        raise _wrong(where, setting, section, error) from None


def _known(where: str, known: Mapping[str, Setting], section: str, name: str) -> Setting:
    setting = known.get(name)
    if setting is None:
        shown = name if len(name) <= 60 else name[:60] + "..."
        raise UserError(f"{where}: [{section}] has no setting {shown}", did_you_mean(shown, known))
    return setting


def _wrong(where: str, setting: Setting, section: str, error: ValueError | UserError) -> UserError:
    if isinstance(error, UserError):
        return UserError(f"{where}: [{section}] {setting.name}: {error.message}", error.remedy)
    unit = f", in {setting.unit}" if setting.unit else ""
    # For 12MB or 300ms: how such a value is written here.
    example = _EXAMPLES.get(setting.unit, "") if "is not a" in str(error) else ""
    default = "empty" if setting.default == "" else setting.default
    return UserError(
        f"{where}: [{section}] {setting.name}: {error}",
        f"give a {setting.type_name}{unit}{example}; the default is {default}",
    )


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to ``name``, in whatever case; None if none is similar."""
    folded = {each.casefold(): each for each in known}
    found = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The remedy for an unknown name: the most similar known one, or else all of them."""
    known = list(known)
    close = closest(name, known)
    return f"did you mean {close}?" if close else f"known are {', '.join(known)}"

"""The axes of a sweep, as they are typed, and its points. Pure functions.

senders=1..128          1, 2, 4, ... 128
senders=10..100/30      10, 40, 70, 100
senders=4,8,16          these
flows=[5,10],[20]       for a setting that is a list, lists; a number alone is a list of one
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from fairq_ryu.errors import UserError, all_of
from fairq_ryu.experiments.checking import KNOWN
from fairq_ryu.experiments.settings import type_of
from fairq_ryu.experiments.variants import split
from fairq_ryu.setting import did_you_mean

MOST = 1000
"""Values of an axis."""
_RANGE = re.compile(r"(?P<first>[^./]+(?:\.\d+)?)\.\.(?P<last>[^./]+(?:\.\d+)?)(?:/(?P<step>.+))?")
_EXAMPLE = "write for example senders=1..128, senders=10..100/10 or senders=4,8,16"


@dataclass(frozen=True)
class Axis:
    """A setting of the scenario, and its values as texts."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """A value of each axis, by the name of the setting."""

    values: Mapping[str, str]

    @property
    def label(self) -> str:
        """For tables and messages."""
        return ", ".join(f"{name} = {value}" for name, value in self.values.items())

    @property
    def directory(self) -> str:
        """The name of its directory."""
        named = ",".join(f"{name}={value}" for name, value in self.values.items())
        return re.sub(r"[^\w.,=+-]+", "-", named)


def read(texts: Sequence[str]) -> tuple[Axis, ...]:
    """The axes of the words of a command line. ``UserError`` with all faults."""
    if not texts:
        raise UserError("nothing varies", _EXAMPLE)
    found: dict[str, Axis] = {}
    faults: list[UserError] = []
    for text in texts:
        try:
            axis = _axis(text)
        except UserError as error:
            faults.append(error)
            continue
        if axis.name in found:
            faults.append(UserError(f"{axis.name} varies twice", "give all its values at once"))
        found[axis.name] = axis
    if faults:
        raise all_of(faults)
    return tuple(found.values())


def points(axes: Sequence[Axis]) -> list[Point]:
    """All combinations of values; those of the last axis change first."""
    names = [axis.name for axis in axes]
    grid = itertools.product(*(axis.values for axis in axes))
    return [Point(dict(zip(names, values, strict=True))) for values in grid]


def number(text: str) -> float | None:
    """The value of a text that is a number; None for any other."""
    try:
        return float(text)
    except ValueError:
        return None


def _axis(text: str) -> Axis:
    name, sign, values = (part.strip() for part in text.partition("="))
    if not sign or not name or not values:
        raise UserError(f"{text!r} is not SETTING=VALUES", _EXAMPLE)
    if name not in KNOWN:
        raise UserError(f"unknown setting {name!r}", did_you_mean(name, KNOWN))
    if name in ("seed", "floor", "title", "topology", "traffic"):
        why = {
            "seed": "each repetition has its own seed: use --repeat",
            "floor": "a sweep does not measure the volleys alone",
        }
        raise UserError(f"{name} cannot vary", why.get(name, "choose another scenario"))
    found = _values(text, values)
    if type_of(KNOWN[name]).startswith("tuple"):
        found = [each if each.startswith("[") else f"[{each}]" for each in found]
    if len(set(found)) < len(found):
        raise UserError(f"{text!r} has a value twice", "give each once")
    return Axis(name, tuple(found))


def _values(text: str, values: str) -> list[str]:
    matched = _RANGE.fullmatch(values)
    if matched is None:
        return split(values)
    try:
        first, last = Decimal(matched["first"]), Decimal(matched["last"])
        step = None if matched["step"] is None else Decimal(matched["step"])
    except InvalidOperation:
        raise UserError(f"{text!r} is not a range of numbers", _EXAMPLE) from None
    if not (first.is_finite() and last.is_finite()) or last < first:
        raise UserError(f"{text!r}: the range ends before it begins", "give the lower number first")
    if step is None and first <= 0:
        raise UserError(f"{text!r}: {first} cannot be doubled", "give a step, as in 0..100/10")
    if step is not None and not (step.is_finite() and step > 0):
        raise UserError(f"{text!r}: the step is not above 0", "give one that is, as in 10..100/10")
    found: list[Decimal] = []
    value = first
    while value < last if step is None else value <= last:
        found.append(value)
        if len(found) > MOST:
            raise UserError(
                f"{text!r} has more than {MOST} values", "make the range shorter or the step longer"
            )
        value = 2 * value if step is None else value + step
    # The end of a range by doubling is a point, whether it is a power of 2 or not.
    return [_plain(each) for each in ([*found, last] if step is None else found)]


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"

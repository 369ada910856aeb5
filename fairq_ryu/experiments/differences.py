"""What differs between two runs: their scenarios, and the settings of controllers and agents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairq_ryu.setting import value_text

_MISSING = object()


def settings(one: Mapping[str, Any], other: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """A line for each setting that differs, with both values; ``where`` stands before the name."""
    for name in dict.fromkeys([*one, *other]):
        values = [each.get(name, _MISSING) for each in (one, other)]
        if all(isinstance(value, Mapping) for value in values):
            yield from settings(values[0], values[1], f"{where}[{name}] ")
        elif _plain(values[0]) != _plain(values[1]):
            yield f"{where}{name}: {_text(values[0])} and {_text(values[1])}"


def _plain(value: Any) -> Any:
    """JSON has no tuples."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    if value is _MISSING:
        return "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    text = value_text(value)
    return text if len(text) <= 60 else f"{text[:60]}..."

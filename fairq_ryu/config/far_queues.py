"""Section ``[far_queues]``: queues in the switch above, a line for each port by which their data arrives.

    eth0 = rate 10gbit buffer 1000000 share 0.98

Rates and sizes are written as tc(8) has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import (
    LEAST_BUFFER,
    LEAST_RATE,
    LEAST_SHARE,
    MOST_BUFFER,
    MOST_RATE,
    SHARE,
    FarQueue,
    far_name,
)

FAR_QUEUES = "far_queues"
_FORM = "write PORT = rate RATE buffer BYTES share PART, each of the three or none"
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)", re.I)
# Bits per second for a unit, and bytes: tc's decimal prefixes, and with an i the binary ones.
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_PREFIXES |= {f"{name}i": 2 ** (10 * power) for power, name in enumerate("kmgt", 1)}
_RATES = {f"{name}bit": size / 8 for name, size in _PREFIXES.items()}
_RATES |= {f"{name}bps": float(size) for name, size in _PREFIXES.items()}
# tc's sizes are all binary.
_SIZES = {"": 1, "b": 1}
_SIZES |= {f"{name}{b}": 2 ** (10 * power) for power, name in enumerate("kmg", 1) for b in ("", "b")}
T = TypeVar("T")


def read_far_queues(where: str, lines: Mapping[str, str]) -> tuple[FarQueue, ...]:
    """The far queues of the section. Raises :class:`UserError`."""
    named: dict[str, str] = {}
    for port in lines:
        name = far_name(port)
        other = named.setdefault(name, port)
        if other != port:
            raise UserError(
                f"{where}: [{FAR_QUEUES}] {port}: its far queue and that of {other} are both {name}",
                "rename one of the interfaces, or take out the line of the one that is on another machine",
            )
    return tuple(_read(f"{where}: [{FAR_QUEUES}] {port}", port, text) for port, text in lines.items())


def written(queue: FarQueue) -> str:
    """A far queue as its line has it, behind the equals sign."""
    rate = f"rate {8 * queue.rate}bit " if queue.rate else ""
    buffer = f"buffer {queue.buffer} " if queue.buffer else ""
    return f"{rate}{buffer}share {queue.share:g}"


def _read(where: str, port: str, text: str) -> FarQueue:
    if not is_interface(port):
        raise UserError(f"{where}: it is not the name of an interface", _FORM)
    words = text.split()
    named = dict(zip(words[::2], words[1::2], strict=False))
    for word in words[::2]:
        if word not in ("rate", "buffer", "share"):
            raise UserError(f"{where}: there is no {word!r} of a far queue", _FORM)
        if words[::2].count(word) > 1:
            raise UserError(f"{where}: {word} is there twice", "take one of them out")
    if len(words) % 2:
        raise UserError(f"{where}: {words[-1]} has no value", _FORM)
    return read_far_queue(where, port, named)


def read_far_queue(where: str, port: str, named: Mapping[str, str]) -> FarQueue:
    """The far queue of a port; ``named`` has ``rate``, ``buffer`` and ``share`` as tc writes them, each of
    the three or none. Raises :class:`UserError`; ``where`` begins its message.
    """
    return FarQueue(
        port,
        rate=_value(where, named, "rate", _rate, 0),
        buffer=_value(where, named, "buffer", _size, 0),
        share=_value(where, named, "share", _share, SHARE),
    )


def is_interface(name: str) -> bool:
    """Whether an interface may have this name."""
    return 0 < len(name.encode()) <= 15 and not re.search(r"[\s/*?\[]", name)


def _value(where: str, named: Mapping[str, str], name: str, read: Callable[[str], T], default: T) -> T:
    try:
        return read(named[name]) if name in named else default
    except ValueError as error:
        raise UserError(f"{where}: {name} {named[name]}: {error}", _EXAMPLES[name]) from None


_EXAMPLES = {
    "rate": "write it as tc does, for example 10gbit, from 1mbit to 800gbit",
    "buffer": f"write it as tc does, for example 1000000 or 1mb, from {LEAST_BUFFER} bytes to 1gb",
    "share": f"write a part of the rate, from {LEAST_SHARE} to 1",
}


def _rate(text: str) -> int:
    """Bytes per second. A number alone is in bits per second, as tc has it."""
    rate = _scaled(text, {"": 1 / 8, **_RATES}, "a rate")
    return _within(rate, LEAST_RATE, MOST_RATE)


def _size(text: str) -> int:
    return _within(_scaled(text, _SIZES, "a size"), LEAST_BUFFER, MOST_BUFFER)


def _share(text: str) -> float:
    share = float(text) if re.fullmatch(r"\d*\.?\d+", text) else 0.0
    if not LEAST_SHARE <= share <= 1:
        raise ValueError("it is not such a part")
    return share


def _scaled(text: str, units: Mapping[str, float], what: str) -> int:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise ValueError(f"it is not {what}")
    scaled = float(found[1]) * units[found[2].lower()]
    if scaled == math.inf:
        raise ValueError("it is too much")
    return round(scaled)


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise ValueError("it is too little" if value < least else "it is too much")
    return value

"""Counters of long flows, read at several moments, and what happened between two of them. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Counts = Mapping[str, Any]
"""``clock_ns``, and the ``bytes`` of each flow by its number as text; a flow that has none may be missing"""


def rates(before: Counts, after: Counts, numbers: Sequence[int]) -> list[float]:
    """Mbit/s of each flow between two counts."""
    elapsed = (after["clock_ns"] - before["clock_ns"]) / 1e9
    return [
        (after["bytes"].get(str(number), 0) - before["bytes"].get(str(number), 0)) * 8e-6 / elapsed
        for number in numbers
    ]


def more(
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
    counter: str,
    numbers: Sequence[int],
) -> int | None:
    """How much a counter of these flows' sockets has grown in all; None where the kernel has none."""
    values = [(after[str(number)][counter], before[str(number)][counter]) for number in numbers]
    return None if any(None in pair for pair in values) else sum(last - first for last, first in values)

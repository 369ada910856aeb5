"""Published distributions of flow sizes, and the sizes that a scenario draws from them. Reads the tables in
the folder ``sizes``; all else is pure.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKET_BYTES = 1460
"""The unit of the tables."""
_FOLDER = Path(__file__).parent / "sizes"

SOURCES: Mapping[str, str] = {
    "web-search": "DCTCP, SIGCOMM 2010",
    "data-mining": "VL2, SIGCOMM 2009",
}
"""The distributions by name, each with the paper that has measured it."""


@dataclass(frozen=True)
class Sizes:
    """A distribution of flow sizes, divided by ``divisor``; then what is above ``cap`` bytes becomes as
    large.

    Between two points, the distribution is a straight line.
    """

    points: tuple[tuple[float, float], ...]
    """sizes in bytes, and for each the share of the flows that are no larger: from 0 to 1, both rising"""
    divisor: float = 1.0
    cap: int = 0
    """0: none"""

    @property
    def steps(self) -> list[float]:
        """The sizes of the points, divided and capped, each once, in bytes."""
        return list(dict.fromkeys(self._limited(size / self.divisor) for size, _share in self.points))

    @property
    def mean(self) -> float:
        """Mean size, bytes."""
        total = 0.0
        for (low, below), (high, share) in itertools.pairwise(self.points):
            low, high, weight = low / self.divisor, high / self.divisor, share - below
            capped = self._limited(high)
            if capped <= low:
                total += weight * capped
            else:
                within = (capped - low) / (high - low)
                total += weight * (within * (low + capped) / 2 + (1 - within) * capped)
        return total

    def quantile(self, share: float) -> int:
        """The size, in whole bytes, that this share of the flows (0 to 1) does not exceed. ``ValueError``
        outside of that.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}, must be 0 to 1")
        (low, below), (high, reached) = next(
            each for each in itertools.pairwise(self.points) if share <= each[1][1] > each[0][1]
        )
        size = low + (high - low) * (share - below) / (reached - below)
        return round(self._limited(size / self.divisor))

    def _limited(self, size: float) -> float:
        return min(size, self.cap) if self.cap else size


def read(name: str, divisor: float = 1.0, cap: int = 0) -> Sizes:
    """The published distribution of this name, a key of `SOURCES`."""
    with (_FOLDER / f"{name}.csv").open(encoding="ascii") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        points = tuple((float(row["packets"]) * PACKET_BYTES, float(row["share"])) for row in rows)
    return Sizes(points, divisor, cap)

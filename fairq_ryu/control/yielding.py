"""Long readings in short steps, so that other greenlets, above all the control loop, run in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ryu.lib import hub

T = TypeVar("T")
# Rows that are made in one step: queues are read every 2 ms, which a list of a million flows must not delay.
ROWS_PER_STEP = 50
# Connections or entries that are only looked at in one step: this costs far less than a row.
LOOKS_PER_STEP = 500


def in_steps(rows: Iterable[T], per_step: int = ROWS_PER_STEP) -> Iterator[T]:
    """The same rows; other greenlets run after every ``per_step``."""
    for count, row in enumerate(rows, 1):
        yield row
        if count % per_step == 0:
            hub.sleep(0)

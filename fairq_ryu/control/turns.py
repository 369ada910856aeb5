"""Long readings in short turns, so that the control loop is not kept waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ryu.lib import hub

T = TypeVar("T")
# Queues are read every 2 ms, and whoever lists a million flows must not delay that: rows made in one turn.
ROWS_PER_TURN = 50
# Connections or entries looked at in one turn: a look costs far less than a row.
LOOKS_PER_TURN = 500


def in_turns(rows: Iterable[T], per_turn: int = ROWS_PER_TURN) -> Iterator[T]:
    """The same rows, with a turn for the rest of the controller after every ``per_turn``."""
    for count, row in enumerate(rows, 1):
        yield row
        if count % per_turn == 0:
            hub.sleep(0)

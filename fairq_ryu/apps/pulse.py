"""How late the control loop comes to its turn: what the controller's own load does to the windows."""

from __future__ import annotations

import time
from collections import deque

from ryu.lib import hub

# The pulse wants its turn so often, seconds, and the last so many turns count.
BEAT = 0.01
_TURNS = 500


class Pulse:
    """A greenlet that sleeps for a moment again and again, and notes by how much each sleep was too long."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=_TURNS)

    def run(self) -> None:
        """Beat for ever."""
        while True:
            wanted = time.monotonic() + BEAT
            hub.sleep(BEAT)
            self.note(time.monotonic() - wanted)

    def note(self, late: float) -> None:
        """A turn came so many seconds late."""
        self._late.append(max(0.0, late))

    def delay(self) -> float | None:
        """99 of 100 turns came no later than this, seconds; None before there were enough."""
        if len(self._late) < 100:
            return None
        return sorted(self._late)[int(len(self._late) * 0.99) - 1]

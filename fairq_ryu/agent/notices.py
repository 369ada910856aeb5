"""When controllers are told that a port is congested, or is not any more. Pure: time is an argument.

A queue that flaps must not flood the channel, and the last state must be told all the same: so a port is
told of at most once in a gap, and what comes in between waits for its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairq_ryu.model import Congestion


class Notices:
    """What was told of each port, and what is still to be told. Times in ns of one clock."""

    def __init__(self, gap_ns: int) -> None:
        """At most one message in ``gap_ns`` a port."""
        self.gap_ns = gap_ns
        self._rung: dict[int, bool] = {}
        self._told: dict[int, Congestion] = {}
        self._last: dict[int, int] = {}

    def ring(self, ports: Iterable[int], whatever: bool = False) -> None:
        """The state of these ports may have changed. ``whatever``: it is told even if it has not, so long as
        it is CNG (somebody may not have heard of it).
        """
        for port in ports:
            self._rung[port] = self._rung.get(port, False) or whatever

    def due(self, now_ns: int) -> list[int]:
        """The ports whose state is to be read, and given to :meth:`tell`, now."""
        return [port for port in self._rung if self._ready(port) <= now_ns]

    def tell(self, port: int, state: Congestion, now_ns: int) -> bool:
        """A due port is in this state: is it to be told?"""
        whatever = self._rung.pop(port, False)
        if state is self._told.get(port, Congestion.NOM) and not (whatever and state is Congestion.CNG):
            return False
        self._told[port] = state
        self._last[port] = now_ns
        return True

    @property
    def next_ns(self) -> int | None:
        """When a port is due next; None if none waits."""
        return min(map(self._ready, self._rung), default=None)

    def _ready(self, port: int) -> int:
        last = self._last.get(port)
        return 0 if last is None else last + self.gap_ns

    def forget(self, port: int) -> None:
        """Nobody wants to hear of this port any more."""
        for table in (self._rung, self._told, self._last):
            table.pop(port, None)

"""Do something once several switches have done what they were told: barriers, counted. Sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class _Waiting:
    missing: set[Hashable]
    action: Callable[[], None]
    until: float


class Barriers:
    """Actions that wait for barrier replies. A switch that does not answer delays one, but not for ever.

    ``patience``: seconds after which an action is taken all the same.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._waiting: list[_Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, tickets: Iterable[Hashable], action: Callable[[], None], now: float) -> None:
        """Take an action when all tickets (a switch and the transaction id of its barrier) are answered;
        at once if there are none.
        """
        missing = set(tickets)
        if missing:
            self._waiting.append(_Waiting(missing, action, now + self.patience))
        else:
            action()

    def answered(self, ticket: Hashable) -> None:
        """A switch has answered a barrier."""
        for waiting in self._waiting:
            waiting.missing.discard(ticket)
        self._take(lambda waiting: not waiting.missing)

    def overdue(self, now: float) -> None:
        """Take the actions that have waited long enough."""
        self._take(lambda waiting: now >= waiting.until)

    def _take(self, ready: Callable[[_Waiting], bool]) -> None:
        due = [waiting for waiting in self._waiting if ready(waiting)]
        self._waiting = [waiting for waiting in self._waiting if not ready(waiting)]
        for waiting in due:
            waiting.action()

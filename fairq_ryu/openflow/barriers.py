"""Do something once several switches have done what they were told: barriers, counted. Sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Ticket = tuple[int, int]


@dataclass(slots=True)
class _Waiting:
    missing: set[Ticket]
    action: Callable[[], None]
    until: float


class Barriers:
    """Actions that wait for barrier replies. A switch that does not answer delays one, but not for ever.

    ``patience``: seconds after which an action is taken all the same, unless it is said to have more. A
    ticket is a switch (its dpid) and the transaction id of its barrier.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        # In the order in which they came; and by what they still wait for.
        self._waiting: dict[int, _Waiting] = {}
        self._by_ticket: dict[Ticket, list[int]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(
        self,
        tickets: Iterable[Ticket],
        action: Callable[[], None],
        now: float,
        patience: float | None = None,
    ) -> None:
        """Take an action when all tickets are answered; at once if there are none. ``patience`` other than
        that of all may be ``math.inf``.
        """
        missing = set(tickets)
        if not missing:
            action()
            return
        self._number += 1
        self._waiting[self._number] = _Waiting(
            missing, action, now + (self.patience if patience is None else patience)
        )
        for ticket in missing:
            self._by_ticket.setdefault(ticket, []).append(self._number)

    def gone(self, dpid: int) -> None:
        """A switch has gone: it will not answer, and nobody waits for it."""
        for ticket in [each for each in self._by_ticket if each[0] == dpid]:
            self.answered(ticket)

    def answered(self, ticket: Ticket) -> None:
        """A switch has answered a barrier."""
        due = []
        for number in self._by_ticket.pop(ticket, ()):
            waiting = self._waiting[number]
            waiting.missing.discard(ticket)
            if not waiting.missing:
                due.append(self._waiting.pop(number))
        for waiting in due:
            waiting.action()

    def overdue(self, now: float) -> None:
        """Take the actions that have waited long enough."""
        due = []
        for number, waiting in list(self._waiting.items()):
            if now < waiting.until:
                continue
            del self._waiting[number]
            for ticket in waiting.missing:
                numbers = self._by_ticket[ticket]
                numbers.remove(number)
                if not numbers:
                    del self._by_ticket[ticket]
            due.append(waiting)
        for waiting in due:
            waiting.action()

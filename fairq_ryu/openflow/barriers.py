"""Actions that run when several switches have replied to barriers. Sends nothing.

A switch replies when it has processed all messages before the barrier. One that does not reply delays an
action, but not for ever. Bounded by what callers wait for: an entry ends with its last reply or its timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Ticket = tuple[int, int]


@dataclass(slots=True)
class _Pending:
    missing: set[Ticket]
    action: Callable[[], None]
    expires: float


class Barriers:
    """Actions that wait for barrier replies. ``timeout``: seconds after which an action runs without them,
    unless it has a timeout of its own. A ticket is a switch (its dpid) and the transaction id of its barrier.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        # In the order in which they were added, and by the tickets that they wait for.
        self._pending: dict[int, _Pending] = {}
        self._by_ticket: dict[Ticket, list[int]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._pending)

    def wait(
        self,
        tickets: Iterable[Ticket],
        action: Callable[[], None],
        now: float,
        timeout: float | None = None,
    ) -> None:
        """Run an action when all tickets are answered; at once if there are none. ``timeout``: of this
        action, None: the default; ``math.inf``: never.
        """
        missing = set(tickets)
        if not missing:
            action()
            return
        self._number += 1
        self._pending[self._number] = _Pending(
            missing, action, now + (self.timeout if timeout is None else timeout)
        )
        for ticket in missing:
            self._by_ticket.setdefault(ticket, []).append(self._number)

    def disconnected(self, dpid: int) -> None:
        """A switch has disconnected: no action waits for its replies any more."""
        for ticket in [each for each in self._by_ticket if each[0] == dpid]:
            self.answered(ticket)

    def answered(self, ticket: Ticket) -> None:
        """A switch has replied to a barrier."""
        due = []
        for number in self._by_ticket.pop(ticket, ()):
            pending = self._pending[number]
            pending.missing.discard(ticket)
            if not pending.missing:
                due.append(self._pending.pop(number))
        for pending in due:
            pending.action()

    def expire(self, now: float) -> None:
        """Run the actions whose timeout has passed."""
        due = []
        for number, pending in list(self._pending.items()):
            if now < pending.expires:
                continue
            del self._pending[number]
            for ticket in pending.missing:
                numbers = self._by_ticket[ticket]
                numbers.remove(number)
                if not numbers:
                    del self._by_ticket[ticket]
            due.append(pending)
        for pending in due:
            pending.action()

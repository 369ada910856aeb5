"""Which ports people have disabled, and until when. Pure; times in seconds of one clock.

A disable or an enable is about all ports, about those of a bridge, or about one port. An enable ends every
earlier disable on the ports that it covers, and on no others. Of the disables that are left for a port, the
one that lasts longest counts: so a shorter disable of one port never ends one of all ports. Ports that are
added later are covered, too. A port is recognized by the name of its interface, since it may come back with
another number, and another port with its number; by its number only where a name is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from fairq_ryu.model import PortKey

LIMIT = 1000
"""Maximum number of statements that are stored."""


class Scope(NamedTuple):
    """Ports. ``dpid`` None: of all bridges; ``port`` None: all ports; ``name``: of the port's interface, ""
    if it is not known.
    """

    dpid: int | None = None
    port: int | None = None
    name: str = ""

    def covers(self, key: PortKey, name: str) -> bool:
        """Whether a port whose interface has this name is one of them."""
        if self.dpid is not None and self.dpid != key.dpid:
            return False
        return self.port is None or self._is(key.port, name)

    def includes(self, other: Scope) -> bool:
        """Whether all ports of ``other`` are among these."""
        if self.dpid is not None and self.dpid != other.dpid:
            return False
        return self.port is None or self._is(other.port, other.name)

    def _is(self, port: int | None, name: str) -> bool:
        """Whether this is the port of it. A number may be another port's by now: a name decides."""
        if port is None or not (self.name and name):
            return self.port == port
        return self.name == name


class Statement(NamedTuple):
    """``until`` is when a disable ends (inf: when it is ended); None: an enable."""

    scope: Scope
    until: float | None


class TooMany(Exception):
    """:data:`LIMIT` statements are stored already."""


class Disables:
    """All disables and enables that still matter, in their order."""

    def __init__(self, statements: Iterable[Statement] = ()) -> None:
        self._statements = _relevant(list(statements))

    def statements(self) -> list[Statement]:
        """What must be remembered."""
        return list(self._statements)

    def replace(self, others: Disables) -> None:
        """Forget everything, and take over what others have."""
        self._statements = others.statements()

    def __bool__(self) -> bool:
        """Whether any port may be disabled."""
        return bool(self._statements)

    def disable(self, scope: Scope, until: float = math.inf) -> None:
        """Disable ports. Raises :class:`TooMany`, and changes nothing then."""
        # Another one of the same ports, with no enable since, is the same disable, for longer.
        enabled = max((at for at, each in enumerate(self._statements) if each.until is None), default=-1) + 1
        kept, since = self._statements[:enabled], self._statements[enabled:]
        latest = max([until, *(each.until or 0.0 for each in since if each.scope == scope)])
        self._add(Statement(scope, latest), [*kept, *(each for each in since if each.scope != scope)])

    def enable(self, scope: Scope) -> None:
        """Enable ports. Raises :class:`TooMany`, and changes nothing then."""
        # What is only about these ports is over.
        left = [each for each in self._statements if not scope.includes(each.scope)]
        if left:
            self._add(Statement(scope, None), left)
        else:
            self._statements = []

    def _add(self, statement: Statement, before: list[Statement] | None = None) -> None:
        statements = self._statements if before is None else before
        if len(statements) >= LIMIT:
            raise TooMany
        self._statements = _relevant([*statements, statement])

    def until(self, key: PortKey, name: str) -> float | None:
        """When the disable of a port ends (inf: when it is ended); None: it is not disabled."""
        latest: float | None = None
        for scope, until in self._statements:
            if scope.covers(key, name):
                latest = None if until is None else max(until, latest or 0.0)
        return latest

    @property
    def next_end(self) -> float:
        """When the next disable ends by itself; inf: none does."""
        return min((each.until for each in self._statements if each.until is not None), default=math.inf)

    def expire(self, now: float) -> list[Scope]:
        """Forget the disables whose time is over. Returns what they were about."""
        over = [each.scope for each in self._statements if each.until is not None and each.until <= now]
        if over:
            kept = [each for each in self._statements if each.until is None or each.until > now]
            self._statements = _relevant(kept)
        return over


def _relevant(statements: list[Statement]) -> list[Statement]:
    """Without enables that have no disable before them."""
    first = next((at for at, each in enumerate(statements) if each.until is not None), len(statements))
    return statements[first:]

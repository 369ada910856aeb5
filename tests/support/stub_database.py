"""The database between controllers, in this process: real transactions, on rows that are objects. They are
carried out at once, and refused where the schema refuses them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from fairq_ryu.cluster.database import Obsolete, _bridge, _member
from fairq_ryu.cluster.view import Texts, View

# The last integer of OVSDB.
_LAST = (1 << 63) - 1


class Row:
    """A row of a table; its columns are attributes."""

    def __init__(self, rows: list[Any], **columns: object) -> None:
        self._rows = rows
        vars(self).update(columns)

    def copy(self) -> Row:
        columns = dict(vars(self))
        return Row(columns.pop("_rows"), **columns)

    def verify(self, _column: str) -> None:
        """Nothing changes between this and the end of a transaction."""

    def delete(self) -> None:
        self._rows.remove(self)


class StubDatabase:
    """In place of :class:`fairq_ryu.cluster.database.Database`, for one controller."""

    connected, filled = True, True

    def __init__(self, *_about: object) -> None:
        self.tables: dict[str, list[Any]] = {"Controller": [], "Bridge": [], "Request": []}
        self.refused, self.changed = False, True
        self.refusals = 0
        self._idl = SimpleNamespace(tables=self.tables)

    # As the database

    def step(self) -> bool:
        changed, self.changed = self.changed, False
        return changed

    def work(self) -> None:
        """No transaction waits."""

    def take_requests(self) -> Texts:
        return {}

    def view(self) -> View:
        bridges = [_bridge(row) for row in self.tables["Bridge"]]
        return View(
            {row.id: _member(row) for row in self.tables["Controller"]},
            {dpid: bridge for dpid, bridge in bridges if dpid is not None},
            self._removed(),
        )

    def write(
        self,
        change: Callable[[Any, Any], None],
        over: Callable[[bool], None] = lambda _: None,
        seconds: float = 0,
        urgent: bool = False,
    ) -> None:
        before = {table: [row.copy() for row in rows] for table, rows in self.tables.items()}
        try:
            change(self, self)
        except Obsolete:
            self.refused = False
            over(False)
            return
        self.refused = any(not 0 <= row.generation <= _LAST for row in self.tables["Bridge"])
        if self.refused:
            self.refusals += 1
            for table, rows in before.items():
                self.tables[table][:] = rows
        self.changed = True
        over(not self.refused)

    # As a transaction

    def insert(self, rows: list[Any]) -> Any:
        rows.append(Row(rows))
        return rows[-1]

    # As another controller

    def own(self, dpid: int, owner: str, generation: int) -> None:
        """A bridge has this owner."""
        row = self._find("Bridge", dpid=f"{dpid:016x}") or self.insert(self.tables["Bridge"])
        vars(row).update(dpid=f"{dpid:016x}", owner=owner, generation=generation, load=0)
        self.changed = True

    def beat(self, member: str) -> None:
        """Another controller lives; it reaches no bridge."""
        row = self._find("Controller", id=member)
        if row is None:
            row = self.insert(self.tables["Controller"])
            vars(row).update(id=member, name=member, rest="", settings="", beat=0, reach={})
        row.beat += 1
        self.changed = True

    def _find(self, table: str, **columns: str) -> Any:
        wanted = columns.items()
        found = (row for row in self.tables[table] if all(vars(row)[name] == each for name, each in wanted))
        return next(found, None)

    def _removed(self) -> int:
        row = self._find("Bridge", dpid="removed")
        return 0 if row is None else int(row.generation)

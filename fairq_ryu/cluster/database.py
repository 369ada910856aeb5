"""The database between controllers (OVSDB, RFC 7047): its rows as values, and transactions.

Everything runs in the caller's greenlet or thread: :meth:`Database.step` receives what has come,
:meth:`Database.work` carries on transactions, and :meth:`Database.wait` waits until there is more to do.

What a transaction has done is seen in the rows, not in its result: when the connection breaks, nobody knows
whether the last one was carried out, and it may be sent twice. So each is written to be harmless twice: a
claim names the generation that it replaces, a second attempt to store a request replaces only what was there
at the first, and all others set values. A transaction that fails is reported as not done;
:meth:`Database.write` tries again until its time is over.

Any server of a cluster will do, not only its leader: what followers say may be late, and late views are
what claims are made for. Locks of OVSDB are not used: they live in the memory of one server.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ovs.db.idl
import ovs.poller
import ovs.vlog

from fairq_ryu.cluster.settings import SCHEMA
from fairq_ryu.cluster.view import Bridge, Claim, Member, Texts, View

# A server that is silent for so long is asked for an echo, and left when it does not answer, ms.
_PROBE = 2000
# A server is left, too, when its rows have not changed for so long, s: controllers beat more often than that.
# It may answer echoes although it is cut off from its cluster, or has forgotten what it was asked.
_STILL = 10.0
# After so long without a first connection it is said that there is none, s; and every warning this often, s.
_SILENT, _WARNING_INTERVAL = 5.0, 60.0
# In place of a dpid, in the row with the latest generation of all bridges whose rows were removed.
_REMOVED = "removed"
# The kind of a row that each change of requests changes, too.
_WRITTEN = "written"
_DPID = re.compile(r"[0-9a-f]{16}")
# Between two attempts to connect, ms.
_RETRY, _LAST_RETRY = 250, 1000

# What rows are found by, as the schema says.
_INDEXES = {"Controller": ("id",), "Bridge": ("dpid",), "Request": ("kind", "key")}

_Change = Callable[["Database", Any], None]
"""Makes a transaction; raises :class:`Obsolete` or :class:`Fulfilled` if there is nothing to do any more"""


class _Idl(ovs.db.idl.Idl):  # type: ignore[misc]
    """Remembers which rows of requests have changed."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.requests: dict[tuple[str, str], str | None] = {}
        self.others = True  # rows of other tables have changed
        self.bridges: dict[Any, tuple[int | None, Bridge]] = {}  # as values, by the rows' uuid

    def notify(self, event: str, row: Any, updates: Any = None) -> None:
        """A row has changed."""
        if row._table.name == "Request":
            if row.kind != _WRITTEN:
                self.requests[row.kind, row.key] = None if event == ovs.db.idl.ROW_DELETE else row.value
        else:
            self.others = True
            self.bridges.pop(row.uuid, None)


class Obsolete(Exception):
    """The rows are not what a transaction was made for."""


class Fulfilled(Exception):
    """The rows are already what a transaction was to make of them."""


@dataclass(slots=True)
class _Waiting:
    """A transaction that is to be made. ``over``: called with whether it was carried out; ``until``: it is
    tried again until then, seconds of the monotonic clock; ``begins``: it is not begun later than that.
    """

    change: _Change
    over: Callable[[bool], None]
    until: float
    begins: float


class Database:
    """A connection to the database. ``remote`` as in OVS, ``unix:FILE`` or ``tcp:ADDRESS:PORT``; of a cluster
    several, separated by commas.
    """

    def __init__(self, remote: str, log: logging.Logger) -> None:
        helper = ovs.db.idl.SchemaHelper(str(SCHEMA))
        for table in _INDEXES:
            helper.register_table(table)
        # Its own log handlers would repeat every line that we log.
        for facility in ("console", "syslog", "file"):
            ovs.vlog.Vlog.set_level("any", facility, "off")
        self._idl = _Idl(remote, helper, probe_interval=_PROBE, leader_only=False)
        for table, columns in _INDEXES.items():
            self._idl.index_create(table, "key").add_columns(*columns)
        # The method for this accepts no less than a second.
        reconnect = self._idl._session.reconnect
        reconnect.min_backoff, reconnect.max_backoff = _RETRY, _LAST_RETRY
        self._remote, self._log = remote, log
        self.refused = False
        """Whether the server has refused the transaction that was over last: it would do so again."""
        self._queue: deque[_Waiting] = deque()
        self._running: tuple[_Waiting, Any] | None = None
        self._requests: dict[tuple[str, str], str | None] = {}
        self._connected = False
        self._begun = time.monotonic()
        self._tell_connected = True  # at the first connection, and after a loss that was logged
        self._warned_at: dict[str, float] = {}
        self._seen: tuple[Any, ...] = ()
        self._seen_at = 0.0

    def close(self) -> None:
        """End the connection."""
        self._idl.close()

    # Running

    def step(self) -> bool:
        """Receive what has come. Returns whether controllers or bridges may have changed."""
        self._idl.run()
        now = time.monotonic()
        again = self._note_connection(now)
        self._leave_still_server(now)
        changed, self._idl.others = self._idl.others or again, False
        if again:
            # All rows may have come anew, without a word about those that have gone.
            rows = (row for row in self._rows("Request") if row.kind != _WRITTEN)
            there = {(row.kind, row.key): row.value for row in rows}
            self._idl.requests = {**dict.fromkeys(self._requests), **there}
        return changed and self.filled

    def work(self) -> None:
        """Carry on the transactions. What they have changed was seen in :meth:`step` before."""
        self._work(time.monotonic())

    def wait(self, seconds: float) -> None:
        """Wait until something has come, at most ``seconds``. What is written meanwhile waits as well."""
        poller = ovs.poller.Poller()
        self._idl.wait(poller)
        if self._running is None and self._queue and self.connected:
            return
        if self._running is not None:
            self._running[1].wait(poller)
        poller.timer_wait(int(1000 * seconds))
        poller.block()

    @property
    def filled(self) -> bool:
        """Whether the rows have been received once."""
        return bool(self._idl.has_ever_connected())

    @property
    def connected(self) -> bool:
        """Whether the server can be reached now."""
        return self._connected

    def _warn(self, now: float, text: str, *values: object) -> bool:
        """Log this once a minute. Returns whether it was logged."""
        if now - self._warned_at.get(text, float("-inf")) < _WARNING_INTERVAL:
            return False
        self._warned_at[text] = now
        self._log.warning(f"cluster: {text} (logged once a minute)", *values)
        return True

    def _note_connection(self, now: float) -> bool:
        """Returns whether there is a connection that was not there before."""
        before = self._connected
        self._connected = self._idl.state == self._idl.IDL_S_MONITORING and bool(
            self._idl._session.is_connected()
        )
        if self._connected:
            if self._tell_connected:
                self._log.info("cluster: connected to the database at %s", self._remote)
            self._tell_connected = False
        elif before:
            self._tell_connected = self._warn(now, "the database at %s is lost; trying again", self._remote)
        elif not self.filled and now - self._begun > _SILENT:
            self._warn(now, "the database at %s does not answer; no bridge is governed", self._remote)
        return self._connected and not before

    def _leave_still_server(self, now: float) -> None:
        session = self._idl._session
        seen = self._idl.state, self._idl.change_seqno, session.get_seqno()
        if seen != self._seen or not session.is_connected():
            self._seen, self._seen_at = seen, now
        elif now - self._seen_at > _STILL:
            self._warn(now, "the database at %s stands still; leaving it", session.get_name())
            self._seen_at = now
            self._idl.force_reconnect()

    def _work(self, now: float) -> None:
        """Carry on the transaction that runs, or begin the next."""
        while self._running is not None or self._queue:
            if self._running is None:
                waiting = self._queue.popleft()
                if not self.connected and now < waiting.until:
                    self._queue.appendleft(waiting)
                    return
                self._begin(waiting, now)
                continue
            waiting, transaction = self._running
            status = transaction.commit()
            if status == ovs.db.idl.Transaction.INCOMPLETE:
                if now < waiting.until or self.connected:
                    return
                transaction.abort()
            self._running = None
            done = status in (ovs.db.idl.Transaction.SUCCESS, ovs.db.idl.Transaction.UNCHANGED)
            self.refused = status == ovs.db.idl.Transaction.ERROR
            if self.refused:
                self._note_refusal(now, str(transaction.get_error()))
            if not done and now < waiting.until:
                self._queue.appendleft(waiting)
                return  # the rows that it needs have not come yet
            waiting.over(done)

    def _note_refusal(self, now: float, reason: str) -> None:
        # Of two controllers that insert the same row one is refused, and sees that of the other.
        if "constraint violation" in reason:
            self._log.debug("cluster: a transaction was refused: %s", reason)
        else:
            self._warn(now, "the database refuses a transaction: %s", reason)

    def _begin(self, waiting: _Waiting, now: float) -> None:
        self.refused = False
        # Whoever has asked was told that it is not known to be stored, and may have asked for something else.
        if not self.connected or now > waiting.begins:
            waiting.over(False)
            return
        transaction = ovs.db.idl.Transaction(self._idl)
        try:
            waiting.change(self, transaction)
        except (Obsolete, Fulfilled) as found:
            transaction.abort()
            waiting.over(isinstance(found, Fulfilled))
            return
        except Exception:
            # It would be in the way of all others for ever.
            transaction.abort()
            waiting.over(False)
            raise
        self._running = waiting, transaction

    def write(
        self,
        change: _Change,
        over: Callable[[bool], None] = lambda _: None,
        seconds: float = 0,
        urgent: bool = False,
        within: float = float("inf"),
    ) -> None:
        """Carry out a transaction after those before it, an ``urgent`` one before all that wait; ``over`` is
        called with whether it was carried out, as far as is known. It is tried again for ``seconds``. If it
        cannot begin ``within`` so many, because others are before it, it is not carried out.
        """
        add, now = self._queue.appendleft if urgent else self._queue.append, time.monotonic()
        add(_Waiting(change, over, now + seconds, now + within))

    # Rows

    def view(self) -> View:
        """Controllers and bridges."""
        before, rows = self._idl.bridges, self._idl.tables["Bridge"].rows
        self._idl.bridges = {uuid: before.get(uuid) or _bridge(row) for uuid, row in rows.items()}
        return View(
            {row.id: _member(row) for row in self._rows("Controller")},
            {dpid: bridge for dpid, bridge in self._idl.bridges.values() if dpid is not None},
            self._removed(),
        )

    def _removed(self) -> int:
        row = self._find("Bridge", dpid=_REMOVED)
        return 0 if row is None else int(row.generation)

    def take_requests(self) -> Texts:
        """The requests that have changed since this was last called."""
        found, self._idl.requests = self._idl.requests, {}
        for key, value in found.items():
            if value is None:
                self._requests.pop(key, None)
            else:
                self._requests[key] = value
        return found

    def _rows(self, table: str) -> Iterable[Any]:
        return list(self._idl.tables[table].rows.values())

    def _find(self, table: str, **columns: str) -> Any:
        wanted = self._idl.tables[table].rows.IndexEntry(**columns)
        return next(self._idl.index_equal(table, "key", wanted), None)


def _member(row: Any) -> Member:
    reach = {dpid: links for text, links in row.reach.items() if (dpid := _dpid(text)) is not None}
    return Member(row.id, row.name, row.rest, row.settings, row.beat, reach)


def _bridge(row: Any) -> tuple[int | None, Bridge]:
    return _dpid(row.dpid), Bridge(row.owner, row.generation, row.load)


def _dpid(text: str) -> int | None:
    """The dpid in a row; None: people have written something else there."""
    return int(text, 16) if _DPID.fullmatch(text) else None


# Transactions


def claim(claims: Iterable[Claim], owner: str) -> _Change:
    """Make a controller the owner of bridges: of all of them, or of none if one has another generation."""

    def change(database: Database, transaction: Any) -> None:
        for each in claims:
            dpid = f"{each.dpid:016x}"
            row = database._find("Bridge", dpid=dpid)
            if (None if row is None else row.generation) != each.before:
                raise Obsolete
            if row is None:
                if each.generation <= database._removed():
                    raise Obsolete
                row = transaction.insert(database._idl.tables["Bridge"])
                row.dpid, row.load = dpid, 0
            else:
                row.verify("generation")
            row.owner, row.generation = owner, each.generation

    return change


def beat(member: Member, loads: Mapping[int, int]) -> _Change:
    """Say that a controller lives, what it reaches, and the loads of its bridges."""

    def change(database: Database, transaction: Any) -> None:
        row = database._find("Controller", id=member.id)
        reach = {f"{dpid:016x}": links for dpid, links in member.reach.items()}
        if row is None:
            row = transaction.insert(database._idl.tables["Controller"])
            row.id, row.name = member.id, member.name
            row.rest, row.settings = member.rest, member.settings
            row.beat, row.reach = 1, reach
        else:
            row.beat = row.beat + 1
            if row.reach != reach:
                row.reach = reach
        for dpid, load in loads.items():
            bridge = database._find("Bridge", dpid=f"{dpid:016x}")
            if bridge is not None and bridge.owner == member.id and bridge.load != load:
                bridge.load = load

    return change


def leave(member: str, beat: int) -> _Change:
    """Remove a controller, if its beat has not moved since it was ``beat``."""

    def change(database: Database, _: Any) -> None:
        row = database._find("Controller", id=member)
        if row is None or row.beat != beat:
            raise Obsolete
        row.verify("beat")
        row.delete()

    return change


def remove(bridges: Mapping[int, int]) -> _Change:
    """Remove the rows of bridges that have these generations still. What is the latest of them is kept."""

    def change(database: Database, transaction: Any) -> None:
        found = [(database._find("Bridge", dpid=f"{dpid:016x}"), last) for dpid, last in bridges.items()]
        rows = [row for row, generation in found if row is not None and row.generation == generation]
        if not rows:
            raise Obsolete
        latest = max(row.generation for row in rows)
        for row in rows:
            row.verify("generation")
            row.delete()
        kept = database._find("Bridge", dpid=_REMOVED)
        if kept is None:
            kept = transaction.insert(database._idl.tables["Bridge"])
            kept.dpid, kept.owner, kept.generation, kept.load = _REMOVED, "", latest, 0
        else:
            kept.verify("generation")
            kept.generation = max(latest, kept.generation)

    return change


def put(changes: Texts, expected: Texts) -> _Change:
    """Store requests, in place of earlier ones about the same, and remove those that are None: all, or none
    if one of the ``expected`` is another.

    The first attempt replaces whatever is there. Nobody knows what has become of it when there is a second
    one, and somebody may have stored something later meanwhile: so that one finds what it stores there
    already, or replaces what was there at the first attempt. Otherwise it is obsolete.
    """
    first: dict[tuple[str, str], str | None] = {}

    def change(database: Database, transaction: Any) -> None:
        rows = {key: database._find("Request", kind=key[0], key=key[1]) for key in {**changes, **expected}}
        now = {key: None if row is None else row.value for key, row in rows.items()}
        if any(now[key] != value for key, value in expected.items()):
            raise Obsolete
        before, again = {key: first.get(key, now[key]) for key in changes}, bool(first)
        first.update(before)
        if any(now[key] not in (value, before[key]) for key, value in changes.items()):
            raise Obsolete
        if before != changes and all(now[key] == value for key, value in changes.items()):
            raise Fulfilled
        for key, row in rows.items():
            surely = again or key in expected
            if row is not None:
                # Otherwise the update of a row that has gone at the server would succeed, and do nothing.
                row.verify("value" if surely else "key")
            elif surely and changes.get(key) is None:
                transaction.add_op(_absent(key))
            elif changes[key] is None:
                # A later row may be there that has not come here yet.
                transaction.add_op({"op": "delete", "table": "Request", "where": _where(key)})
        for key, value in changes.items():
            row = rows[key]
            if value is None:
                if row is not None:
                    row.delete()
                continue
            if row is None:
                row = transaction.insert(database._idl.tables["Request"])
                row.kind, row.key = key
            row.value = value
        _sign(database, transaction)

    return change


def _sign(database: Database, transaction: Any) -> None:
    """Let a transaction change something in any case. One that seems to change nothing is not sent, although
    the server may have later rows; and a server that is cut off from its cluster confirms it on its own.
    """
    row = database._find("Request", kind=_WRITTEN, key="")
    if row is None:
        row = transaction.insert(database._idl.tables["Request"])
        row.kind, row.key = _WRITTEN, ""
    else:
        row.verify("key")
    row.value = os.urandom(8).hex()


def _where(key: tuple[str, str]) -> list[list[str]]:
    """The row of a request, for an operation of OVSDB."""
    return [["kind", "==", key[0]], ["key", "==", key[1]]]


def _absent(key: tuple[str, str]) -> dict[str, Any]:
    """An operation of OVSDB that fails if a request has a row."""
    wait = {"op": "wait", "table": "Request", "timeout": 0, "until": "==", "columns": ["value"], "rows": []}
    return {**wait, "where": _where(key)}
